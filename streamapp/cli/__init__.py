"""The command `grove`: one file per group of commands, one line per mistake of a person."""

from streamapp.cli.entry import main

__all__ = ["main"]
