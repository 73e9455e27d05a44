"""Effects of records that were processed one by one, joined to those of their run."""

from __future__ import annotations

from streamapp.worker.task.effects.effects import join
from tests.topology.partition import ALWAYS, Partition, config


def test_joined_effects_are_those_of_the_whole_run() -> None:
    documents = [{"features": {"x": i}} | ({"label": "ab"[i % 2]} if i % 3 else {}) for i in range(9)]
    given = config(ALWAYS | {"evaluation": {"every": 2}})
    whole, single = Partition(given), Partition(given)
    expected = whole.instances(*documents)
    joined = join((i, single.instances(document)) for i, document in enumerate(documents))
    assert joined.counts == expected.counts
    assert joined.splits == expected.splits
    assert [each.record for each in joined.evaluations] == [each.record for each in expected.evaluations]
    assert joined.evaluations
    ids = {
        record: name
        for a in joined.answers
        for record, name in zip(a.record.tolist(), a.predictions.ids, strict=True)
    }
    assert ids == {i: f"3-{i}" for i in range(9)}
    assert [r.record.tolist() for r in joined.requests] == [[0], [3], [6]]
