"""A replay goes by the rules of today, and says what it leaves out for that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.state_version import ALIKE_SINCE, READABLE
from streamapp.worker.journal.entry import FORMAT_VERSION, Entry, Step
from streamapp.worker.restore.journal_replay import Replay
from streamapp.worker.task.sources import SourceName
from streamapp.worker.task.task_config import TaskConfig
from tests.positions import at
from topics.columns.records import RawRecords

VALUES: list[bytes | None] = [
    b'{"features":[1],"label":"a"%s}' % weight for weight in (b"", b',"weight":1e20', b"", b',"weight":2')
]


class Log:
    """The records of the tail."""

    def up_to(self, position: int, unread: object = ()) -> Iterator[RawRecords]:
        n = len(VALUES)
        yield RawRecords("t.instances", 3, list(range(n)), [17] * n, [b"m"] * n, VALUES, [()] * n)


@pytest.mark.parametrize("version", READABLE)
def test_a_record_of_a_weight_that_is_refused_today_is_left_out_and_named(
    version: int, caplog: pytest.LogCaptureFixture
) -> None:
    def open_log(source: SourceName, position: int) -> Log:
        assert (source, position) == ("instances", 0)
        return Log()

    replay = Replay(3, open_log)
    after = at(instances=len(VALUES))
    steps = (Step("instances", len(VALUES), count=len(VALUES)),)
    replay.apply(Entry(FORMAT_VERSION, version, "", at(), after, steps, TaskConfig().to_json()))
    assert replay.positions == after
    assert replay.task is not None
    models = replay.task.models
    assert models.table.model(models.keys.slot("m")).summary().labels == 3
    said = [record.getMessage() for record in caplog.records if "replayed without" in record.getMessage()]
    if version >= ALIKE_SINCE:  # whoever wrote that refused it, too
        assert said == []
    else:
        (text,) = said
        assert text.startswith(
            "partition 3: replayed without t.instances:3:1, which an older release may read: "
        )
        assert "weight=1e+20 must be above 0 and at most 1e+09" in text
