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


def say_inferred(dataset: "Dataset", target: str | None, header: bool | None) -> None:
    """Say on standard error what was made of a file; of a generator everything is known."""
    from topics.readers import FileDataset
    from topics.readers.inference import inference

    if isinstance(dataset, FileDataset):
        said = inference(dataset, target is not None, header is not None)
        typer.echo(f"grove: {said}", err=True)
