"""Options that say which data set is meant; `prequential`, `replay`, `oracle` and `demo` share them."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from topics.readers import Dataset

PANEL = "Data set"

Data = Annotated[
    str,
    typer.Option(
        "--data",
        "-d",
        help="File (ARFF, LIBSVM, CSV; .gz too; several with commas) or gen:NAME?option=value&n=N.",
        metavar="FILE|gen:…",
        rich_help_panel=PANEL,
    ),
]
Format = Annotated[
    Literal["arff", "libsvm", "csv"] | None,
    typer.Option(
        "--format", "-f", help="Format of the file; default: by its content.", rich_help_panel=PANEL
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        help="Class column, by name or index; default: 'class' or the last.",
        metavar="COLUMN",
        rich_help_panel=PANEL,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether a CSV file has one; default: by its content.",
        rich_help_panel=PANEL,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        help="Between the cells of a CSV file: a character or tab; default: by its content.",
        metavar="CHARACTER",
        rich_help_panel=PANEL,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        help="Column to leave out (ARFF, CSV), by name or index; may be repeated.",
        metavar="COLUMN",
        rich_help_panel=PANEL,
    ),
]
Nominal = Annotated[
    list[str] | None,
    typer.Option(
        "--nominal",
        help="Column of a CSV file whose numbers are names; may be repeated.",
        metavar="COLUMN",
        rich_help_panel=PANEL,
    ),
]


def say_inferred(dataset: "Dataset", target: str | None, header: bool | None) -> None:
    """Say on standard error what was made of a file; of a generator everything is known."""
    from topics.readers import FileDataset
    from topics.readers.inference import inference

    if isinstance(dataset, FileDataset):
        said = inference(dataset, target is not None, header is not None)
        typer.echo(f"grove: {said}", err=True)
