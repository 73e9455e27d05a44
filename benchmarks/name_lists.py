"""Options of programs that select from a list of known names: `--streams sea,led`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping


def add_name_lists(parser: argparse.ArgumentParser, lists: Mapping[str, tuple[str, ...]]) -> None:
    """Add an option for each list (its name → the allowed values); the default is all of them."""
    for name, names in lists.items():
        parser.add_argument(
            f"--{name}",
            type=_some_of(names),
            default=list(names),
            metavar="A,B",
            help=f"some of {', '.join(names)}",
        )


def _some_of(allowed: tuple[str, ...]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        chosen = text.split(",")
        for name in chosen:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{name!r} must be one of {', '.join(allowed)}")
        return chosen

    return parse
