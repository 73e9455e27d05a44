"""The command `grove`: one file for each group of commands, and one line for each mistake of a user."""

from streamapp.cli.entry import main

__all__ = ["main"]
