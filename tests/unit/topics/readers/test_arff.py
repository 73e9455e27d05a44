"""ARFF files as Weka and MOA write them, and as people do.

Values that are said to be Weka's are those of weka.core.converters.ArffLoader, weka-dev 3.9.6.
"""

import numpy as np
import pytest

from topics.errors import DatasetError
from topics.readers import open_dataset

HEADER = """% a comment
@RELATION 'two words'

@attribute height REAL
@Attribute 'main colour' {red, 'light blue', "it's"}
@ATTRIBUTE n integer [0,10]
@attribute kind{cat,dog}   % what it is
@data
"""


@pytest.fixture
def read(tmp_path):
    def reader(text, **options):
        path = tmp_path / "set.arff"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        dataset = open_dataset(path, "arff", **options)
        batches = list(dataset.batches())
        x = np.concatenate([b[0] for b in batches])
        y = np.concatenate([b[1] for b in batches])
        return dataset, x, y

    return reader


def equal(x, rows):
    return np.array_equal(x, np.array(rows, dtype=float), equal_nan=True)


def test_header_with_quotes_comments_and_any_case(read):
    dataset, x, y = read(HEADER + "1.5,red,3,cat\n")
    assert dataset.names == ("height", "main colour", "n")
    assert dataset.kinds == ("numeric", "nominal", "numeric")
    assert dataset.values == ((), ("red", "light blue", "it's"), ())
    assert dataset.open == (False, False, False)
    assert (dataset.target, dataset.classes, dataset.classes_open) == ("kind", ("cat", "dog"), False)
    assert x.tolist() == [[1.5, 0, 3]] and y.tolist() == [0]


def test_rows_with_quotes_escapes_blanks_comments_and_missing_values(read):
    _, x, y = read(
        HEADER
        + "1, 'light blue' , 3 ,dog\n"
        + '2,"it\'s",?,?\n'
        + "% between\n"
        + "  3 ,'it\\'s', 4, 'cat'   % behind\n"
        + "\n"
        + "?,?,?,dog\n"
        + "-1.5e2 red 2 cat\n"  # blanks separate where there is no comma
    )
    nan = np.nan
    assert equal(x, [[1, 1, 3], [2, 2, nan], [3, 2, 4], [nan, nan, nan], [-150, 0, 2]])
    assert y.tolist() == [1, -1, 0, 1, 0]


def test_plain_rows_and_the_slow_way_agree(read):
    rows = "".join(
        f"{n / 8},{'red' if n % 3 else '?'},{n % 10},{'cat' if n % 2 else 'dog'}\n" for n in range(500)
    )
    _, x, y = read(HEADER + rows)
    _, slow_x, slow_y = read(HEADER + "% one comment sends the block the slow way\n" + rows)
    assert np.array_equal(x, slow_x, equal_nan=True) and np.array_equal(y, slow_y)
    assert np.isnan(x[:, 1]).sum() == 167


def test_windows_line_ends(read):
    text = HEADER + "1,red,3,cat\n2,'light blue',4,dog\n"
    dataset, x, y = read(text.replace("\n", "\r\n"))
    assert dataset.names == ("height", "main colour", "n")
    assert x.tolist() == [[1, 0, 3], [2, 1, 4]] and y.tolist() == [0, 1]


def test_sparse_rows(read):
    _, x, y = read(
        HEADER
        + "{0 1.5, 1 'light blue', 3 dog}\n{}\n{ 2 7 }\n{1 ?, 2 ?}  % comment\n4,red,5,dog\n{0 2,3 ?}\n"
    )
    nan = np.nan
    assert equal(x, [[1.5, 1, 0], [0, 0, 0], [0, 0, 7], [0, nan, nan], [4, 0, 5], [2, 0, 0]])
    assert y.tolist() == [1, 0, 0, 0, 1, -1]


def test_class_attribute_by_name_else_the_last(read):
    text = "@relation r\n@attribute CLASS {a,b}\n@attribute x real\n@attribute z real\n@data\nb,1,2\n"
    dataset, x, y = read(text)
    assert dataset.target == "CLASS" and dataset.names == ("x", "z")
    assert x.tolist() == [[1, 2]] and y.tolist() == [1]
    assert read(text.replace("CLASS", "other"))[0].target == "z"
    assert read(text.replace("CLASS", "other"), target="other")[0].target == "other"
    assert read(text, target=-1)[0].target == "z"


