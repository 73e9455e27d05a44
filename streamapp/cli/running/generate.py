"""`grove generate`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TextIO
from urllib.parse import urlencode

import typer

from streamapp.errors import UsageError

if TYPE_CHECKING:
    from core.streams.base import Generator

BATCH_ROWS = 8192


def generate(
    context: typer.Context,
    stream: Annotated[
        str, typer.Argument(help="Generator, for example sea or 'sea?function=2'.", metavar="STREAM")
    ],
    n: Annotated[int, typer.Option("--n", "-n", help="Number of records.", min=0)] = 1000,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the generator.")] = None,
    rng: Annotated[
        Literal["counter", "java"] | None,
        typer.Option("--rng", help="counter: record i depends on i alone; java: MOA's bits."),
    ] = None,
    form: Annotated[
        Literal["csv", "arff", "libsvm"], typer.Option("--format", "-f", help="Format of the output.")
    ] = "csv",
    header: Annotated[bool, typer.Option("--header/--no-header", help="First line of CSV.")] = True,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; default: standard output.", metavar="FILE"),
    ] = None,
) -> None:
    """Write records of a synthetic stream as CSV, ARFF or LIBSVM.

    Options of the generator have the names of its parameters (--function 2, --noise 0.1); an unknown option
    leads to a list of all options.

    \b
    [bold]Streams[/bold]
      agrawal         loan applicants, 9 attributes, functions 1 to 10
      drift           one stream gives way to another: 'drift?before=(sea)&after=(sea?function=3)'
      hyperplane      sides of a hyperplane; the weights of some attributes move to and fro
      led             digits of a seven-segment display, 24 nominal attributes, 10 classes
      rand_cbt        two noisy classes, labelled by a random binary tree over the unit cube
      random_tree     uniform attributes, labelled by a random tree
      rbf             random blobs, any number of attributes and classes
      rbf_drift       rbf whose first blobs travel
      sea             two of three attributes against a threshold, functions 1 to 4
      sine            points below and above a sine curve, functions 1 to 4
      stagger         size, colour and shape, functions 1 to 3
      waveform        mixtures of triangles, 21 or 40 attributes, 3 classes
      waveform_drift  waveform with attributes that have changed places

    All streams have --label-noise (share of wrong classes) and --recurring N (a second concept comes and goes
    every N records).

    \b
    [bold]Examples[/bold]
      grove generate sea --seed 1 --n 1000 --rng java
      grove generate led --noise 0.1 --n 100000 --format arff --output led.arff
      grove generate 'agrawal?function=3&seed=7' --n 5
    """
    from core.streams import parse_address

    options = _generator_options(context.args) | {
        name: str(value) for name, value in (("seed", seed), ("rng", rng)) if value is not None
    }
    address = stream if stream.startswith("gen:") else f"gen:{stream}"
    if options:
        address += ("&" if "?" in address else "?") + urlencode(options)
    generator, count = parse_address(address)
    with _opened(output) as file:
        _write(generator, n if count is None else count, form, header, file, progress=output is not None)


def _generator_options(arguments: list[str]) -> dict[str, str]:
    """`--function 2 --noise=0.1` as a dictionary."""
    options = {}
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if not name.startswith("--"):
            message = f"unexpected {argument!r}; options of the generator look like --function 2"
            raise UsageError(message)
        setting = value if equals else next(rest, None)
        if setting is None:
            message = f"{name} needs a value; options of the generator look like --function 2"
            raise UsageError(message)
        options[name.removeprefix("--").replace("-", "_")] = setting
    return options


@contextmanager
def _opened(output: Path | None) -> Iterator[TextIO]:
    if output is None:
        yield sys.stdout
        return
    try:
        file = output.open("w", encoding="utf-8", newline="\n")
    except OSError as error:
        message = f"cannot write {output}: {error.strerror}; choose another --output"
        raise UsageError(message) from None
    with file:
        yield file


def _write(generator: "Generator", n: int, form: str, header: bool, file: TextIO, progress: bool) -> None:
    from streamapp.cli import writers
    from streamapp.cli.progress import rows_progress

    schema = generator.schema
    lines = {"csv": writers.csv_lines, "arff": writers.arff_lines, "libsvm": writers.libsvm_lines}[form]
    if form == "arff":
        file.write(writers.arff_header(schema, type(generator).__module__.rpartition(".")[2]))
    elif form == "csv" and header:
        file.write(writers.csv_header(schema))
    with rows_progress("Writing", n, shown=progress) as advance:
        for x, y in generator.batches(n, BATCH_ROWS):
            file.writelines(lines(schema, x, y))
            advance(len(y))
