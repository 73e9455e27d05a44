"""The oracle's answers: right unless asked otherwise, and the same for the same row."""

from collections import Counter

import numpy as np
import pytest

from tests.unit.topics.memory_dataset import MemoryDataset, counting
from topics.delay import Delay
from topics.errors import DatasetError
from topics.oracle.drawn_answers import Answerer, Outcome
from topics.oracle.label_index import LabelIndex
from topics.oracle.oracle_plan import OraclePlan
from topics.readers import open_dataset

N = 20_000
CLASSES = ("a", "b", "c", "d")
IDS = [str(n) for n in range(N)]


def answers(ids=IDS, dataset=None, **options):
    index = LabelIndex.read(dataset or counting(N, CLASSES))
    return Answerer(OraclePlan(**options), index).answer(ids)


def within(count, share, n=N):
    return abs(count - n * share) < 4 * np.sqrt(n * share * (1 - share))


def test_right_labels():
    given = answers()
    assert set(given.outcome) == {Outcome.LABEL}
    assert given.code.tolist() == [n % 4 for n in range(N)]
    assert set(given.delay) == {0.0}


def test_wrong_labels_are_any_of_the_others_alike():
    given = answers(error_rate=0.2)
    wrong = given.outcome == Outcome.WRONG_LABEL
    right = np.arange(N) % 4
    assert within(wrong.sum(), 0.2)
    assert np.array_equal(given.code == right, ~wrong)
    shift = Counter(((given.code - right) % 4)[wrong].tolist())
    assert set(shift) == {1, 2, 3}
    assert all(within(count, 1 / 3, int(wrong.sum())) for count in shift.values())


def test_shares_of_loss_and_refusal():
    given = answers(loss=0.1, declined=0.3, error_rate=0.5)
    counts = Counter(given.outcome.tolist())
    assert within(counts[Outcome.LOST], 0.1)
    assert within(counts[Outcome.DECLINED], 0.9 * 0.3)
    assert within(counts[Outcome.WRONG_LABEL], 0.9 * 0.7 * 0.5)
    named = given.outcome <= Outcome.WRONG_LABEL
    assert np.array_equal(given.code >= 0, named)


def test_a_row_is_treated_alike_whoever_asks_and_when():
    options = {"loss": 0.1, "declined": 0.1, "error_rate": 0.3, "delay": Delay(3, "seconds", "exponential")}
    whole = answers(**options)
    some = answers(IDS[5000:5100][::-1], **options)
    for column in ("outcome", "code", "delay"):
        assert np.array_equal(getattr(some, column), getattr(whole, column)[5000:5100][::-1])
    other = answers(seed=2, **options)
    assert not np.array_equal(other.outcome, whole.outcome)


@pytest.mark.parametrize("id_", ["20000", "-1", "", "x", "1.0", "３", "0-17", "9" * 30])
def test_ids_that_are_no_row(id_):
    given = answers(["3", id_, "4"])
    assert given.outcome.tolist() == [Outcome.LABEL, Outcome.UNKNOWN_ID, Outcome.LABEL]
    assert given.code.tolist() == [3, -1, 0]


def test_ids_with_a_prefix():
    given = answers(["run-7", "7", "run-x"], id_prefix="run-")
    assert given.outcome.tolist() == [Outcome.LABEL, Outcome.UNKNOWN_ID, Outcome.UNKNOWN_ID]
    assert given.code[0] == 3


def test_a_looping_replay_counts_on():
    given = answers([str(N), str(5 * N + 7), "x"], loop=True)
    assert given.outcome.tolist() == [Outcome.LABEL, Outcome.LABEL, Outcome.UNKNOWN_ID]
    assert given.code.tolist() == [0, 3, -1]


def test_rows_without_a_label():
    dataset = MemoryDataset([[0.0], [1.0]], [-1, 1])
    given = answers(["0", "1"], dataset, error_rate=1.0)
    assert given.outcome.tolist() == [Outcome.NO_LABEL, Outcome.WRONG_LABEL]
    assert given.code.tolist() == [-1, 0]


def test_with_one_class_no_label_can_be_wrong():
    given = answers(["0", "1"], MemoryDataset([[0.0], [1.0]], [0, 0], classes=("only",)), error_rate=1.0)
    assert given.outcome.tolist() == [Outcome.LABEL] * 2 and given.code.tolist() == [0, 0]


@pytest.mark.parametrize(("classes", "size"), [(2, 1), (128, 1), (129, 2), (1000, 2)])
def test_the_index_takes_a_byte_or_two_a_row(classes, size):
    codes = np.arange(5000) % classes
    index = LabelIndex.read(MemoryDataset(np.zeros((5000, 1)), codes, [str(c) for c in range(classes)]))
    assert index.nbytes == 5000 * size and len(index) == 5000
    assert np.array_equal(index.codes(np.arange(5000)), codes)


def test_no_rows_no_oracle():
    with pytest.raises(DatasetError, match="no rows; an oracle needs labels"):
        LabelIndex.read(MemoryDataset(np.empty((0, 1)), []))


def test_a_file_without_rows_is_named(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b,class\n")
    with pytest.raises(DatasetError, match=r"rows\.csv: has no rows"):
        LabelIndex.read(open_dataset(tmp_path / "rows.csv"))


def test_reading_the_labels_can_be_stopped():
    assert len(LabelIndex.read(counting(N), lambda: True)) < N


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": -0.1}, "loss=-0.1 must be a share"),
        ({"declined": 2}, "declined=2 must be a share"),
        ({"error_rate": float("nan")}, "error_rate=nan must be a share"),
        ({"delay": Delay(5)}, "delay=5 records must be a time"),
        ({"group_id": ""}, "group_id='' must be a name"),
        ({"limit": 0}, "limit=0 must be at least 1"),
        ({"waiting_max": 0}, "waiting_max=0 must be at least 1"),
        ({"idle_seconds": 0}, "idle_seconds=0 must be greater than 0"),
    ],
)
def test_plans_that_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        OraclePlan(**options)
