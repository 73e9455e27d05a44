"""Records of CSV text are cut alike by pyarrow, by the reader's own way, and in blocks of any size."""

import csv
import io

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.errors import DatasetError
from topics.readers import open_dataset, source
from topics.readers.csv.record_cells import BLANKS, QuoteError, is_regular, records
from topics.readers.csv.record_ends import RecordEnds
from topics.readers.source import LineBlock

TEXT = st.text(st.sampled_from('ab" \n,\t'), max_size=40)


def cells_of(text: str, delimiter: str = ",") -> list[list[str]]:
    return [record.cells for record in records(text, delimiter)]


@pytest.mark.parametrize(
    ("text", "cells"),  # those of pandas.read_csv, blanks around cells removed
    [
        ('6" pipe,1\n', ['6" pipe', "1"]),
        ('a "b" c,"d"e\n', ['a "b" c', "de"]),
        ('"a""b","",""""\n', ['a"b', "", '"']),
        ('"a"b"c,5"x"\n', ['ab"c', '5"x"']),
        ('" a ", b ,"b "\n', [" a ", "b", "b "]),
        (' "a, b" ,1\n', ["a, b", "1"]),
        ('"two\nlines",1\r\n', ["two\nlines", "1"]),
        ('"two\r\nlines",1', ["two\r\nlines", "1"]),
        (",,\n", ["", "", ""]),
    ],
)
def test_cells(text: str, cells: list[str]) -> None:
    assert cells_of(text) == [cells]


def test_runs_of_blanks_separate_cells_and_quotes_keep_them() -> None:
    text = '  1  "a  b"\t p \n\n2 c" "q"\n'
    assert cells_of(text, BLANKS) == [["1", "a  b", "p"], ["2", 'c"', "q"]]


def test_records_know_their_lines() -> None:
    found = list(records('a,b\n\n"1\n2",c\nd,e\n', ",", 10))
    assert [(record.line, record.end_line) for record in found] == [(10, 11), (12, 14), (14, 15)]


@given(text=TEXT, sizes=st.lists(st.integers(1, 9), min_size=40, max_size=40))
@pytest.mark.parametrize("delimiter", [",", "\t", BLANKS])
def test_pieces_of_any_size_give_the_records_of_the_whole(
    delimiter: str, text: str, sizes: list[int]
) -> None:
    ends, blocks, at = RecordEnds(delimiter), [], 0
    for size in sizes:
        blocks.append(ends.add(text[at : at + size].encode()).decode())
        at += size
        if at >= len(text):
            break
    blocks.append(ends.rest.decode())
    assert "".join(blocks) == text
    try:
        expected = cells_of(text, delimiter)
    except QuoteError as failure:
        if "never closed" in str(failure):
            lines = "".join(blocks[:-1]).count("\n")
            assert ends.opened is not None
            assert lines + blocks[-1].count("\n", 0, ends.opened) + 1 == failure.line
        return
    assert ends.opened is None
    assert [cells for block in blocks for cells in cells_of(block, delimiter)] == expected


@given(rows=st.lists(st.lists(st.text(st.sampled_from('ab", \n'), max_size=5), min_size=2, max_size=2)))
def test_what_is_regular_is_cut_alike_by_pyarrow(rows: list[list[str]]) -> None:
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\n").writerows(rows)
    text = file.getvalue()
    assert [[cell if '"' in text else cell.strip() for cell in row] for row in cells_of(text)] == [
        [cell if any(mark in cell for mark in '",\n') else cell.strip() for cell in row] for row in rows
    ]
    if text and is_regular(text.encode(), ","):
        table = pacsv.read_csv(
            pa.py_buffer(text.encode()),
            read_options=pacsv.ReadOptions(column_names=["a", "b"]),
            parse_options=pacsv.ParseOptions(newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(
                column_types={"a": pa.string(), "b": pa.string()}, strings_can_be_null=False
            ),
        )
        cut = [[cell.strip() for cell in row.values()] for row in table.to_pylist()]
        assert cut == [[cell.strip() for cell in cells] for cells in cells_of(text)]


def test_a_quote_that_swallows_lines_is_refused() -> None:
    text = 'a,b\n"6 pipe,1\nvalve,2\n5" pipe,3\n'
    with pytest.raises(QuoteError, match=r"ends on line 4, where ' pipe' follows its quote") as caught:
        cells_of(text)
    assert caught.value.line == 2


def test_no_quote_of_a_text_quotes_if_so_said() -> None:
    found = [record.cells for record in records('"a,1\nb",2\n', ",", quotes=False)]
    assert found == [['"a', "1"], ['b"', "2"]]


@pytest.mark.parametrize("marks", [[0], [59_999], [30_000], [0, 59_999], range(0, 60_000, 2)])
def test_lone_quotes_anywhere_in_a_file_of_many_blocks(tmp_path, monkeypatch, marks) -> None:
    monkeypatch.setattr(source.blocks, "__defaults__", (1 << 14, None))
    marked = set(marks)
    path = tmp_path / "set.csv"
    names = ['6" pipe' if row in marked else "valve" for row in range(60_000)]
    path.write_text("name,x,class\n" + "".join(f"{n},{i},{'pq'[i % 2]}\n" for i, n in enumerate(names)))
    dataset = open_dataset(path)
    x = np.concatenate([x for x, _ in dataset.batches()])
    assert [dataset.values[0][int(code)] for code in x[:, 0]] == names
    assert x[:, 1].tolist() == list(range(60_000))


def test_a_quote_that_is_never_closed_is_named_after_one_look_at_each_block(tmp_path) -> None:
    path = tmp_path / "set.csv"
    path.write_text("name,x,class\n" + "valve,1,p\n" * 10 + '"valve,1,p\n' + "valve,1,q\n" * 300_000)
    dataset = open_dataset(path)
    with pytest.raises(DatasetError, match=r"set.csv:12: a quote \" is opened and never closed"):
        list(dataset.batches())
    [(_, y)] = open_dataset(path, quotes=False).batches(1_000_000)
    assert len(y) == 300_011


def test_blocks_of_records_know_their_first_line(tmp_path) -> None:
    path = tmp_path / "file"
    path.write_text('a,"b\nc"\nd,e\nf,g\n')
    found = list(source.blocks(path, 4, RecordEnds(",")))
    assert found[0] == LineBlock(b'a,"b\nc"\n', 1) and found[1].line == 3
    assert b"".join(block.text for block in found) == path.read_bytes()
