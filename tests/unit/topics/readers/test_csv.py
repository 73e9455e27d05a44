"""CSV files of all the kinds people have."""

import csv
import gzip

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from topics.errors import DatasetError
from topics.readers import open_dataset

PANDAS_MISSING = [
    "",
    "#N/A",
    "#N/A N/A",
    "#NA",
    "-1.#IND",
    "-1.#QNAN",
    "-NaN",
    "-nan",
    "1.#IND",
    "1.#QNAN",
    "<NA>",
    "N/A",
    "NA",
    "NULL",
    "NaN",
    "None",
    "n/a",
    "nan",
    "null",
]


@pytest.fixture
def read(tmp_path):
    def reader(text, size=4096, **options):
        path = tmp_path / "set.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        dataset = open_dataset(path, "csv", **options)
        batches = list(dataset.batches(size))
        x = np.concatenate([b[0] for b in batches])
        y = np.concatenate([b[1] for b in batches])
        return dataset, x, y

    return reader


def test_header_numbers_words_and_the_last_column_as_class(read):
    dataset, x, y = read("height,colour,kind\n1.5,red,cat\n2,blue,dog\n-3e2,red,cat\n")
    assert dataset.header
    assert dataset.names == ("height", "colour")
    assert dataset.kinds == ("numeric", "nominal")
    assert dataset.values == ((), ("red", "blue"))
    assert dataset.open == (False, True)
    assert (dataset.target, dataset.classes, dataset.classes_open) == ("kind", ("cat", "dog"), True)
    assert x.tolist() == [[1.5, 0], [2, 1], [-300, 0]]
    assert x.dtype == np.float64 and x.flags.c_contiguous
    assert y.tolist() == [0, 1, 0] and y.dtype == np.int32
    assert dataset.rows == 3


def test_without_header_columns_are_numbered(read):
    dataset, x, y = read("1,2,a\n3,4,b\n")
    assert not dataset.header
    assert dataset.names == ("f1", "f2") and dataset.target == "f3"
    assert x.tolist() == [[1, 2], [3, 4]] and y.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("a,b,c\n1,2,3\n", True),
        ("a,b,c\nx,y,z\nx,y,w\n", True),  # no name comes again
        ("x,y,z\nx,y,w\nv,y,z\n", False),  # they do
        ("1,2,3\n4,5,6\n", False),
        ("a,2,c\nb,3,d\n", False),  # a number is no name
        ("a,?,c\nb,3,d\n", False),
        ("a,a,c\n1,2,3\n", True),  # names above numbers, though one comes twice
        ("a,a,c\nx,y,z\n", False),  # names differ
        (",b,c\n0,1,x\n1,2,y\n", True),  # the column of row numbers has no name
    ],
)
def test_header_is_found(read, text, header):
    assert read(text)[0].header is header


def test_header_can_be_said(read):
    assert read("1,2,3\n4,5,6\n", header=True)[0].names == ("1", "2")
    assert len(read("a,b,c\nd,e,f\n", header=False)[1]) == 2


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiter_is_found(read, delimiter):
    text = "a,b,c\n1,2,x\n3,4,y\n".replace(",", delimiter)
    dataset, x, _ = read(text)
    assert dataset.delimiter == delimiter
    assert x.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("said", ["tab", "\\t", "\t"])
def test_delimiter_can_be_said_in_words(read, said):
    assert read("1\t2\t3\n", delimiter=said)[1].tolist() == [[1, 2]]


def test_delimiter_must_be_one_character(read):
    with pytest.raises(DatasetError, match=r"delimiter='ab' must be one character"):
        read("1,2\n", delimiter="ab")


def test_commas_inside_words_do_not_hide_the_semicolon(read):
    dataset, x, _ = read('text;n;k\n"a, b, c";1;x\n"d, e";2;y\n')
    assert dataset.delimiter == ";"
    assert dataset.values[0] == ("a, b, c", "d, e")
    assert x[:, 1].tolist() == [1, 2]


