"""Parts of a batch are batches with the same records, in every compression."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.topics.producing.idempotent.batches_read import numbers_of, records_of
from topics.columns.header_columns import HeaderColumns
from topics.columns.spans import Spans
from topics.producing.batch_encoder import BatchForm, Run, write_runs
from topics.producing.compression import CODECS
from topics.producing.idempotent.batch_parts import halves, without
from topics.producing.idempotent.numbering import LAST_EPOCH, Numbering
from topics.producing.transaction_requests import ProducerIdentity

N = 200


def written(codec: int, n: int = N) -> bytes:
    values = [None if at % 7 == 3 else b"value-%d " % at * (at % 90) for at in range(n)]
    keys = [b"k%d" % (at % 5) for at in range(n)]
    times = np.array([1_000_000 + (at * 7919) % 5000 - 100 * (at == 5) for at in range(n)])
    headers = HeaderColumns.of([[("h", b"%d" % at)] * (at % 3) for at in range(n)])
    run = Run(np.zeros(n, dtype=np.int64), Spans.of(values), Spans.of(keys), times, headers)
    form = BatchForm(7, 3, 1 << 20, codec, is_transactional=False)
    (batch,) = write_runs("t", [run], {("t", 0): 40}, form)
    return batch.wire


def content_of(wire: bytes) -> list[object]:
    return [record[1:] for record in records_of(wire)]


@pytest.mark.parametrize("codec", CODECS.values())
def test_halves_have_the_records_of_the_whole(codec: int) -> None:
    whole = written(codec)
    parts = halves(whole)
    assert [count for count, _ in parts] == [N // 2, N // 2]
    assert [record for _, part in parts for record in content_of(part)] == content_of(whole)
    for count, part in parts:
        assert [record[0] for record in records_of(part)] == [*range(count)]
        assert part[22] & 7 == codec
    assert [count for count, _ in halves(written(codec, 3))] == [1, 2]


@pytest.mark.parametrize("codec", CODECS.values())
def test_refused_records_are_left_out(codec: int) -> None:
    whole = written(codec)
    refused = {0, 5, 6, N - 1}
    ((count, part),) = without(whole, refused)
    assert count == N - 4
    expected = [record for at, record in enumerate(content_of(whole)) if at not in refused]
    assert content_of(part) == expected
    assert without(whole, range(N)) == []


def test_a_batch_gets_the_next_numbers_of_its_partition() -> None:
    whole = written(CODECS["lz4"])
    numbering = Numbering(ProducerIdentity(7, 3), 40)
    assert numbering.numbered(whole) is whole
    numbering.passed(N)
    later = numbering.numbered(whole)
    assert numbers_of(later) == (7, 3, 40 + N)
    assert content_of(later) == content_of(whole)
    following = numbering.next_epoch
    assert following is not None
    assert numbers_of(following.numbered(whole)) == (7, 4, 0)
    assert Numbering(ProducerIdentity(7, LAST_EPOCH)).next_epoch is None
    last = Numbering(ProducerIdentity(7, 3), 2**31 - 1)
    last.passed(2)
    assert last.following == 1
