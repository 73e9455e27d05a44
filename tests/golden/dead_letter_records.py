"""Writes dead letters as they lie in their topic: ``python -m tests.golden.dead_letter_records 0-2-0``.

``dead-letters-<release>.json`` has records with each header that a worker writes (hexadecimal), and what
``grove dlq`` reads from them. Files of releases stay, and stay readable: dead letters are kept for 90 days,
and are sent back by a later release. A new file is needed only when what is written changes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from streamapp.tools.dead_letters.read import DeadLetterRecord, document_of
from streamapp.worker.outputs.dead_letters import dead_letters
from streamapp.worker.task.effects.effects import DeadLetter, Origin
from tests.golden.versions import ascending
from topics.errors import Reason

HERE: Final = Path(__file__).parent
NOW: Final = 1_700_000_000_000
LIMIT: Final = 120_000
"""Bytes of the largest record of the topic."""
SOURCES: Final = ("t.instances", "t.labels")
OWN: Final = (("trace", b"\x00\xff"), ("größe", "grün".encode()), ("empty", None))
RETURNED: Final = (("grove-dlq-first-seen", b"1600000000000"), ("grove-dlq-attempts", b"2"))
LETTERS: Final = (
    DeadLetter(
        Origin("t.instances", 3, 5, NOW, b"m", b'{"id": 7}', ()), Reason.WRONG_TYPE, "id=7 must be text"
    ),
    DeadLetter(
        Origin("t.instances", 3, 6, NOW + 1, b"m", b"\xff\xff\xff\xff", OWN),
        Reason.WRONG_TYPE,
        "rows 0-1 and 5",
        ((0, Reason.WRONG_TYPE), (1, Reason.WRONG_TYPE), (5, Reason.BAD_WEIGHT)),
    ),
    DeadLetter(
        Origin("t.labels", 3, 7, NOW + 2, "größe".encode(), b"{}", (*OWN, *RETURNED)),
        Reason.MISSING_FIELD,
        "id is missing",
        attempts=1,
    ),
    DeadLetter(
        Origin("t.labels", 3, 8, NOW + 3, None, None, ()),
        Reason.SKIPPED,
        "it stopped the partition",
        exception="core.errors.RowError",
        stacktrace="Traceback\n  line \udcff",
    ),
    DeadLetter(
        Origin("t.instances", 3, 9, NOW + 4, None, b"\x00" * 9, ()),
        Reason.WRONG_TYPE,
        "the batch is damaged",
        last_offset=17,
    ),
    DeadLetter(
        Origin("t.instances", 3, 18, NOW + 5, b"m", b"x" * LIMIT, OWN), Reason.OUTPUT_TOO_LARGE, "too large"
    ),
    DeadLetter(Origin("t.gone", 3, 19, NOW + 6, b"m", b"{}", ()), Reason.WRONG_TYPE, "another topic"),
)
"""Dead letters with rows, attempts, a traceback, a whole batch, and parts for which there is no room."""


def files() -> list[Path]:
    return ascending(HERE.glob("dead-letters-*.json"))


def records() -> list[dict[str, Any]]:
    """Return the records that are written, in hexadecimal; the timestamp is that of the original record."""
    sent = dead_letters("t.dead-letters", LETTERS, LIMIT)
    assert sent.headers is not None
    columns = zip(sent.keys, sent.values, sent.timestamps, sent.headers, strict=True)
    return [
        {
            "key": hexadecimal(key),
            "value": hexadecimal(value),
            "timestamp": int(timestamp),
            "headers": [[name, hexadecimal(content)] for name, content in headers],
        }
        for key, value, timestamp, headers in columns
    ]


def hexadecimal(data: bytes | None) -> str | None:
    return None if data is None else bytes(data).hex()


def read(record: Mapping[str, Any], offset: int) -> dict[str, Any]:
    """Return the parts that are read from a record, whether it can be sent back, and with which headers."""
    of_hex = {
        name: None if record[name] is None else bytes.fromhex(record[name]) for name in ("key", "value")
    }
    headers = [(name, None if text is None else bytes.fromhex(text)) for name, text in record["headers"]]
    letter = DeadLetterRecord(3, offset, record["timestamp"], of_hex["key"], of_hex["value"], headers)
    returned = [[name, hexadecimal(value)] for name, value in letter.returned_headers]
    return document_of(letter) | {
        "may_return": letter.why_not(SOURCES, all_the_same=False) is None,
        "returned_headers": returned,
    }


def main() -> None:
    """Write the file of a release, which the first argument names."""
    body = [record | {"says": read(record, offset)} for offset, record in enumerate(records())]
    text = json.dumps(body, indent=1, ensure_ascii=False)
    (HERE / f"dead-letters-{sys.argv[1]}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