def test_numeric_class_is_discovered(read):
    dataset, _, y = read("@relation r\n@attribute x real\n@attribute class real\n@data\n1,2\n1,1.0\n1,2.0\n")
    assert (dataset.classes, dataset.classes_open) == (("2", "1"), True)
    assert y.tolist() == [0, 1, 0]


def test_words_that_mean_missing_elsewhere_are_values_here(read):
    text = "@relation r\n@attribute a {NA, null, x}\n@attribute b real\n@attribute k {y,NA}\n@data\n"
    for comment in ("", "% slow\n"):
        _, x, y = read(text + comment + "NA,1,NA\nnull,NaN,y\n")
        assert equal(x, [[0, 1], [1, np.nan]])
        assert y.tolist() == [1, 0]


def test_string_attributes_are_refused_or_left_out(read):
    kinds = ["note string", "d date 'yyyy'", "x real", "k {a,b}"]
    text = "@relation r\n" + "".join(f"@attribute {kind}\n" for kind in kinds)
    rows = "@data\n'some, text',2001,1,a\n\"more\",'2002',2,b\n"
    with pytest.raises(
        DatasetError, match=r"set.arff:2: attribute 'note' is of kind string.*ignore='note' \(--ignore\)"
    ):
        read(text + rows)
    with pytest.raises(DatasetError, match=r"set.arff:3: attribute 'd' is of kind date"):
        read(text + rows, ignore="note")
    dataset, x, y = read(text + rows, ignore=["note", "d"])
    assert dataset.names == ("x",) and x.tolist() == [[1], [2]] and y.tolist() == [0, 1]


def test_rows_without_a_class(read):
    dataset, x, y = read(HEADER + "1,red,3,dog\n", labelled=False)
    assert dataset.names[-1] == "kind" and dataset.target is None
    assert x.tolist() == [[1, 0, 3, 1]] and y.tolist() == [-1]


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ("1,red,3", "3 values, expected 4"),
        ("1,red,3,cat,9", "5 values, expected 4"),
        ("x,red,3,cat", "height='x' must be a number"),
        ("1_0,red,3,cat", "height='1_0' must be a number"),
        ("1e999,red,3,cat", "height='1e999' must be a finite number"),
        (
            "1,green,3,cat",
            "main colour='green' must be one of its declared values: red, 'light blue', \"it's\"",
        ),
        ("1,red,3,cow", "kind='cow' must be one of its declared values: cat, dog"),
        ("1,,3,cat", "a value is empty; write ?"),
        ("1,red,3,", "a value is empty; write ?"),
        ("1,'red,3,cat", "a quote ' is opened and never closed"),
        ("1,red,3,cat,{5}", "weights of rows"),
        ("{0 1, 9 2}", "index 9 must be greater than the index before it and at most 3"),
        ("{2 1, 1 red}", "index 1 must be greater than the index before it"),
        ("{0 1", "a sparse row must be {index value"),
        ("{0 1}, {5}", "weights of rows"),
        ("{0 1, 0 2}", "index 0 must be greater than the index before it"),
        ("{0 1, {1 red}}", "a sparse row must be {index value"),
        ("{0 1 blue}", "'blue' must be 'index value'; a value with blanks stands in quotes"),
        (
            "1,light blue,3,cat",
            "5 values, expected 4 separated by ','; a value with blanks or commas stands in",
        ),
        ("'?',red,3,cat", "height='?' must be a number (or ? without quotes for missing)"),
        ("1,'?',3,cat", "main colour='?' must be one of its declared values"),
        (
            "1,' red',3,cat",
            "main colour=' red' must be one of its declared values: red, 'light blue', \"it's\"",
        ),
        ("1,red\u00a0,3,cat", "main colour='red\\xa0' must be one of its declared values"),
        ("1,red,3,'cat", "a quote ' is opened and never closed: \"'cat\"; close it on the same line"),
        ("1,red,3,cat {2.5}", "the row has the weight 2.5, but weights of rows cannot be read"),
        ("1,red,3,cat {x}", "'{ x }' after the values of a row must be its weight {1}"),
        ("1,red,3 {1} cat", "'{ 1 } cat' after the values of a row must be its weight {1}"),
        ("1,red,3,}", "a brace } stands in quotes where it is a value"),
        ("{red 1}", "must be 'index value'"),
        ("{0}", "must be 'index value'"),
    ],
)
def test_bad_rows_name_file_line_and_rule(read, tmp_path, row, rule):
    first = HEADER.count("\n") + 1
    for before in ("1,red,3,cat\n", "% slow way\n1,'light blue',3,cat\n"):
        with pytest.raises(DatasetError) as caught:
            read(HEADER + before + row + "\n1,red,3,cat\n")
        line = first + before.count("\n")
        assert str(caught.value).startswith(f"{tmp_path / 'set.arff'}:{line}: ")
        assert rule in str(caught.value)