@pytest.mark.parametrize("token", [*sorted(PANDAS_MISSING), "?", " ? ", " "])
def test_missing_values(read, token):
    dataset, x, y = read(f"a,b,k\n1,u,x\n{token},{token},y\n3,v,{token}\n")
    assert np.isnan(x[1]).all()
    assert x[2].tolist() == [3, 1]
    assert y.tolist() == [0, 1, -1]
    assert dataset.values[1] == ("u", "v") and dataset.classes == ("x", "y")


def test_blanks_around_cells_do_not_count(read):
    dataset, x, y = read("a , b,k\n 1 , u , x\n2,u,x \n")
    assert dataset.names == ("a", "b")
    assert x.tolist() == [[1, 0], [2, 0]] and y.tolist() == [0, 0]


def test_quotes_hold_delimiters_quotes_and_line_ends(read):
    dataset, x, y = read('a,"b ""x""",k\n1,"u, v",x\n2,"two\nlines",y\n3,"u, v",x\n')
    assert dataset.names == ("a", 'b "x"')
    assert dataset.values[1] == ("u, v", "two\nlines")
    assert x[:, 1].tolist() == [0, 1, 0] and y.tolist() == [0, 1, 0]


def test_windows_line_ends_byte_order_mark_and_no_line_end_at_the_end(read):
    _, x, y = read(b"\xef\xbb\xbfa,k\r\n1,x\r\n\r\n2,y")
    assert x.tolist() == [[1], [2]] and y.tolist() == [0, 1]


def test_lines_of_blanks_are_skipped(read):
    _, x, _ = read("a,b,k\n1,2,x\n   \n3,4,y\n")
    assert x.tolist() == [[1, 2], [3, 4]]


def test_numbers_written_in_other_ways(read):
    _, x, _ = read("a,k\n+1,x\n.5,x\n2.,x\n1E3,x\n-0,x\n")
    assert x[:, 0].tolist() == [1, 0.5, 2, 1000, 0]


def test_class_names_are_canonical_so_that_files_and_records_agree(read):
    dataset, _, y = read("a,k\n1,+1\n2,-1\n3,1.0\n4,2.50\n5,007\n")
    assert dataset.classes == ("1", "-1", "2.50", "007")
    assert y.tolist() == [0, 1, 0, 2, 3]


@pytest.mark.parametrize("target", ["k", 0, "0", -3])
def test_target_by_name_or_index(read, target):
    dataset, x, y = read("k,a,b\nx,1,2\ny,3,4\n", target=target)
    assert (dataset.target, dataset.names) == ("k", ("a", "b"))
    assert x.tolist() == [[1, 2], [3, 4]] and y.tolist() == [0, 1]


def test_the_column_class_is_the_target_before_one_that_is_called_so_in_other_letters(read):
    assert read("a,b,Class,class\n1,2,x,p\n2,3,y,q\n")[0].classes == ("p", "q")
    assert read("CLASS,a,Class\np,2,x\nq,3,y\n")[0].target == "CLASS"


def test_wrong_target_lists_the_columns(read):
    with pytest.raises(
        DatasetError, match=r"target='clas' must name one of the 3 columns .*'class'.*: a, b, class"
    ):
        read("a,b,class\n1,2,x\n", target="clas")
    with pytest.raises(DatasetError, match="index from 0 to 2"):
        read("a,b,class\n1,2,x\n", target=3)


def test_rows_without_a_class(read):
    dataset, x, y = read("1,2\n3,4\n", labelled=False)
    assert (dataset.target, dataset.names, dataset.classes) == (None, ("f1", "f2"), ())
    assert x.tolist() == [[1, 2], [3, 4]] and y.tolist() == [-1, -1]


def test_nominal_numbers_with_and_without_a_list(read):
    text = "day,n,k\n3,1,x\n1,2,y\n3,1,x\n"
    dataset, x, _ = read(text, nominal=["day"])
    assert dataset.values == (("3", "1"), ()) and dataset.open == (True, False)
    assert x[:, 0].tolist() == [0, 1, 0]
    dataset, x, _ = read(text, nominal={"day": ["1", "2", "3"]})
    assert dataset.values == (("1", "2", "3"), ()) and dataset.open == (False, False)
    assert x[:, 0].tolist() == [2, 0, 2]


