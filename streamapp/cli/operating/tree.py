"""`grove tree`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from streamapp.errors import UsageError

if TYPE_CHECKING:
    from core.model.model import Model


def tree(
    source: Annotated[
        str,
        typer.Argument(
            help="Saved or exported model, or the key of a model in a running worker.",
            metavar="FILE|KEY",
            show_default=False,
        ),
    ],
    form: Annotated[
        Literal["text", "json", "dot", "svg"], typer.Option("--format", "-f", help="Format of the output.")
    ] = "text",
    depth: Annotated[
        int | None, typer.Option("--depth", "-d", help="Levels to show; default: all.", min=0)
    ] = None,
    importances: Annotated[
        bool,
        typer.Option(
            "--importances",
            help="List the attributes by importance instead: the mean decrease of impurity by their tests.",
        ),
    ] = False,
    web: Annotated[
        str, typer.Option("--web", help="Address of the worker's pages.", metavar="HOST:PORT")
    ] = "127.0.0.1:6066",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; default: standard output.", metavar="FILE"),
    ] = None,
) -> None:
    """Show the tree of a model: as text, as JSON, for Graphviz, or as a drawing.

    A name that is not a file is the key of a model. The command gets this model from the worker at --web,
    as it is between two runs of records. A parent of several workers forwards the request to all of them.

    \b
    [bold]Examples[/bold]
      grove tree a9a.model --depth 3
      grove tree a9a.model --format svg --output a9a.svg
      grove tree a9a.model --importances
      grove tree user-17 --web 127.0.0.1:6066 --format json
    """
    import json

    from core import export

    model = _open(source, web)
    if importances:
        if form in ("dot", "svg"):
            message = f"--importances goes with --format text or json, not with {form}"
            raise UsageError(message)
        ranking = export.by_importance(model)
        lines = (f"{share:8.4f}  {export.printable(name)}\n" for name, share in ranking)
        text = json.dumps(dict(ranking), ensure_ascii=False) + "\n" if form == "json" else "".join(lines)
    elif form == "json":
        text = json.dumps(export.to_document(model, depth), ensure_ascii=False) + "\n"
    else:
        text = {"text": export.to_text, "dot": export.to_dot, "svg": export.to_svg}[form](model, depth)
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"cannot write {output}: {error.strerror}; choose another --output"
        raise UsageError(message) from None


def _open(source: str, web: str) -> "Model":
    """The model in a file or, if there is no file of that name, the model of a key."""
    from core.errors import SnapshotError
    from core.model.model import Model
    from streamapp.worker.observability.pages.snapshot_page import fetch_model

    path = Path(source)
    if not path.exists():
        return Model.restore(fetch_model(web, source))
    try:
        return Model.load(path)
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}; name a file that 'grove prequential --save' wrote"
        raise UsageError(message) from None
    except SnapshotError as error:
        message = f"{path}: {error}; name a file that 'grove prequential --save' wrote"
        raise UsageError(message) from None
