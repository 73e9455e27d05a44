"""LIBSVM files: sparse, 1-based, with comments."""

import numpy as np
import pytest

from topics.errors import DatasetError
from topics.readers import open_dataset


@pytest.fixture
def read(tmp_path):
    def reader(text, **options):
        path = tmp_path / "set.libsvm"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        dataset = open_dataset(path, "libsvm", **options)
        batches = list(dataset.batches())
        x = np.concatenate([b[0] for b in batches])
        y = np.concatenate([b[1] for b in batches])
        return dataset, x, y

    return reader


def test_sparse_rows_with_comments_blanks_and_windows_line_ends(read):
    dataset, x, y = read("# head\r\n+1 1:0.5 3:-2e1 # tail 9:9\r\n\r\n-1\t2:1 \r\n  -1   \r\n+1 3:nan")
    assert dataset.names == ("f1", "f2", "f3") and set(dataset.kinds) == {"numeric"}
    assert (dataset.target, dataset.classes) == ("class", ("-1", "1"))
    expected = np.array([[0.5, 0, -20], [0, 1, 0], [0, 0, 0], [0, 0, np.nan]])
    assert np.array_equal(x, expected, equal_nan=True)
    assert y.tolist() == [1, 0, 0, 1]
    assert dataset.rows == 4


def test_classes_are_numbered_by_value_after_a_scan(read):
    dataset, _, y = read("3 1:1\n10 1:1\n-2 1:1\n3.0 1:1\n1.5 1:1\n")
    assert dataset.classes == ("-2", "1.5", "3", "10")
    assert y.tolist() == [2, 3, 0, 2, 1]


def test_given_features_need_no_scan_and_number_classes_by_appearance(read):
    dataset, x, y = read("3 1:1\n1 2:1\n", features=4)
    assert x.shape == (2, 4)
    assert dataset.classes == ("3", "1") and y.tolist() == [0, 1]


def test_declared_classes_are_closed(read):
    assert read("1 1:1\n-1 1:1\n", classes=["+1", "-1"])[0].classes == ("1", "-1")
    with pytest.raises(DatasetError, match=r"set.libsvm:3: label 2 must be one of the 2 classes 1, -1"):
        read("1 1:1\n# c\n2 1:1\n", classes=["1", "-1"])


def test_indices_in_any_order_and_from_zero(read):
    assert read("1 3:3 1:1\n")[1].tolist() == [[1, 0, 3]]
    dataset, x, _ = read("1 0:7 2:9\n", zero_based=True)
    assert x.tolist() == [[7, 0, 9]] and dataset.names == ("f1", "f2", "f3")


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("x 1:2", "label 'x' must be one finite number"),
        ("1,2 1:2", "label '1,2' must be one finite number"),
        ("nan 1:2", "label 'nan' must be one finite number"),
        ("inf 1:2", "label 'inf' must be one finite number"),
        ("1e999 1:2", "label '1e999' must be one finite number"),
        ("1:2 3:4", "label '1:2' must be one finite number"),
        ("1 2 3:4:5", "'2' must be index:value"),
        ("1 a:2", "'a:2' must be index:value"),
        ("1 1.5:2", "'1.5:2' must be index:value"),
        ("1 -1:2", "'-1:2' must be index:value"),
        ("1 0:2", "index 0 must be at least 1; if the file counts from 0, add --zero-based"),
        ("1 1:2x", "'1:2x' must have a finite number"),
        ("1 1:", "'1:' must be index:value without a blank after the colon"),
        ("1 1: 2", "'1:' must be index:value without a blank after the colon"),
        ("1,2", "label '1,2' must be one finite number; a row has one class"),
        ("class x y", "label 'class' must be one finite number; rows look like '+1 3:1 11:0.5'"),
        ("3 5 2", "'5' must be index:value; rows look like '+1 3:1 11:0.5'"),
        ("1 1:inf", "'1:inf' must have a finite number"),
        ("1 1:1e999", "'1:1e999' must have a finite number"),
        ("1 1:2 3:4 1:5", "index 1 occurs twice"),
        ("1 qid:3 1:2", "'qid:3': ranking data cannot be read, rows are taken one by one; remove each qid:"),
        ("1 99999999:1", "index 99999999 must be at most 1000000"),
        (b"1 1:\xff", "must have a finite number"),
    ],
)
def test_bad_lines_name_file_line_and_rule(read, tmp_path, line, rule):
    raw = line if isinstance(line, bytes) else line.encode()
    with pytest.raises(DatasetError) as caught:
        read(b"1 1:1 # fine\n\n" + raw + b"\n1 1:1\n")
    assert str(caught.value).startswith(f"{tmp_path / 'set.libsvm'}:3: ")
    assert rule in str(caught.value)


def test_an_index_beyond_the_given_features_is_an_error(read):
    with pytest.raises(DatasetError, match=r":2: index 3 must be at most 2 \(features=2\)"):
        read("1 2:1\n1 3:1\n", features=2)
    with pytest.raises(DatasetError, match="features=0 must be from 1 to"):
        read("1 2:1\n", features=0)


def test_no_pair_at_all_is_an_error(read):
    with pytest.raises(DatasetError, match="no index:value in any line"):
        read("1\n-1\n")