def test_columns_can_be_left_out(read):
    dataset, x, _ = read("id,a,k,note\nz1,1,x,long\nz2,2,y,text\n", ignore=["id", "note"])
    assert dataset.names == ("a",) and dataset.target == "k"
    assert x.tolist() == [[1], [2]]


def test_classes_can_be_declared(read):
    dataset, _, y = read("a,k\n1,y\n2,x\n", classes=["x", "y", "z"])
    assert dataset.classes == ("x", "y", "z") and not dataset.classes_open
    assert y.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("text", "options", "line", "rule"),
    [
        ("a,b,k\n1,2,x\n1,2\n", {}, 3, "2 values, expected 3 separated by ','"),
        ("a,b,k\n1,2,x\n\n1,2,x,4\n", {}, 4, "4 values, expected 3"),
        ("a,k\n1,x\n1e999,x\n", {}, 3, "a='1e999' must be a finite number"),
        ("a,k\n1,x\ninf,x\n", {}, 3, "a='inf' must be a finite number (or ? for missing)"),
        ("a,b,k\n1,-Infinity,x\n", {}, 2, "b='-Infinity' must be a finite number (or ? for missing)"),
        ("a,k\n1,x\n2,w\n", {"classes": ["x", "y"]}, 3, "k='w' must be one of its declared values: x, y"),
        (
            "a,k\n1,x\n3,x\n",
            {"nominal": {"a": ["1", "2"]}},
            3,
            "a='3' must be one of its declared values: 1, 2",
        ),
        (b"a,k\n1,x\n2,\xe4\n", {}, 3, "byte 0xe4 is not UTF-8"),
        ('a,k\n1,x\n2,"y\n', {}, 3, "opened and never closed"),
    ],
)
def test_what_is_wrong_names_file_line_and_rule(read, tmp_path, text, options, line, rule):
    with pytest.raises(DatasetError) as caught:
        read(text, **options)
    assert str(caught.value).startswith(f"{tmp_path / 'set.csv'}:{line}: ")
    assert rule in str(caught.value)


def test_infinity_among_words_is_a_word(read):
    dataset, x, _ = read("a,k\nsup,x\ninf,y\nsup,x\n")
    assert x.T.tolist() == [[0, 1, 0]]
    assert dataset.values == (("sup", "inf"),)


def test_a_word_far_down_in_a_column_of_numbers_is_found(read):
    text = "a,b,k\n" + "1,2,x\n" * 400_000 + "1,oops,x\n"
    with pytest.raises(
        DatasetError, match=r"set.csv:400002: b='oops' must be a number .*declare it nominal .--nominal"
    ):
        read(text)


def test_a_column_of_identifiers_is_refused_before_it_fills_memory(read):
    text = "id,k\n" + "".join(f"u{n},x\n" for n in range(100_001))
    with pytest.raises(DatasetError, match=r":100002: id='u100000' .*at most 100000: leave the column out"):
        read(text)


def test_a_target_with_too_many_values_is_no_class(read):
    text = "a,price\n" + "".join(f"1,{n}.5\n" for n in range(1025))
    with pytest.raises(DatasetError, match=r":1026: price='1024.5' is distinct value number 1025"):
        read(text)


def test_decimal_commas_are_not_taken_for_words(read):
    with pytest.raises(
        DatasetError, match=r"column 'b' has decimal commas such as '1,5'; read them with --decimal ,"
    ):
        read("a;b;k\n1;1,5;x\n2;2,25;y\n")
    assert read("a;b;k\n1;1,5;x\n2;blue;y\n")[0].values[1] == ("1,5", "blue")


def test_a_name_that_comes_twice_is_numbered_as_by_pandas(read):
    dataset, _, _ = read("a,a,b,a.1,k\n1,2,3,4,x\n2,3,4,5,y\n")
    assert dataset.names == ("a", "a.2", "b", "a.1") and dataset.header