@pytest.mark.parametrize(
    ("header", "line", "rule"),
    [
        ("@relation r\n@attribute x real\n", None, "no line @data"),
        ("@relation r\n@attribute x real\n1\n2\n", 3, "'1' must be @relation, @attribute NAME KIND, @data"),
        ("@relation r\n@attribute x real\n@database\n1\n", 3, "'@database' must be @relation"),
        ("@relation r\n@data\n", None, "no @attribute line"),
        ("@relation r\nattribute x real\n@data\n", 2, "must be @relation, @attribute NAME KIND"),
        ("@relation r\n@attribute x\n@data\n", 2, "kind '' of attribute 'x' must be numeric"),
        ("@relation r\n@attribute x float\n@data\n", 2, "kind 'float' of attribute 'x'"),
        ("@relation r\n@attribute x {a,b\n@data\n", 2, "values of attribute 'x' must be"),
        ("@relation r\n@attribute x {a,\n b}\n@data\n", 2, "values of attribute 'x' must be"),
        ("@relation r\n@attribute x {a,{b}}\n@data\n", 2, "values of attribute 'x' must be"),
        ("@relation r\n@attribute x {a,it's}\n@data\n", 2, "a quote ' is opened and never closed"),
        ("@relation r\n@attribute x {}\n@data\n?\n", 2, "attribute 'x' declares no value {}"),
        (
            "@relation r\n@attribute x {a} {much}\n@data\n",
            2,
            "'{ much }' after attribute 'x' must be its weight",
        ),
        ("@relation r\n@attribute\n@data\n", 2, "@attribute must be followed by a name and a kind"),
        (
            "@relation r\n@attribute b relational\n@attribute x real\n@data\n",
            3,
            "must end with a line '@end b'",
        ),
        ("@relation r\n@attribute b relational\n@end c\n@data\n", 3, "'@end c' must be '@end b'"),
        ("@relation r\n@attribute x {a,b,a}\n@data\n", 2, "declares the value 'a' twice"),
        ("@relation r\n@attribute x real\n@attribute x real\n@data\n", 3, "attribute 'x' is declared twice"),
        ("@relation r\n@attribute b bag relational\n@data\n", 2, "kind 'bag relational'"),
        (b"@relation r\n@attribute \xe4 real\n@data\n1\n", 2, "byte 0xe4 is not UTF-8"),
    ],
)
def test_bad_headers_name_file_line_and_rule(read, tmp_path, header, line, rule):
    with pytest.raises(DatasetError) as caught:
        read(header)
    place = f"{tmp_path / 'set.arff'}:{line}: " if line else f"{tmp_path / 'set.arff'}: "
    assert str(caught.value).startswith(place)
    assert rule in str(caught.value)


def test_several_files_need_the_same_attributes(tmp_path):
    first, second = tmp_path / "1.arff", tmp_path / "2.arff"
    first.write_text(HEADER + "1,red,3,cat\n")
    second.write_text(HEADER + "2,red,4,dog\n")
    [(x, y)] = open_dataset([first, second]).batches()
    assert x[:, 0].tolist() == [1, 2] and y.tolist() == [0, 1]
    second.write_text(HEADER.replace("{cat,dog}", "{dog,cat}") + "2,red,4,dog\n")
    with pytest.raises(
        DatasetError, match=r"2.arff:7: attribute 'kind' must be declared like attribute 'kind' of"
    ):
        list(open_dataset([first, second]).batches())


def test_a_header_longer_than_a_block(read):
    attributes = "".join(f"@attribute 'attribute number {n}' real\n" for n in range(40_000))
    row = ",".join("1" for _ in range(40_000)) + ",b\n"
    dataset, x, y = read("@relation r\n" + attributes + "@attribute k {a,b}\n@data\n" + row * 3)
    assert len(dataset.names) == 40_000 and x.shape == (3, 40_000) and y.tolist() == [1, 1, 1]


NAMES = """@relation r
@attribute x real
@attribute s {a,' a','a ',"?",'b\\'c','%d','e f',''}
@attribute class {p,'q '}
@data
"""


