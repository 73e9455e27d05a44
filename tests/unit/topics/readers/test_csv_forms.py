"""Forms of CSV files as people and programs write them: read as the tool of the field reads them, or refused
with the option that helps."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from topics.errors import DatasetError
from topics.readers import FileDataset, open_dataset, source


def opened(tmp_path: Path, text: str | bytes, **options: Any) -> FileDataset:
    path = tmp_path / "set.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return open_dataset(path, **options)


def rows_of(dataset: FileDataset) -> list[list[Any]]:
    """Return the rows with words for codes, None where missing, the class last."""
    rows = []
    for x, y in dataset.batches():
        for row, code in zip(x, y, strict=True):
            cells: list[Any] = [
                None if np.isnan(cell) else dataset.values[j][int(cell)] if dataset.values[j] else float(cell)
                for j, cell in enumerate(row)
            ]
            rows.append([*cells, dataset.classes[code] if code >= 0 else None])
    return rows


ROWS = [[1.0, 2.0, "p"], [2.0, 3.0, "q"]]


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ("Port, A, B, A, L\n80,1,2,1,p\n", ("Port", "A", "B", "A.1"), [[80, 1, 2, 1, "p"]]),  # pandas
        ("NA,null,class\n1,2,p\n2,3,q\n", ("NA", "null"), ROWS),  # sodium is a name above numbers
        (",0,1,class\n0,1.5,2,p\n1,2,3,q\n", ("f1", "0", "1"), [[0, 1.5, 2, "p"], [1, 2, 3, "q"]]),  # pandas
        ("label,0,1\n5,1,2\n", ("label", "0"), [[5, 1, "2"]]),
        ("0,1,2\n0.5,1,p\n0.25,2,q\n", ("0", "1"), [[0.5, 1, "p"], [0.25, 2, "q"]]),  # pandas
        (",0,1\n57,0.5,p\n3,0.25,q\n", ("f1", "0"), [[57, 0.5, "p"], [3, 0.25, "q"]]),  # pandas, shuffled
        ("400.5,401,class\n1,2,p\n2,3,q\n", ("400.5", "401"), ROWS),  # wavelengths
        ("7,7,class\n1,2,p\n2,3,q\n", ("7", "7.1"), ROWS),  # a class column names itself
        ("0,1,2\n1,2,3\n", ("f1", "f2"), [[0, 1, "2"], [1, 2, "3"]]),  # may be rows as well
        ("1,2,p\n2,3,q\n", ("f1", "f2"), ROWS),
        ("2020-01-01,p\n2020-02-01,q\n", ("f1",), [["2020-01-01", "p"], ["2020-02-01", "q"]]),
        ("x,y,class\nx,y,z\n", ("x", "y"), [["x", "y", "z"]]),
    ],
)
def test_headers(tmp_path: Path, text: str, names: tuple[str, ...], rows: list[list[Any]]) -> None:
    if text.startswith("x,y,class\nx"):  # a word that comes again as a value of its column names nothing
        assert opened(tmp_path, text).names == ("f1", "f2")
        text = text.replace("x,y,z", "a,b,z")
        rows = [["a", "b", "z"]]
    dataset = opened(tmp_path, text)
    assert dataset.names == names
    assert rows_of(dataset) == rows


@pytest.mark.parametrize(
    "text",
    [
        "sep=;\nx;y;class\n1;2;p\n2;3;q\n",  # Excel
        b'\xef\xbb\xbf"sep=;"\r\nx;y;class\r\n1;2;p\r\n2;3;q\r\n',
        "# exported\n# by someone\n\nx,y,class\n1,2,p\n2,3,q\n",
        "% exported\nx,y,class\n1,2,p\n2,3,q\n",
        "Report of 2020\n\nx,y,class\n1,2,p\n2,3,q\n",
        "x,y,class,\n1,2,p,\n2,3,q,\n",
        "x,y,class,,,\n1,2,p,,,\n2,3,q,,,\n",
        "x,y,class\n1,2,p,\n2,3,q,\n",
        "x,y,class,\n1,2,p\n2,3,q\n",
        "x\ty\tclass\n1\t2\tp\n2\t3\tq\n",
        "x y class\n1  2  p\n2 3\tq\n",
        '"x" "y" "class"\n"1" 1 2 "p"\n"2" 2 3 "q"\n',  # write.table of R
        "  1   2  p\n  2   3  q \n",  # Statlog
        "x,y,class\r1,2,p\r2,3,q\r",
    ],
)
def test_lines_around_rows_and_what_separates_cells(tmp_path: Path, text: str | bytes) -> None:
    dataset = opened(tmp_path, text)
    assert rows_of(dataset) == ROWS
    assert dataset.target in ("class", "f3")


def test_each_file_of_a_set_may_have_lines_before_its_header(tmp_path: Path) -> None:
    first, second = tmp_path / "1.csv", tmp_path / "2.csv.gz"
    first.write_text("# one\nx,y,class\n1,2,p\n")
    second.write_bytes(gzip.compress(b"# one\n# two\n\nx,y,class\n2,3,q\n"))
    assert rows_of(open_dataset([first, second])) == ROWS


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('x,y,class\n"1,234",1,p\n"1,234,567",2,q\n', {"thousands": ","}),
        ("x;y;class\n1.234;1;p\n1.234.567,0;2;q\n", {"decimal": ",", "thousands": "."}),
        ("x;y;class\n1 234;1;p\n1 234 567;2;q\n", {"thousands": "space"}),
        ("x;y;class\n1'234;1;p\n1\u2019234\u2019567;2;q\n", {"thousands": "'"}),
    ],
)
def test_forms_of_numbers(tmp_path: Path, text: str, options: dict[str, str]) -> None:
    assert rows_of(opened(tmp_path, text, **options)) == [[1234.0, 1.0, "p"], [1234567.0, 2.0, "q"]]
    with pytest.raises(DatasetError, match=f"column 'x' has thousands.*--thousands|{options['thousands']}"):
        opened(tmp_path, text)


def test_decimal_commas(tmp_path: Path) -> None:
    text = "1,5;2;p\n2,25;,5;q\n"
    assert rows_of(opened(tmp_path, text, decimal=",")) == [[1.5, 2.0, "p"], [2.25, 0.5, "q"]]
    with pytest.raises(DatasetError, match=r"column 'f1' has numbers such as '2\.25' that do not fit"):
        opened(tmp_path, text.replace("2,25", "2.25"), decimal=",")
    late = "x;class\n" + "1,5;p\n" * 6000 + "2.25;p\n"
    with pytest.raises(DatasetError, match=r"set\.csv:6002: x='2\.25' must be a number"):
        rows_of(opened(tmp_path, late, decimal=","))


def test_a_number_with_one_comma_may_be_either(tmp_path: Path) -> None:
    with pytest.raises(DatasetError) as caught:
        opened(tmp_path, 'x,class\n"1,234",p\n"12,345",q\n')
    assert "thousands separators (--thousands ,)" in str(caught.value)
    assert "--decimal ," in str(caught.value) and "write numbers" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"decimal": ";"}, "decimal=';' must be . or ,"),
        ({"thousands": "x"}, "thousands='x' must be one of , . ' _ or the word space"),
        ({"decimal": ",", "thousands": ","}, "thousands=',' must differ from the decimal sign"),
        ({"skip_lines": -1}, "skip_lines=-1 must be at least 0"),
        ({"delimiter": "\u00a7"}, "must be one character such as"),
    ],
)
def test_options_are_checked(tmp_path: Path, options: dict[str, Any], rule: str) -> None:
    with pytest.raises(DatasetError) as caught:
        opened(tmp_path, "x,class\n1,p\n", **options)
    assert rule in str(caught.value)


def test_words_for_missing_values_can_be_said(tmp_path: Path) -> None:
    text = "x,class\n-999,None\n.,p\n2,q\n"
    assert rows_of(opened(tmp_path, text, missing=[".", "-999"])) == [[None, "None"], [None, "p"], [2.0, "q"]]


def test_a_word_for_a_missing_class_is_a_guess(tmp_path: Path) -> None:
    dataset = opened(tmp_path, "x,class\n1,None\n2,p\n3,q\n")
    assert rows_of(dataset)[0] == [1.0, None]  # pandas
    assert dataset.guesses == ("'None' in column 'class' is a missing value (else --missing '?')",)


@pytest.mark.parametrize("word", ["Total", "n.a.", ".", "-", "#DIV/0!"])
def test_a_rare_word_among_numbers_is_refused_with_its_line(tmp_path: Path, word: str) -> None:
    text = f"x,y,class\n1,2,p\n2,3,q\n3,4,p\n{word},9,\n"
    with pytest.raises(DatasetError) as caught:
        opened(tmp_path, text)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'set.csv'}:5: x={word!r} is a word in a column of numbers")
    assert f"--missing {word!r}" in message and "--nominal x" in message
    assert rows_of(opened(tmp_path, text, missing=[word]))[3] == [None, 9.0, None]
    assert rows_of(opened(tmp_path, text, nominal=["x"]))[3] == [word, 9.0, None]


def test_words_that_are_not_rare_make_a_column_nominal_and_that_is_said(tmp_path: Path) -> None:
    dataset = opened(tmp_path, "x,class\n" + "250,p\nV57,q\n1,p\n" * 5)
    assert dataset.kinds == ("nominal",)
    [guess] = dataset.guesses
    assert guess == (
        "column 'x' is nominal, because 5 of its first 15 cells are words such as 'V57' (else --missing)"
    )


def test_quoted_blanks_and_marks_count(tmp_path: Path) -> None:
    text = 'x,class\n" a",p\na , q\n"a ","q"\n'
    assert rows_of(opened(tmp_path, text)) == [[" a", "p"], ["a", "q"], ["a ", "q"]]


def test_an_empty_last_column_is_not_the_target(tmp_path: Path) -> None:
    dataset = opened(tmp_path, "x,label,note\n1,p,\n2,q,\n")
    assert dataset.target == "label" and dataset.names == ("x", "note")
    assert dataset.guesses == ("column 'note' is empty and not the target",)
    dataset = opened(tmp_path, "x,label,,\n1,p,,\n2,q,,late\n")
    assert dataset.target == "label"


def test_a_value_after_the_last_delimiter_far_down_is_refused(tmp_path: Path) -> None:
    dataset = opened(tmp_path, "x,y,label,\n" + "1,2,p,\n" * 6000 + "1,2,p,oops\n")
    with pytest.raises(DatasetError, match=r"set\.csv:6002: 'oops' stands in column 4, which has no name"):
        rows_of(dataset)


@pytest.mark.parametrize(
    ("text", "line", "rule"),
    [
        (
            "Report, 2020\nx,y,class\n1,2,p\n2,3,q\n",
            1,
            "before the header or the first row with --skip-lines 1",
        ),
        ("x,y,class\n1,2,p\nx,y,class\n2,3,q\n", 3, "the header comes again as a row; delete this line"),
        ("x,y,class\n" + "1,2,p\n" * 6000 + "x,y,class\n", 6002, "the header comes again as a row"),
        ("x,y,class\n1,2,p\n2,3,q\n3,4\n", 4, "2 values, expected 3 separated by ','"),
        ("x,y,class\n1,2,p\n2,3,q\n3,4\n", 4, "leave an empty cell for a missing value"),
        ("x,y,class\n1,2,p\n2,3,q\n3,4,5,q\n", 4, "put a value that holds the delimiter in quotes"),
        ("x,y,class\n1,2,p\n# note\n2,3,q\n", 3, "delete the line if it is a comment or a note"),
        ("1 2 p\n2 3 q\n3 4\n", None, "is one value"),
        (
            "x y class\n" + "1 2 p\n" * 300 + "3 4\n",
            302,
            "2 values, expected 3 separated by blanks; write NA",
        ),
        ('"x,y,class"\n"1,2,p"\n"2,3,q"\n', 2, "remove the quotes around the lines"),
        ("x^y^class\n1^2^p\n2^3^q\n", 2, "name the delimiter (--delimiter)"),
        ("x\x01y\x01class\n1\x012\x01p\n2\x013\x01q\n", 2, "name the delimiter (--delimiter)"),
    ],
)
def test_lines_of_other_length_or_kind_are_refused(
    tmp_path: Path, text: str, line: int | None, rule: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        rows_of(opened(tmp_path, text))
    assert rule in str(caught.value)
    assert line is None or f"set.csv:{line}: " in str(caught.value)


def test_lines_before_the_header_can_be_counted(tmp_path: Path) -> None:
    assert rows_of(opened(tmp_path, "Report, 2020\nx,y,class\n1,2,p\n2,3,q\n", skip_lines=1)) == ROWS
    dataset = opened(tmp_path, "#a,0,p\nb,1,p\nc,2,q\n", skip_lines=0, header=False)
    assert rows_of(dataset) == [["#a", 0.0, "p"], ["b", 1.0, "p"], ["c", 2.0, "q"]]


def test_a_delimiter_that_separates_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        DatasetError, match=r"set\.csv:2: '1,p' is one value where cells are separated by ';'"
    ):
        opened(tmp_path, "x,class\n1,p\n2,q\n", delimiter=";")


def test_totals_below_the_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"set\.csv:5: x='Mean' is a word in a column of numbers"):
        opened(tmp_path, "x,y,class\n1,2,p\n2,3,q\n3,4,q\nMean,3,\nTotal,9,\n")


def test_a_file_of_words_alone_may_have_no_header(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="has no rows below its header; .* --no-header"):
        opened(tmp_path, "p,q,r\n")
    assert rows_of(opened(tmp_path, "p,q,r\n", header=False)) == [["p", "q", "r"]]


@pytest.mark.parametrize("size", [16, 61, 1 << 20])
def test_blocks_of_any_size_give_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(source.blocks, "__defaults__", (size, None))
    text = (
        '# title\nname,x,class\n6" pipe,1,p\n" two\nlines",2,q\nvalve,NA,p\n"a ""b""", 4 ,q\n' + "v,5,p\n" * 9
    )
    rows = rows_of(opened(tmp_path, text))
    assert rows[:4] == [
        ['6" pipe', 1.0, "p"],
        [" two\nlines", 2.0, "q"],
        ["valve", None, "p"],
        ['a "b"', 4.0, "q"],
    ]
    assert rows[4:] == [["v", 5.0, "p"]] * 9


