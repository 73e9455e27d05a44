"""Command registration: help texts from docstrings, dataclasses of options as their options.

A docstring's lines of a paragraph become one; blocks after a line `\\b` stay as they are.
"""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any

import typer


def register(app: typer.Typer, command: Callable[..., None], name: str | None = None, **options: Any) -> None:
    """Add a command to an app, under its own name or another."""
    app.command(name or command.__name__, help=help_of(command), **options)(flat(command))


def help_of(command: Callable[..., Any]) -> str:
    """Docstring of a command for the terminal, whatever its width."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(p if p.startswith("\b") else " ".join(p.split()) for p in paragraphs)


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the fields of each dataclass among its parameters as parameters of their own."""
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
    def flattened(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    flattened.__annotations__ = {each.name: each.annotation for each in parameters}
    flattened.__dict__["__signature__"] = inspect.Signature(parameters)
    return flattened
