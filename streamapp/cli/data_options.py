"""Options that name a data set; `prequential`, `replay`, `oracle` and `demo` share them."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

if TYPE_CHECKING:
    from topics.readers import Dataset

of_data = partial(typer.Option, rich_help_panel="Data set")

Data = Annotated[
    str,
    of_data(
        "--data",
        "-d",
        help="File or folder (ARFF, LIBSVM, CSV, .gz too; Parquet, Hugging Face; several with commas) "
        "or gen:NAME?option=value&n=N.",
        metavar="FILE|gen:…",
    ),
]


AnyData = Annotated[str | None, *get_args(Data)[1:]]


@dataclass(frozen=True)
class FileOptions:
    """Options for reading a file, with the names of the parameters of `streamapp.lab.datasets.open_data`."""

    form: Annotated[
        Literal["arff", "libsvm", "csv", "parquet", "arrow"] | None,
        of_data("--format", "-f", help="Format of the file; default: by its content."),
    ] = None
    target: Annotated[
        str | None,
        of_data(
            "--target",
            "-t",
            help="Class column, by name or index; default: 'class' or the last.",
            metavar="COLUMN",
        ),
    ] = None
    header: Annotated[
        bool | None,
        of_data("--header/--no-header", help="Whether a CSV file has a header; default: by its content."),
    ] = None
    delimiter: Annotated[
        str | None,
        of_data(
            "--delimiter",
            help="Delimiter of the cells of a CSV file: a character, tab or blanks; default: by its content.",
            metavar="CHARACTER",
        ),
    ] = None
    skip_lines: Annotated[
        int | None,
        of_data(
            "--skip-lines",
            help="Lines before the header or first row of a CSV file; default: comments and titles.",
            metavar="N",
            min=0,
        ),
    ] = None
    missing: Annotated[
        list[str] | None,
        of_data(
            "--missing",
            help="Word for a missing value in a CSV file; may be repeated.  [default: ? and pandas' words]",
            metavar="WORD",
        ),
    ] = None
    decimal: Annotated[
        str | None,
        of_data("--decimal", help="Decimal sign in a CSV file: . or ,  [default: .]", metavar="SIGN"),
    ] = None
    thousands: Annotated[
        str | None,
        of_data(
            "--thousands",
            help="Sign between groups of digits in a CSV file: , . ' _ or space; default: none.",
            metavar="CHARACTER",
        ),
    ] = None
    quotes: Annotated[
        bool | None,
        of_data("--quotes/--no-quotes", help='Whether " quotes cells of a CSV file.  [default: quotes]'),
    ] = None
    zero_based: Annotated[
        bool,
        of_data("--zero-based", help="The indices of a LIBSVM file count from 0; else from 1."),
    ] = False
    ignore: Annotated[
        list[str] | None,
        of_data(
            "--ignore",
            help="Column to leave out (not LIBSVM), by name or index; may be repeated.",
            metavar="COLUMN",
        ),
    ] = None
    nominal: Annotated[
        list[str] | None,
        of_data(
            "--nominal",
            help="Column whose numbers are names (CSV, Parquet, Arrow); may be repeated.",
            metavar="COLUMN",
        ),
    ] = None


def say_inferred(dataset: "Dataset", file: FileOptions) -> None:
    """Write the inferred format of a file to standard error; a generator declares everything."""
    from topics.readers import FileDataset
    from topics.readers.form_inference import inference_lines

    if isinstance(dataset, FileDataset):
        for line in inference_lines(dataset, file.target is not None, file.header is not None):
            typer.echo(f"grove: {line}", err=True)