@pytest.mark.parametrize("word", ["NAN", "Nan", "+nan", "oops"])
def test_a_word_far_down_is_refused_as_in_the_first_rows(tmp_path: Path, word: str) -> None:
    dataset = opened(tmp_path, "x,class\n" + "1,p\n" * 6000 + f"{word},q\n")
    with pytest.raises(DatasetError, match=r"set\.csv:6002: x='.*' must be a number .*--missing"):
        rows_of(dataset)
    with pytest.raises(DatasetError, match=r"set\.csv:4: x='.*' is a word in a column of numbers"):
        opened(tmp_path, f"x,class\n1,p\n2,q\n{word},q\n")


def test_words_for_missing_values_that_are_said_replace_the_others_everywhere(tmp_path: Path) -> None:
    dataset = opened(tmp_path, "x,class\n" + "1,p\n" * 6000 + "nan,q\n", missing=["?"])
    with pytest.raises(DatasetError, match=r"set\.csv:6002: x='nan' must be a number"):
        rows_of(dataset)


def test_a_number_of_another_form_below_the_first_rows_is_refused_with_its_option(tmp_path: Path) -> None:
    text = "x,class\n" + "1.5,p\n" * 6000 + '"1,234.5",q\n'
    with pytest.raises(DatasetError, match=r"set\.csv:6002: x='1,234.5' must be a number.*--thousands ,"):
        rows_of(opened(tmp_path, text))
    text = "x;class\n" + "1,5;p\n" * 6000 + "1.5;q\n"
    with pytest.raises(DatasetError, match=r"set\.csv:6002: x='1.5' .* do not fit --decimal"):
        rows_of(opened(tmp_path, text, decimal=","))