@pytest.mark.parametrize(
    ("row", "value", "label"),
    [
        ("1,a,p", "a", "p"),
        ("1, a ,p", "a", "p"),
        ("1,' a',p", " a", "p"),
        ("1,\"a \",'q '", "a ", "q "),
        ("1,'?',p", "?", "p"),
        ("1,?,p", None, "p"),
        ("1, ? ,?", None, None),
        ('1,"b\'c",p', "b'c", "p"),
        ("1,'b\\'c',p", "b'c", "p"),
        ("1,'%d',p%c", "%d", "p"),
        ("1,'e\\40f','p' % 'c", "e f", "p"),
        ("1,'',p", "", "p"),
        ("1 a p", "a", "p"),
        ("1\t'e f'\tp", "e f", "p"),
        (",1,,a, ,p,,", "a", "p"),
        ("1,a,p {1}", "a", "p"),
        ("1,'a',p,{1.0}", "a", "p"),
        ("{0 1,1 'e f',2 p}", "e f", "p"),
        ("{0 1 2 'q '}", "a", "q "),
        ("{0 1, 1 ?, }", None, "p"),
        ("{0 1}{1}", "a", "p"),
    ],
)
def test_a_cell_has_the_value_that_weka_gives_it(read, row, value, label):
    dataset, x, y = read(NAMES + row + "\n")
    assert dataset.values[1] == ("a", " a", "a ", "?", "b'c", "%d", "e f", "")
    assert dataset.classes == ("p", "q ")
    cell = None if np.isnan(x[0, 1]) else dataset.values[1][int(x[0, 1])]
    assert (x[0, 0], cell, None if y[0] < 0 else dataset.classes[y[0]]) == (1, value, label)


@pytest.mark.parametrize(
    ("quoted", "text"),
    [
        (r"'tab\tfeed\nreturn\r'", "tab\tfeed\nreturn\r"),
        (r"'\101\7\u0041'", "A\au0041"),
        (r"'\'B1of3\''", "'B1of3'"),
        (r"'back\\slash'", "back\\slash"),
        (r"back\slash", r"back\slash"),
        ("'Osaka\u00a0'", "Osaka\u00a0"),
        ("Osaka\u00a0", "Osaka\u00a0"),
        ("NaN", "NaN"),
    ],
)
def test_escapes_and_blanks_that_are_characters_are_those_of_weka(read, quoted, text):
    header = f"@relation r\n@attribute s {{Osaka, {quoted}}}\n@attribute class {{p,q}}\n@data\n"
    for comment in ("", "% line by line\n"):
        dataset, x, _ = read(f"{header}{comment}Osaka,p\n{quoted},q\n")
        assert dataset.values[0] == ("Osaka", text) and x.tolist() == [[0], [1]]


def test_every_line_ends_with_a_comma_as_moa_writes_it(read):
    lines = [f"{n / 8},red,{n},{'cat' if n % 2 else 'dog'}," for n in range(300)]
    for end in ("\n", "\r\n"):
        _, x, y = read(HEADER + end.join(lines) + end)
        assert x[:, 2].tolist() == list(range(300)) and y.sum() == 150
    _, x, _ = read(HEADER + "\n".join(lines))
    assert len(x) == 300
    with pytest.raises(DatasetError, match=r"3 values, expected 4 .*; a value is empty; write \? where"):
        read(HEADER + "1,red,3,cat,\n1,red,3,\n")


def test_an_empty_value_of_a_column_that_is_left_out_is_an_error_too(read):
    for row in ("1,,3,cat", ",red,3,cat", "1, ,3,cat"):
        with pytest.raises(DatasetError, match="a value is empty"):
            read(HEADER + "1,red,3,cat\n" + row + "\n", ignore=["height", "main colour"])


def test_a_row_may_begin_on_the_line_of_data(read):
    header = "@relation r\n@attribute x real\n@attribute class {p,q}\n"
    for data in ("@data 1,p\n", "@DATA{0 1}\n", "  @data, 1 p % c\n", "@data % c\n1,p\n", "@data\r\n1,p\r\n"):
        _, x, y = read(header + data + "2,q\n")
        assert x.tolist() == [[1], [2]] and y.tolist() == [0, 1]
    with pytest.raises(DatasetError, match=r"set.arff:4: x='y' must be a number"):
        read(header + "@data y,p\n2,q\n")
    with pytest.raises(DatasetError, match=r"set.arff:5: x='y' must be a number"):
        read(header + "@data 1,p\ny,q\n")


