"""Writes the files of ``grove web`` in the formats of now, as SQL: ``python -m tests.golden.stores``.

``web-store-<version>.sql`` is the store of ``--state``, which must stay readable: it has answers that are
sent nowhere else yet. ``watched-<version>.sql`` and ``people-<version>.sql`` are copies of topics: a release
with another format makes them again. Files of formats that were released stay.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from streamapp.people import people_store
from streamapp.people.people_store import PeopleStore
from streamapp.people.topic_copy import TopicCopy
from streamapp.web import store as web_store
from streamapp.web.store import Store
from streamapp.web.watch import watched
from streamapp.web.watch.watched import Watched
from tests.golden.versions import ascending

HERE: Final = Path(__file__).parent
ORIGIN: Final = {"cluster": "c", "prefix": "t."}
NAMES: Final = {
    "web-store": web_store.VERSION,
    "watched": watched.VERSION,
    "people": people_store.VERSION,
}
"""The names of the files, and the formats of now."""
COPIES: Final[dict[str, Callable[[Path], TopicCopy]]] = {"watched": Watched, "people": PeopleStore}
OF_A_STORE: Final = """
INSERT INTO position VALUES ('t.label-requests', 3, 17);
INSERT INTO request (kind, key, subject, instance_id, request_id, partition, asked_ms, expires_ms, strategy,
  features, left_out, wanted, shares, seen, needed)
  VALUES ('label', 'shop', 'i1', 'i1', '3-1-q', 3, 5, 9000000000000, 'ask', '{"x":1}', 0, '', '{}', '{}', 1);
INSERT INTO answer (kind, key, instance_id, partition, asked_ms, annotator, label, weight, answered_ms,
  due_ms, state) VALUES ('label', 'shop', 'i0', 3, 0, 'ann', 'yes', 1.0, 5, 0, 'sent');
"""


def files(name: str) -> list[Path]:
    return ascending(HERE.glob(f"{name}-*.sql"))


def file_of_now(name: str) -> Path:
    return HERE / f"{name}-{NAMES[name]}.sql"


def load(path: Path, version: int, database: Path) -> None:
    """Make a database of a file."""
    with closing(sqlite3.connect(database)) as db:
        db.executescript(f"{path.read_text(encoding='utf-8')} PRAGMA user_version = {version};")


def made(name: str, path: Path) -> None:
    """Make a database with some content, as this release does."""
    if name == "web-store":
        Store(path).close()
        with closing(sqlite3.connect(path)) as db:
            db.executescript(f"UPDATE identity SET name = '0123456789abcdef'; {OF_A_STORE}")
    else:
        with closing(COPIES[name](path)) as copy:
            copy.begin(ORIGIN)
        with closing(sqlite3.connect(path)) as db:
            db.executescript("INSERT INTO position VALUES ('t.audit', 3, 17);")


def main() -> None:
    """Write the files of now."""
    for name in NAMES:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "file.sqlite"
            made(name, path)
            with closing(sqlite3.connect(path)) as db:
                file_of_now(name).write_text("\n".join(db.iterdump()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
