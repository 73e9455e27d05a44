"""Command registration: help texts from docstrings, options from dataclasses.

The lines of a paragraph are joined; blocks after a line `\\b` stay as they are. Only `[bold]` is markup of
rich: brackets of extras, defaults and patterns are shown.
"""

import inspect
import re
from collections.abc import Callable
from copy import copy
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, Final, get_args, get_origin

import typer

_EATEN: Final = re.compile(r"\[(?=[a-z#/@])(?!/?bold\])")
"""A bracket that rich would read as the beginning of markup."""


def register(app: typer.Typer, command: Callable[..., None], name: str | None = None, **options: Any) -> None:
    """Add a command to an app, under `name` or the function's name."""
    app.command(name or command.__name__, help=help_of(command), **options)(flat(command))


def help_of(command: Callable[..., Any]) -> str:
    """Docstring of a command for terminals of any width."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return shown_whole("\n\n".join(p if p.startswith("\b") else " ".join(p.split()) for p in paragraphs))


def shown_whole(text: str) -> str:
    """Return a text with brackets that rich shows, except for `[bold]`.

    >>> shown_whole("[bold]Extras[/bold]: streamgrove[web]")
    '[bold]Extras[/bold]: streamgrove\\\\[web]'
    """
    return _EATEN.sub(r"\\[", text)


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """The command with separate parameters for the fields of each dataclass among its parameters."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in inspect.signature(command).parameters.values():
        kind: Any = parameter.annotation
        if isinstance(kind, type) and is_dataclass(kind):
            groups[parameter.name] = kind
            parameters += inspect.signature(kind).parameters.values()
        else:
            parameters.append(parameter)

    @wraps(command)
    def flattened(**arguments: Any) -> None:
        for name, group in groups.items():
            arguments[name] = group(**{field.name: arguments.pop(field.name) for field in fields(group)})
        command(**arguments)

    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=_with_help(parameter.annotation))
        for parameter in parameters
    ]
    flattened.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    flattened.__dict__["__signature__"] = inspect.Signature(parameters)
    return flattened


def _with_help(annotation: Any) -> Any:
    """Return the type of a parameter, with a help text of which rich shows all brackets."""
    if get_origin(annotation) is not Annotated:
        return annotation
    kind, *notes = get_args(annotation)
    shown = []
    for note in notes:
        help_text = getattr(note, "help", None)
        if isinstance(help_text, str):
            note = copy(note)
            note.help = shown_whole(help_text)
        shown.append(note)
    return Annotated[kind, *shown]
