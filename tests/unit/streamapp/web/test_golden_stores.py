"""Files of ``grove web`` of a release: the store is read for ever, copies of topics are made again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from streamapp.errors import StreamappError
from streamapp.web.store import Store
from tests.golden import stores as golden
from tests.golden.versions import versions


@pytest.mark.parametrize("name", golden.NAMES)
def test_there_is_a_file_of_the_format_that_is_written(name: str, tmp_path: Path) -> None:
    """A change of the tables needs a new version and a new file."""
    assert golden.file_of_now(name) in golden.files(name)
    golden.made(name, tmp_path / "now.sqlite")
    golden.load(golden.file_of_now(name), golden.NAMES[name], tmp_path / "then.sqlite")
    schemas = []
    for path in ("now", "then"):
        with closing(sqlite3.connect(tmp_path / f"{path}.sqlite")) as db:
            schemas.append(set(db.execute("SELECT name, sql FROM sqlite_schema")))
    assert schemas[0] == schemas[1]


@pytest.mark.parametrize("path", golden.files("web-store"), ids=lambda path: path.stem)
def test_a_store_of_a_release_keeps_its_requests_and_answers(path: Path, tmp_path: Path) -> None:
    (version,) = versions(path)
    database = tmp_path / "web.sqlite"
    golden.load(path, version, database)
    with closing(Store(database)) as store, store.reading() as db:
        assert db.execute("SELECT key, instance_id FROM request").fetchall() == [("shop", "i1")]
        assert db.execute("SELECT annotator, label, state FROM answer").fetchall() == [("ann", "yes", "sent")]
        assert db.execute("SELECT next FROM position").fetchall() == [(17,)]
        assert db.execute("SELECT name, n FROM tally WHERE n > 0").fetchall() == [("request", 1), ("sent", 1)]


@pytest.mark.parametrize("name", golden.COPIES)
@pytest.mark.parametrize("later", [0, 1], ids=["of-this-format", "of-a-later-format"])
def test_a_copy_of_topics_goes_on_or_is_made_again(name: str, later: int, tmp_path: Path) -> None:
    database = tmp_path / "copy.sqlite"
    for path in golden.files(name):
        database.unlink(missing_ok=True)
        (version,) = versions(path)
        golden.load(path, version + later, database)
        with closing(golden.COPIES[name](database)) as copy:
            is_emptied = copy.begin(golden.ORIGIN)
            goes_on = version + later == golden.NAMES[name]
            assert (is_emptied, copy.positions("t.audit")) == (False, {3: 17} if goes_on else {})


def test_a_store_of_a_later_release_is_refused_and_kept(tmp_path: Path) -> None:
    database = tmp_path / "web.sqlite"
    later = golden.NAMES["web-store"] + 1
    golden.load(golden.file_of_now("web-store"), later, database)
    before = contents(database)
    text = f"has format {later}, this release reads 3 to .*; run the release that wrote it"
    with pytest.raises(StreamappError, match=text):
        Store(database)
    assert contents(database) == before


def contents(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return list(db.iterdump())