def test_relational_attributes_are_left_out_with_all_that_is_in_them(read):
    text = (
        "@relation r\n@attribute bag relational {2}\n @attribute x real\n @attribute 'in it' RELATIONAL\n"
        "  @attribute x {u,v} % same name\n @end 'in it'\n@end BAG\n"
        "@attribute x real\n@attribute class {p,q}\n"
        "@data\n'1,\\'u\\'\\n2,v',7,p\n?,8,q\n"
    )
    dataset, x, y = read(text, ignore="bag")
    assert dataset.names == ("x",) and x.tolist() == [[7], [8]] and y.tolist() == [0, 1]
    with pytest.raises(DatasetError, match=r":2: attribute 'bag' is of kind relational.*\(--ignore\)"):
        read(text)


def test_weights_of_attributes_are_told_and_not_used(read):
    text = (
        "@relation r\n@attribute x real {.5}\n@attribute s {a,b} {2.0}\n@attribute d date 'yyyy' {3}\n"
        "@attribute e date {4}\n@attribute class{p,q}{1}\n@data\n1,b,'2001',?,p\n"
    )
    dataset, x, _ = read(text, ignore=["d", "e"])
    assert dataset.values == ((), ("a", "b")) and x.tolist() == [[1, 1]]
    assert dataset.guesses == ("weights of attributes not used: x, s",)


def test_blanks_separate_declared_values_and_what_follows_a_kind_is_skipped(read):
    header = "@relation r\n@attribute x real [0, 10] or so\n@attribute s { a b,,c } of three\n"
    dataset, x, _ = read(header + "@attribute k {p}\n@data\n1,c,p\n")
    assert dataset.values == ((), ("a", "b", "c")) and x.tolist() == [[1, 2]]


def test_an_attribute_without_values_is_always_missing(read):
    dataset, x, _ = read("@relation r\n@attribute s {}\n@attribute k {p}\n@data\n?,p\n")
    assert dataset.values == ((),) and dataset.kinds == ("nominal",) and np.isnan(x[0, 0])


def test_numbers_of_a_numeric_class_are_classes_by_their_value(read):
    header = "@relation r\n@attribute x real\n@attribute class real\n@data\n"
    rows = "1,2.50\n{0 1}\n1,2.5\n{0 1, 1 1e1}\n1,?\n1,-0.0\n"
    dataset, _, y = read(header + rows)
    assert dataset.classes == ("2.5", "0", "10") and y.tolist() == [0, 1, 0, 2, -1, 1]
    for comment in ("", "% line by line\n"):
        with pytest.raises(DatasetError, match="class='high' must be a number"):
            read(header + comment + "1,high\n")
        with pytest.raises(DatasetError, match=r"class=1024.0 is distinct value number 1025; .*\(--target\)"):
            read(header + comment + "".join(f"1,{n}\n" for n in range(1025)))


def test_a_lone_carriage_return_ends_a_line(read):
    header = "@relation r\n@attribute x real\n@attribute class {p,q}\n@data\n"
    for comment in ("", "% line by line\n"):
        _, x, _ = read(header + comment + "1,p\r2,q\r\n3,p\n")
        assert x.tolist() == [[1], [2], [3]]


def test_long_runs_of_separators_are_one(read):
    _, x, _ = read(HEADER + "% line by line\n1,red,3,cat" + " ," * 200_000 + "\n")
    assert x.tolist() == [[1, 0, 3]]


def test_sparse_rows_of_a_wide_file_come_in_small_chunks(tmp_path):
    path = tmp_path / "wide.arff"
    attributes = "".join(f"@attribute f{n} real\n" for n in range(20_000))
    path.write_text(f"@relation r\n{attributes}@attribute k {{p,q}}\n@data\n" + "{7 1, 20000 q}\n" * 900)
    sizes = [x.nbytes for x, _ in open_dataset(path).batches(100_000)]
    assert max(sizes) <= 64 << 20 and sum(sizes) == 900 * 20_000 * 8


@pytest.mark.parametrize("line", ["@inputs x", "@output class"])
def test_lines_of_keel_are_refused_with_a_remedy(tmp_path, line):
    path = tmp_path / "set.dat"
    path.write_text(
        f"@relation r\n@attribute x real [0,1]\n@attribute class {{p,q}}\n{line}\n@data\n0.5, p\n"
    )
    with pytest.raises(DatasetError, match=rf"set\.dat:4: '{line}' .*; delete other lines, such as @inputs"):
        open_dataset(path)