def test_values_in_apostrophes_are_told_and_refused_where_they_are_cut(tmp_path: Path) -> None:
    dataset = opened(tmp_path, "x,'y',class\n'1',2,p\n'2',3,q\n")
    assert rows_of(dataset) == [["'1'", 2.0, "p"], ["'2'", 3.0, "q"]]  # as pandas reads them
    assert any("apostrophes are part of values such as '1' in column 'x'" in told for told in dataset.guesses)
    with pytest.raises(DatasetError, match=r"set\.csv:2: \"'1\" and \"234'\" are two cells, because apostro"):
        opened(tmp_path, "x,y,class\n'1,234',1,p\n'3,200',2,q\n")
    rows = rows_of(opened(tmp_path, "a,b,class\n'tis,dogs',p\nit,cats,q\n"))
    assert rows == [["'tis", "dogs'", "p"], ["it", "cats", "q"]]


@pytest.mark.parametrize("cell", ["(5)", "<5", "5 kg", "1_000", "0x1F", "\u22121", "¥5", "12%", "$5"])
def test_numbers_for_people_are_words_and_told(tmp_path: Path, cell: str) -> None:
    dataset = opened(tmp_path, f"x,class\n{cell},p\n{cell.replace('1', '2').replace('5', '6')},q\n")
    assert rows_of(dataset)[0] == [cell, "p"]
    assert any("cells such as" in told and "are no numbers" in told for told in dataset.guesses)