def test_several_files_are_one_set(tmp_path):
    first, second = tmp_path / "1.csv", tmp_path / "2.csv.gz"
    first.write_text("a,c,k\n1,u,x\n")
    second.write_bytes(gzip.compress(b"a,c,k\n2,v,y\n3,u,x\n"))
    dataset = open_dataset([first, second])
    [(x, y)] = dataset.batches()
    assert x.tolist() == [[1, 0], [2, 1], [3, 0]] and y.tolist() == [0, 1, 0]
    second.write_text("a,d,k\n2,v,y\n")
    with pytest.raises(
        DatasetError, match=r"2.csv.gz:1: columns a, d, k must be the columns of .*1.csv: a, c, k"
    ):
        list(dataset.batches())


def test_batches_have_the_asked_size_and_can_begin_anywhere(read):
    text = "a,k\n" + "".join(f"{n},c{n % 3}\n" for n in range(100))
    dataset, _x, y = read(text, size=7)
    assert [len(b[1]) for b in dataset.batches(7)] == [7] * 14 + [2]
    for start in (0, 1, 50, 99, 100, 500):
        later = list(dataset.batches(7, start))
        assert [v for b in later for v in b[0][:, 0]] == list(range(start, 100))
        assert [c for b in later for c in b[1]] == y[start:].tolist()


def test_starting_late_gives_the_same_codes_as_reading_all(tmp_path):
    path = tmp_path / "set.csv"
    path.write_text("c,k\n" + "".join(f"v{n},c{n % 5}\n" for n in range(50)))
    whole = next(iter(open_dataset(path).batches(1000)))
    late = next(iter(open_dataset(path).batches(1000, 30)))
    assert np.array_equal(whole[0][30:], late[0]) and np.array_equal(whole[1][30:], late[1])


def test_reading_again_gives_the_same(read):
    dataset, x, y = read("c,k\nu,a\nv,b\nu,a\n")
    [(x2, y2)] = dataset.batches()
    assert np.array_equal(x, x2) and np.array_equal(y, y2)


def test_description(read):
    dataset, _, _ = read("a,c,k\n1,u,x\n")
    described = dataset.describe()
    assert (described.format, described.target, described.classes, described.rows) == ("csv", "k", ("x",), 1)
    assert [(a.name, a.kind, a.values, a.open) for a in described.attributes] == [
        ("a", "numeric", (), False),
        ("c", "nominal", ("u",), True),
    ]


def test_no_rows_below_a_header(read, tmp_path):
    path = tmp_path / "empty.csv"
    path.write_text("a,b,k\n")
    with pytest.raises(DatasetError, match=r"empty\.csv: has no rows; name a file with at least one"):
        list(open_dataset(path, header=True).batches())


CELL = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**6), 10**6).map(str),
    st.sampled_from(["", "?", "NA"]),
)
WORD = st.text(st.sampled_from("ab ,;\"'\n\té€|"), min_size=1, max_size=6).map(lambda w: "w" + w + "w")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    rows=st.lists(st.tuples(CELL, WORD, st.sampled_from(["x", "y"])), min_size=1, max_size=30), data=st.data()
)
def test_whatever_a_csv_writer_writes_is_read_back(tmp_path, rows, data):
    path = tmp_path / "set.csv"
    delimiter = data.draw(st.sampled_from(",;\t|"))
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=end)
        writer.writerow(["number", "word", "kind"])
        writer.writerows(rows)
    dataset = open_dataset(path, "csv", delimiter=delimiter, header=True)
    x, y = (np.concatenate(column) for column in zip(*dataset.batches(7), strict=True))
    expected = [np.nan if cell in ("", "?", "NA") else float(cell) for cell, *_ in rows]
    assert np.array_equal(x[:, 0], expected, equal_nan=True)
    assert [dataset.values[1][int(code)] for code in x[:, 1]] == [word for _, word, _ in rows]
    assert [dataset.classes[code] for code in y] == [kind for *_, kind in rows]
