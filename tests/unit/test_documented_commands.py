"""Every command line of the pages, of manifests' comments and of the benchmarks is one its program takes.

Whole lines are parsed by the programs' own parsers, and nothing is run: `grove` by its commands, `python -m`
by the module's, targets by make. Lines of programs of others (EXCUSED) are not looked at.

In a page ``[…]`` is what may be left out, ``a|b`` a choice, a word of capitals a value that the reader has,
and ``…`` says that more belongs there. A line in the midst of a sentence may leave out what is required.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import itertools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from streamapp.cli.main import app

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
MANIFESTS = [
    *(ROOT / name for name in ("docker-compose.yml", "Dockerfile", "zensical.toml")),
    *(path for folder in ("k8s", "monitoring") for path in sorted((ROOT / folder).rglob("*.y*ml"))),
]
BENCHMARKS = [path for path in sorted((ROOT / "benchmarks").rglob("*.py")) if "python -m" in path.read_text()]

PROGRAMS = ("grove", "python", "make")
EXCUSED = {
    "docker",
    "helm",  # tests/unit/deployment/test_chart.py
    "kubectl",
    "pip",
    "curl",
    "kafka-acls",
    "kafka-console-consumer",
    "zensical",
    ".",
    "export",
}
WORD = re.compile(r"""(?:[^\s"']|'[^']*'|"[^"]*")+""")
PLACEHOLDER = re.compile(r"[A-Z]+([:/][A-Z]+)*(\.\w+)?")


class Line(NamedTuple):
    words: list[str]
    is_whole: bool
    """Whether it says all that is required."""


# What is a command line


def text_of(path: Path) -> str:
    """The page; of other files what their comments say, of modules the docstring."""
    text = path.read_text()
    if path.suffix == ".md":
        return text
    if path.suffix == ".py":
        return text.split('"""')[1]
    return "\n".join(re.findall(r"^\s*# ?(.*)$", text, re.MULTILINE))


def command_lines(text: str) -> Iterator[Line]:
    """The command lines of blocks, comments left out, and those in the midst of a sentence."""
    text = re.sub(r"\\\n\s*", " ", text)
    fenced = "\n".join(re.findall(r"^```(?:sh|bash)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    shown = re.findall(r"^(?: {2,})(\S.*)$", text, re.MULTILINE) + fenced.splitlines()
    for line in shown:
        if re.match(r"(?:[A-Z_]+=\S+\s+)*(?:grove [a-z-]|python -m |make [a-z])", line):
            yield from alternatives(line, is_whole=True)
    for line in re.findall(r"(?<!`)`{1,2}((?:\S*/)?(?:grove [a-z-]|python -m |make [a-z])[^`\n]*)`", text):
        yield from alternatives(line, is_whole=False)


def alternatives(line: str, *, is_whole: bool) -> Iterator[Line]:
    """The command lines that one of a page stands for."""
    choices, is_open = [], False
    for word in WORD.findall(line):
        if word in ("|", ">", "2>", "&&", "&") or word.startswith("#"):
            break
        if re.search("[\"']", word):
            choices.append(shlex.split(word))
        elif "…" in word:
            is_open = True
        elif bare := word.strip("[]"):
            choices.append(bare.split("|"))
    while choices and re.match(r"[A-Z_]+=", choices[0][0]):
        del choices[0]
    for words in itertools.product(*choices):
        yield Line([Path(words[0]).name, *words[1:]], is_whole and not is_open)


# What is wrong with it


def mistake(line: Line) -> str | None:
    """What the program of a line says against it, None: nothing."""
    program, *words = line.words
    said = {"grove": grove_says, "python": python_says, "make": make_says}[program](words)
    if (
        said is None
        or line.is_whole
        or not re.search(r"[Mm]issing|are required|is required|requires an arg", said)
    ):
        return said
    return None


def grove_says(words: list[str]) -> str | None:
    command, path, context = typer.main.get_command(app), "grove", None
    words = with_values(words)
    while True:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                context = command.make_context(path, list(words), parent=context)
        except typer.Exit:
            return None  # --help
        except typer.TyperException as error:
            said = str(getattr(error, "message", "") or error) or type(error).__name__
            return None if type(error).__name__ == "NoArgsIsHelpError" else said
        left = [*getattr(context, "_protected_args", []), *context.args]
        commands: dict[str, Any] = getattr(command, "commands", {})
        if not commands or not left:
            return None
        if left[0] not in commands:
            return f"{path} has no command {left[0]!r}"
        command, path, words = commands[left[0]], f"{path} {left[0]}", left[1:]


def with_values(words: list[str]) -> list[str]:
    """A line with something in the place of the values that the reader has: a text, a number, a file."""
    return ["1" if PLACEHOLDER.fullmatch(word) else word for word in words]


class Parsed(Exception):
    """The arguments were understood."""


class Refused(Exception):
    """They were not."""


def python_says(words: list[str]) -> str | None:
    option, name, *rest = words
    assert option == "-m", words
    if name == "pytest":
        return next(
            (f"{word} is not there" for word in rest if "/" in word and not (ROOT / word).exists()), None
        )
    folder = ROOT / name.replace(".", "/")
    source = folder / "__main__.py" if folder.is_dir() else folder.with_suffix(".py")
    if not source.exists():
        return f"No module named {name}"
    if ".parse_args(" not in source.read_text():
        return next((f"{name} takes no options" for word in rest if word.startswith("-")), None)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NUMBA_DISABLE_JIT", "0")  # some set it for their process, which this is not
            module = importlib.import_module(f"{name}.__main__" if folder.is_dir() else name)
            patch.setattr(sys, "argv", [name, *with_values(rest)])
            stop_after_parsing(patch)
            module.main()
    except Parsed:
        return None
    except Refused as refused:
        return str(refused)
    pytest.fail(f"{name} was run")


def stop_after_parsing(patch: pytest.MonkeyPatch) -> None:
    parse_args = argparse.ArgumentParser.parse_args

    def parse(self: argparse.ArgumentParser, args: Any = None, namespace: Any = None) -> None:
        parse_args(self, args, namespace)
        raise Parsed

    def refuse(self: argparse.ArgumentParser, message: str) -> None:
        raise Refused(message)

    patch.setattr(argparse.ArgumentParser, "parse_args", parse)
    patch.setattr(argparse.ArgumentParser, "error", refuse)


def make_says(words: list[str]) -> str | None:
    given = [word for word in words if "=" not in word]
    # What the make that runs the tests was told is nothing to this one.
    own = {name: value for name, value in os.environ.items() if "MAKE" not in name and name != "MFLAGS"}
    done = subprocess.run(
        ["make", "-n", *words], cwd=ROOT, capture_output=True, text=True, check=False, env=own
    )
    if done.returncode:
        return done.stderr.strip()
    if not any(word.startswith("ARGS=") for word in words) or not given:
        return None
    # What ARGS says is for the program that the target ends with.
    last = next(alternatives(done.stdout.strip().splitlines()[-1], is_whole=False))
    return mistake(last) if last.words[0] in PROGRAMS else None


# The tests


@pytest.mark.parametrize(
    "path", [*PAGES, *MANIFESTS, *BENCHMARKS], ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_the_programs_take_every_command_line(path: Path) -> None:
    found = {" ".join(line.words): said for line in command_lines(text_of(path)) if (said := mistake(line))}
    assert found == {}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_program_escapes(path: Path) -> None:
    """A line of a block that has options is of a program that is looked at, or of one of others."""
    blocks = re.findall(
        r"^ {4}(?:[A-Z_]+=\S+\s+)*([\w./-]+) (.*)$", re.sub(r"\\\n\s*", " ", path.read_text()), re.MULTILINE
    )
    with_options = {first for first, rest in blocks if re.search(r"(?:^| )--[a-z]", rest)}
    assert {word for word in with_options if word.islower()} <= {*PROGRAMS, *EXCUSED}


def test_the_pages_have_commands() -> None:
    found = [line for path in PAGES for line in command_lines(text_of(path))]
    grove = [line.words for line in found if line.words[0] == "grove"]
    assert {"demo", "prequential", "topics", "worker", "migrate"} <= {words[1] for words in grove}
    for program, least in {"grove": 200, "python": 60, "make": 15}.items():
        assert sum(line.words[0] == program for line in found) > least
    assert sum(line.is_whole for line in found) > 40


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("grove wrker", "grove has no command 'wrker'"),
        ("grove topics creat", "grove topics has no command 'creat'"),
        ("grove replay --data x.csv --lables none", "--lables"),
        ("grove replay --data x.csv --labels nine", "nine"),
        ("grove worker --workers four", "valid integer"),
        ("grove worker scale", "Missing"),
        ("grove worker scale 3 4", "extra argument"),
        ("python -m benchmarks.wbe --json", "No module named benchmarks.wbe"),
        ("python -m benchmarks.web --jsn", "unrecognized arguments: --jsn"),
        ("python -m benchmarks.web --annotators many", "invalid int value: 'many'"),
        ("python -m benchmarks.web --annotators 3|many", "invalid int value: 'many'"),
        ("python -m benchmarks.compile --fast", "takes no options"),
        ("python -m benchmarks.chaos [--wrkers 3]", "--wrkers"),
        ("python -m pytest tests/nowhere", "tests/nowhere is not there"),
        ("make tset", "tset"),
        ("make mutants ARGS='--fils core'", "--fils"),
        ("make demo ARGS='--recrods 5000'", "--recrods"),
    ],
)
def test_a_mistake_is_found(line: str, said: str) -> None:
    found = [mistake(each) for each in command_lines(f"    {line}")]
    assert said in str(found)


@pytest.mark.parametrize(
    "line",
    [
        "grove worker --workers 4",
        "grove worker drain",
        "grove worker scale N",
        "GROVE_LOG_LEVEL=debug grove demo   # and more",
        "grove replay … --labels none",
        "python -m benchmarks.web [--annotators N] --rate 200 | tail",
        "make demo ARGS='--records 5000'",
    ],
)
def test_what_is_right_is_not_refused(line: str) -> None:
    found = list(command_lines(f"    {line}"))
    assert found
    assert [mistake(each) for each in found] == [None] * len(found)
