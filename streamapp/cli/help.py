"""Help texts from docstrings: lines of a paragraph become one, blocks after a line `\\b` stay as they are."""

import inspect
from collections.abc import Callable
from typing import Any


def help_of(command: Callable[..., Any]) -> str:
    """Docstring of a command for the terminal, whatever its width."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(p if p.startswith("\b") else " ".join(p.split()) for p in paragraphs)
