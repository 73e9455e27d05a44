"""Every command line of the README and the docs is one that `grove` understands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from streamapp.cli.main import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def command_lines(text: str) -> list[list[str]]:
    """The command lines of blocks, comments left out, and those in the midst of a sentence."""
    joined = re.sub(r"\\\n\s*", " ", text)
    start = r"^(?: {4}|\$ )?(?:GROVE_\w+=\S+ )*grove "
    blocks = re.findall(start + r"((?![^`\n]*`)[a-z].*)$", joined, re.MULTILINE)
    inline = re.findall(r"`(?:\S*/)?grove ([a-z][^`]*)`", joined)
    return [shlex.split(line.replace("…", ""), comments=True) for line in (*blocks, *inline)]


def mistakes(words: list[str]) -> list[str]:
    """The commands and options of a line that do not exist; values and missing options are no matter."""
    command: Any = typer.main.get_command(app)
    path, options = ["grove"], {"--help"}
    left = list(words)
    while True:
        for parameter in command.params:
            options |= {*parameter.opts, *parameter.secondary_opts}
        commands = getattr(command, "commands", None)
        if not commands or not left or left[0].startswith("-"):
            break
        if left[0] not in commands:
            if command.invoke_without_command:
                break
            return [f"{' '.join(path)} has no command {left[0]!r}"]
        command = commands[left[0]]
        path.append(left.pop(0))
    given = {word.partition("=")[0] for word in left if re.match(r"--?[a-z]", word)}
    passes_on = command.context_settings.get("ignore_unknown_options", False)
    return [] if passes_on else [f"{' '.join(path)} has no option {name!r}" for name in given - options]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_option_of_a_page_exists(page: Path) -> None:
    assert [mistake for words in command_lines(page.read_text()) for mistake in mistakes(words)] == []


def test_the_pages_have_commands() -> None:
    found = [words for page in PAGES for words in command_lines(page.read_text())]
    assert {"demo", "prequential", "topics", "worker", "migrate"} <= {words[0] for words in found}
    assert len([word for words in found for word in words if word.startswith("--")]) > 20


@pytest.mark.parametrize(
    ("line", "mistake"),
    [
        ("wrker", "grove has no command 'wrker'"),
        ("topics creat", "grove topics has no command 'creat'"),
        ("replay --lables none", "grove replay has no option '--lables'"),
        ("worker --workers 4", None),
        ("worker drain", None),
    ],
)
def test_a_mistake_would_be_found(line: str, mistake: str | None) -> None:
    assert mistakes(line.split()) == ([mistake] if mistake else [])
