"""The store of the queue: of one process, of one version, and of topics that may be made again."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamapp.errors import StreamappError
from streamapp.web.queue.label_queue import LabelQueue
from streamapp.web.store import Store
from tests.unit.streamapp.web.queue.requests import REQUEST, ask, ids


def test_topics_made_anew_give_up_what_was_read(queue: LabelQueue) -> None:
    assert not queue.topics.begin({"cluster": "c", "labels": "1"})
    ask(queue, REQUEST)
    assert not queue.topics.begin({"cluster": "c", "labels": "1"})
    assert queue.topics.positions("requests") == {0: 1}
    assert queue.topics.begin({"cluster": "c", "labels": "2"})
    assert queue.topics.positions("requests") == {}
    assert ids(queue, "ann") == [None]


def test_a_store_has_one_process(tmp_path: Path) -> None:
    first = Store(tmp_path / "web.sqlite")
    with pytest.raises(StreamappError, match="another 'grove web' has it"):
        Store(tmp_path / "web.sqlite")
    first.close()
    Store(tmp_path / "web.sqlite").close()
    assert (tmp_path / "web.sqlite").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", [b"no database " * 100, None])
def test_a_file_that_is_no_store_is_told(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "web.sqlite"
    if content is None:
        store = Store(path)
        with store.transaction() as db:
            db.execute("PRAGMA user_version = 9")
        store.close()
    else:
        path.write_bytes(content)
    with pytest.raises(StreamappError, match="name another file"):
        Store(path)
