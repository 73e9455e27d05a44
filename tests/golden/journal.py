"""Writes a file of journal records in the format of now: ``python -m tests.golden.journal``.

``journal-<version>.json`` has records of every kind, each as it lies in the topic (hexadecimal) and as what
must be read from it. Files of formats that were released stay, and stay readable.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from streamapp.worker.journal.entry import FORMAT_VERSION, Entry, Manifest, Record, Reset, Skip, Step, encode
from streamapp.worker.journal.record_lines import as_json
from tests.golden.versions import ascending
from tests.positions import at
from topics.columns.records import RawRecords

HERE = Path(__file__).parent
CONTROLS = RawRecords(
    "t.controls", 3, [4, 6], [17, 18], [b"m", None], [b"{}", None], [(("a", b"1"), ("b", None)), ()]
)
STEPS = (
    Step("controls", 7, ((5, 6),), records=CONTROLS),
    Step("instances", 20),
    Step("instances", 30, ((22, 23),), ((24, 26),)),
    Step("labels", 2, count=2),
    Step("instances", 40, ((31, 33),), count=9),
)
REFUSED = RawRecords("t.controls", 3, [9], [19], [b"m"], [b'{"command":"merge"}'], [()])
RECORDS: Final[tuple[Record, ...]] = (
    Entry(
        2,
        4,
        "x86_64 glibc 2.36 numba 0.63",
        at(controls=4, instances=10),
        at(controls=7, instances=40, labels=2),
        STEPS,
        '{"limits": {}}',
    ),
    Entry(
        2,
        4,
        "",
        at(controls=7, instances=40, labels=2),
        at(controls=7, instances=41, labels=2),
        (Step("instances", 41),),
    ),
    Manifest(2, 7, 4, "here", at(controls=5, instances=30, labels=2), 99, "{}", 1200, 34_567, 1, 12345, 678),
    Reset(2, at(controls=5, instances=30, labels=2)),
    Skip(2, "instances", 1 << 40, "3Hr6Yp4mQ6mK6o2z1p7hJw"),
    Entry(
        2,
        4,
        "",
        at(controls=7, instances=41, labels=2),
        at(controls=7, instances=90, labels=2),
        (Step("instances", 90, ((42, 43),), count=5, unread=((44, 60), (70, 90))),),
    ),
    Entry(
        2,
        4,
        "",
        at(controls=7, instances=90, labels=2),
        at(controls=10, instances=90, labels=2),
        (Step("controls", 10, records=REFUSED, dead=((9, 10),)),),
    ),
)


def files() -> list[Path]:
    return ascending(HERE.glob("journal-*.json"))


def file_of_now() -> Path:
    return HERE / f"journal-{FORMAT_VERSION}.json"


def main() -> None:
    body = [{"value": encode(record).hex(), "says": as_json(3, 0, record)} for record in RECORDS]
    file_of_now().write_text(json.dumps(body, indent=1) + "\n")


if __name__ == "__main__":
    main()