@pytest.mark.parametrize("lines", ["Report 2020,,\n", ",,\n", "Report 2020,,\n,,\n", "Report,,\nby us,,\n\n"])
def test_titles_with_delimiters_of_a_spreadsheet_are_left_out(tmp_path: Path, lines: str) -> None:
    dataset = opened(tmp_path, lines + "x,y,class\n1,2,p\n2,3,q\n")
    assert rows_of(dataset) == ROWS
    assert any("lines before the header are left out" in told for told in dataset.guesses)
    words = opened(tmp_path, lines + "x,y,class\na,b,p\nc,d,q\n")
    assert words.names == ("x", "y") and rows_of(words) == [["a", "b", "p"], ["c", "d", "q"]]


def test_rows_and_headers_without_values_are_no_titles(tmp_path: Path) -> None:
    assert rows_of(opened(tmp_path, "x,,\n1,2,p\n2,3,q\n", target=2)) == ROWS
    assert len(rows_of(opened(tmp_path, "5,,\n1,2,p\n2,3,q\n"))) == 3


def test_a_header_that_is_taken_for_a_row_has_its_remedy(tmp_path: Path) -> None:
    with pytest.raises(
        DatasetError, match=r"set\.csv:1: f1='Id' .* add --header if this line holds the names"
    ):
        opened(tmp_path, "Id,a,Class\n1,2,Class\n2,3,q\n")
