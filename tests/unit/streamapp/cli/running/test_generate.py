"""`grove generate`: the same records in every format, and read back exactly."""

from pathlib import Path

import numpy as np
import pytest

from core import registry
from core.schema.schema import Attribute, Schema
from core.streams import parse_address
from streamapp.cli import writers
from streamapp.cli.main import main
from streamapp.cli.register import help_of
from streamapp.cli.running.generate import generate
from topics.readers import open_dataset
from topics.readers.sniffing import FileFormat


def generated(path: Path, *arguments: str) -> Path:
    assert main(["generate", *arguments, "--output", str(path)]) == 0
    return path


@pytest.mark.parametrize("form", ["csv", "arff"])
@pytest.mark.parametrize("stream", ["sea?function=2&seed=7&rng=java", "led?noise=0.1", "agrawal?function=3"])
def test_read_back_bit_by_bit(tmp_path: Path, form: FileFormat, stream: str) -> None:
    generator, _ = parse_address(f"gen:{stream}")
    x, y = generator.take(500)
    file = generated(tmp_path / "rows", stream, "--n", "500", "--format", form)
    dataset = open_dataset(file, format=form, target="class")
    assert dataset.names == generator.schema.names
    for column, attribute in enumerate(generator.schema.attributes):
        read = np.concatenate([batch_x[:, column] for batch_x, _ in dataset.batches()])
        if attribute.kind == "numeric":
            np.testing.assert_array_equal(read, x[:, column])
        elif dataset.kinds[column] == "nominal":
            names = [dataset.values[column][int(code)] for code in read]
            assert names == [attribute.values[int(code)] for code in x[:, column]]
    labels = np.concatenate([batch_y for _, batch_y in dataset.batches()])
    assert [dataset.classes[c] for c in labels] == [generator.schema.classes[c] for c in y]


def test_libsvm_leaves_zeros_out(tmp_path: Path) -> None:
    file = generated(tmp_path / "rows", "led", "--n", "200", "--format", "libsvm")
    x, _y = parse_address("gen:led")[0].take(200)
    read = list(open_dataset(file, format="libsvm", features=x.shape[1]).batches())
    np.testing.assert_array_equal(np.concatenate([bx for bx, _ in read]), x)
    assert ":0 " not in file.read_text()


def test_options_of_the_generator_are_options_of_the_command(tmp_path: Path) -> None:
    by_option = generated(tmp_path / "a", "sea", "--function", "3", "--noise=0.2", "--seed", "5", "--n", "50")
    by_address = generated(tmp_path / "b", "gen:sea?function=3&noise=0.2&seed=5&n=50")
    assert by_option.read_text() == by_address.read_text()
    assert by_option.read_text().count("\n") == 51


def test_standard_output_and_no_header(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "sea", "--seed", "1", "--n", "2", "--rng", "java", "--no-header"]) == 0
    x, y = parse_address("gen:sea?seed=1&rng=java")[0].take(2)
    classes = parse_address("gen:sea")[0].schema.classes
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",") for line in lines] == [
        [*map(repr, row.tolist()), classes[code]] for row, code in zip(x, y, strict=True)
    ]


def test_names_and_values_that_need_quotes() -> None:
    schema = Schema.of(
        [Attribute("a b", "nominal", ("x,y", 'say "hi"', "it's")), Attribute("100%")], ["no", "ye s"]
    )
    x, y = np.array([[0.0, 1.5], [1.0, np.nan], [-1.0, 2.0]]), np.array([0, 1, 1], np.int32)
    assert writers.csv_header(schema) == "a b,100%,class\n"
    assert list(writers.csv_lines(schema, x, y)) == ['"x,y",1.5,no\n', '"say ""hi""",,ye s\n', ",2.0,ye s\n"]
    assert "@attribute 'a b' {'x,y','say \"hi\"','it\\'s'}" in writers.arff_header(schema, "r")
    assert list(writers.arff_lines(schema, x, y)) == [
        "'x,y',1.5,no\n",
        "'say \"hi\"',?,'ye s'\n",
        "?,2.0,'ye s'\n",
    ]


def test_whatever_names_and_values_hold_their_reader_gets_it_again(tmp_path: Path) -> None:
    values = (
        "a",
        " a",
        "a ",
        "?",
        "%",
        "it's",
        "{",
        "}",
        '"',
        "b\\c",
        "x,y",
        "t\tb",
        "n\nl",
        "r\rr",
        "",
        "\x01",
        "\\",
    )
    schema = Schema.of([Attribute("n % m'"), Attribute("?", "nominal", values)], ["p", "q "])
    rows = np.arange(len(values))
    x, y = np.column_stack([rows, rows]).astype(float), (rows % 2).astype(np.int32)
    path = tmp_path / "rows.arff"
    text = writers.arff_header(schema, "r") + "".join(writers.arff_lines(schema, x, y))
    path.write_bytes(text.encode())
    dataset = open_dataset(path)
    [(read_x, read_y)] = dataset.batches()
    assert (dataset.names, dataset.values, dataset.classes) == (("n % m'", "?"), ((), values), ("p", "q "))
    assert read_x.tolist() == x.tolist() and read_y.tolist() == y.tolist()


def test_help_lists_every_generator() -> None:
    text = help_of(generate)
    listed = [line.split()[0] for line in text.split("[bold]Examples")[0].splitlines() if line[:2] == "  "]
    assert tuple(listed) == registry.names("streams")