def test_rows_without_labels_wanted(read):
    dataset, _, y = read("1 1:1\n-1 1:1\n", labelled=False)
    assert dataset.classes == () and dataset.target is None and y.tolist() == [-1, -1]


def test_very_wide_rows_come_in_small_batches(read, tmp_path):
    path = tmp_path / "wide.libsvm"
    path.write_text("".join(f"{n % 2} {n + 1}:1 400000:2\n" for n in range(100)))
    dataset = open_dataset(path)
    batches = list(dataset.batches(4096))
    assert max(x.nbytes for x, _ in batches) <= 64 << 20
    assert sum(len(y) for _, y in batches) == 100
    assert sum(x.sum() for x, _ in batches) == 300


def test_against_an_obvious_parser(read):
    """A thousand random rows, one by one."""
    rng = np.random.default_rng(7)
    lines, expected, labels = [], [], []
    for _ in range(1000):
        row = np.zeros(30)
        chosen = rng.choice(30, rng.integers(0, 8), replace=False)
        row[chosen] = rng.normal(size=len(chosen)).round(rng.integers(0, 6))
        label = int(rng.integers(0, 4))
        text = " ".join(
            f"{j + 1}:{row[j]!r}".replace("np.float64(", "").replace(")", "") for j in sorted(chosen)
        )
        lines.append(f"{label} {text}" + (" # note" if rng.random() < 0.1 else ""))
        expected.append(row)
        labels.append(label)
    _, x, y = read("\n".join(lines), features=30, classes=["0", "1", "2", "3"])
    assert np.array_equal(x, expected) and y.tolist() == labels


@pytest.mark.parametrize(
    ("text", "line", "rule"),
    [
        ("2 qid:1 1:1 2:0\n1 qid:1 1:0 2:1\n", 1, "'qid:1': ranking data cannot be read"),
        ("2 qid:1\n1 qid:2\n", 1, "'qid:1': ranking data cannot be read"),
        ("1,2 1:1\n2 1:2\n", 1, "label '1,2' must be one finite number; a row has one class"),
        ("1 1:1\n2 1:2\n1,3 2:1\n", 3, "label '1,3' must be one finite number; a row has one class"),
        ("1 1: 0.5 2:1\n0 1:1\n", 1, "'1:' must be index:value without a blank"),
        ("3 5 2\n1 1:1\n2 1:2\n", 1, "'5' must be index:value"),
        ("label a b\n1 1:1\n2 1:2\n", 1, "label 'label' must be one finite number"),
        ("1 1:0,5 2:0,25\n0 1:1,5\n", 1, "'1:0,5' has a comma; blanks separate pairs"),
        ("1 1:0.5, 2:0.25\n0 1:1.5, 2:2\n", 1, "'1:0.5,' has a comma; blanks separate pairs"),
        ("1,1:0.5,2:0.25\n0,1:1.5,2:2\n", 1, "must be a label and pairs with blanks between them"),
        ("1;1:0.5;2:0.25\n0;1:1.5;2:2\n", 1, "must be a label and pairs with blanks between them"),
        ("1 1:1\n1:2 2:3\n", 2, "label '1:2' must be one finite number; the line begins with a pair"),
        ("cat 1:1\ndog 2:1\n", 1, "label 'cat' must be one finite number"),
        ("1 1:1\r\n0 0:1\r\n", 2, "if the file counts from 0, add --zero-based"),
    ],
)
def test_files_that_break_a_rule_of_libsvm_are_not_taken_for_csv(tmp_path, text, line, rule):
    path = tmp_path / "set"
    path.write_text(text)
    with pytest.raises(DatasetError) as caught:
        list(open_dataset(path).batches())
    assert str(caught.value).startswith(f"{path}:{line}: ") and rule in str(caught.value)


@pytest.mark.parametrize(
    "text", ["x\ttime\n5\t10:30\n6\t11:15\n", "2012-01-01 10:30,1,p\n2012-01-01 11:30,2,q\n", "1 2\n3 4\n"]
)
def test_times_and_numbers_between_blanks_are_not_libsvm(tmp_path, text):
    path = tmp_path / "set"
    path.write_text(text)
    assert open_dataset(path).format == "csv"


def test_a_label_alone_is_a_row_of_zeros(tmp_path):
    path = tmp_path / "set"
    path.write_text("0\n+1\n0 2:1\n-1 # none\n")
    [(x, y)] = open_dataset(path).batches()
    assert x.tolist() == [[0, 0], [0, 0], [0, 1], [0, 0]] and y.tolist() == [1, 2, 1, 0]


@pytest.mark.parametrize("options", [{}, {"features": 1}])
def test_numbers_to_predict_are_no_classes(read, options):
    lines = "".join(f"{n / 8} 1:{n}\n" for n in range(1024)) + "\n0.125 1:1\n"
    assert len(read(lines, **options)[0].classes) == 1024
    with pytest.raises(
        DatasetError, match=r"set.libsvm:1027: label -0.5 is distinct label number 1025.*regression"
    ):
        read(lines + "-0.5 1:1\n", **options)
    assert read(lines + "-0.5 1:1\n", labelled=False, **options)[1].shape == (1026, 1)
