"""Options that say which data set is meant; `prequential`, `replay`, `oracle` and `demo` share them."""

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
    """How a file is read, under the names that `streamapp.datasets.open_data` has for it."""

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
        of_data("--header/--no-header", help="Whether a CSV file has one; default: by its content."),
    ] = None
    delimiter: Annotated[
        str | None,
        of_data(
            "--delimiter",
            help="Between the cells of a CSV file: a character or tab; default: by its content.",
            metavar="CHARACTER",
        ),
    ] = None
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
    """Say on standard error what was made of a file; of a generator everything is known."""
    from topics.readers import FileDataset
    from topics.readers.inference import inference

    if isinstance(dataset, FileDataset):
        said = inference(dataset, file.target is not None, file.header is not None)
        typer.echo(f"grove: {said}", err=True)
