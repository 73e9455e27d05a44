"""The command line: help, exit codes, and one line for every mistake of a person."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from streamapp.cli.main import app, main
from streamapp.cli.operating import dlq, models, people

COMMANDS = (
    "demo",
    "experiment",
    "bridge",
    "broker",
    "registry",
    "topics",
    "tree",
    "worker",
    "replay",
    "oracle",
    "journal",
    "models",
    "people",
    "plan",
    "dlq",
    "migrate",
    "web",
    "pool",
    "prequential",
    "generate",
    "config",
    "warm",
    "whatif",
)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(list(arguments))
    out, err = capsys.readouterr()
    return status, out, err


def mistake(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and the one line of a command that must fail."""
    status, out, err = run(capsys, *arguments)
    assert out == ""
    assert err.count("\n") == 1, err
    assert err.startswith("grove: ")
    assert "Traceback" not in err
    return status, err


def subcommands() -> list[list[str]]:
    paths = (
        [["topics", c] for c in ("create", "check", "describe")]
        + [["config", c] for c in ("show", "check")]
        + [["worker", c] for c in ("drain", "scale")]
        + [
            ["journal", "show"],
            *(["bridge", c] for c in ("argilla", "label-studio")),
            *(["people", c] for c in people.COMMANDS),
            *(["models", c] for c in models.COMMANDS),
            *(["dlq", c] for c in dlq.COMMANDS),
        ]
    )
    groups = {"topics", "config", "journal", "models", "dlq", "bridge", "people"}
    return paths + [[c] for c in (*COMMANDS, "version") if c not in groups]


def commands(command: Any, path: list[str]) -> Iterator[tuple[list[str], Any]]:
    """Every command with the words that lead to it, groups too."""
    yield path, command
    for name, below in sorted(getattr(command, "commands", {}).items()):
        yield from commands(below, [*path, name])


class TestHelp:
    def test_lists_every_command(self, capsys: pytest.CaptureFixture[str]) -> None:
        status, out, err = run(capsys, "--help")
        assert (status, err) == (0, "")
        for command in (*COMMANDS, "version"):
            assert re.search(rf"^│ {command} +[A-Z]\S+ ", out, re.MULTILINE), command

    @pytest.mark.parametrize("path", subcommands(), ids=" ".join)
    def test_every_command_has_examples_that_name_it(
        self, capsys: pytest.CaptureFixture[str], path: list[str]
    ) -> None:
        status, out, _ = run(capsys, *path, "--help")
        assert status == 0
        examples = out.partition("Examples")[2].partition("╭")[0]
        assert f"grove {' '.join(path)}" in examples

    def test_every_option_of_an_example_exists(self, capsys: pytest.CaptureFixture[str]) -> None:
        for path in subcommands():
            out = run(capsys, *path, "--help")[1]
            examples, _, options = out.partition("Examples")[2].partition("╭")
            for option in set(re.findall(r"(?<!\S)(--[a-z-]+)", examples)) - {"--function", "--noise"}:
                assert option in options, (path, option)

    def test_brackets_of_help_texts_are_shown(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "2000")
        seen = set()
        for path, command in commands(get_command(app), []):
            written = [command.help, command.epilog, *(getattr(p, "help", None) for p in command.params)]
            shown = run(capsys, *path, "--help")[1]
            for text in filter(None, written):
                for bracket in re.findall(r"\[[^\[\]]*\]", text.replace("\\[", "[")):
                    if bracket not in ("[bold]", "[/bold]"):
                        seen.add(bracket)
                        assert bracket in shown, path
        assert {"[web]", "[default: all, with --features 3000]"} <= seen

    def test_nothing_at_all_is_usage(self, capsys: pytest.CaptureFixture[str]) -> None:
        status, out, _ = run(capsys)
        assert status == 64
        assert "Usage: grove" in out

    def test_starts_without_heavy_imports(self) -> None:
        program = (
            "import sys; from streamapp.cli.main import main; main(['--help']);"
            "heavy = {'numba', 'numpy', 'faust', 'confluent_kafka', 'pyarrow', 'pydantic'};"
            "print(sorted(heavy & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "[]"

    def test_commands_are_what_the_tests_know(self) -> None:
        names = {command.name for command in app.registered_commands} | {
            g.name for g in app.registered_groups
        }
        assert names == {*COMMANDS, "version"}


class TestMistakes:
    @pytest.mark.parametrize(
        ("line", "status", "expected"),
        [
            ("wrker", 64, "No such command 'wrker'. Did you mean 'worker'"),
            ("topics chek", 64, "Known: check, create, describe; see 'grove topics --help'"),
            ("demo --recrods 5", 64, "No such option: --recrods"),
            ("version --zzz", 64, "Known: --json"),
            ("broker --port abc", 64, "--port"),
            ("broker --port 70000", 64, "--port"),
            ("prequential", 64, "Missing option '--data'"),
            ("prequential --data x.csv", 64, "x.csv: no such file"),
            ("prequential --data gen:see", 64, "unknown generator 'see'; known: agrawal"),
            (
                'prequential --data gen:sea?n=9 --spec {"learner":' + "[" * 20_000 + "]" * 20_000 + "}",
                64,
                "spec=… must be nested at most 32 levels deep; leave out",
            ),
            (
                'prequential --data gen:sea?n=9 --spec {"query":' + "[" * 500 + "]" * 500 + "}",
                64,
                "spec=… must be nested at most 32 levels deep; leave out",
            ),
            ("prequential --data gen:sea", 64, "never ends; write gen:sea?n=1000000 or give --records"),
            (
                "prequential --data gen:sea?n=9 --save /nowhere/m",
                64,
                "--save /nowhere/m: there is no directory",
            ),
            ("oracle --data gen:sea", 64, "--data gen:sea never ends; write gen:sea?n=1000000"),
            ("replay --data gen:sea?n=9 --label-delay soon", 64, "--label-delay='soon' must be a number"),
            ("replay --data gen:sea?n=9 --delay -5", 64, "--label-delay='-5' must be at least 0; without a"),
            (
                "replay --data gen:sea?n=9 --rate 0",
                64,
                "--rate=0.0 must be greater than 0 rows per second; leave",
            ),
            (
                "replay --data gen:sea?n=9 --key a --key a",
                64,
                "--key=('a', 'a') must be at least one model key",
            ),
            (
                "worker --set kafka.lingr.ms=5",
                78,
                "lingr.ms is no property of the Kafka clients (did you mean",
            ),
            (
                "topics check --set kafka.linger.ms=5s",
                78,
                "must be a whole number of milliseconds; write 5000",
            ),
            ("broker --directory /proc/none", 1, "/proc/none must be a directory that can be written"),
            ("prequential --data gen:sea?n=10 --spec h-tre", 64, "unknown learner 'h-tre'; known: "),
            ("prequential --data gen:sea?n=10 --spec @none.json", 64, "cannot read the file"),
            ("prequential --data gen:sea?n=10 --format xml", 64, "xml"),
            ("prequential --data gen:sea?n=10 --spec {bad", 64, "spec='{bad' must be a JSON object"),
            ("prequential --data gen:sea?n=10&noise=2", 64, "noise"),
            ("demo --data x.csv", 64, "x.csv: no such file"),
            ("generate see", 64, "unknown generator 'see'"),
            ("generate sea --functoin 1", 64, "unknown option 'functoin' of generator 'sea'; known: "),
            ("generate sea --function", 64, "--function needs a value"),
            ("generate sea surplus", 64, "unexpected 'surplus'"),
            ("generate sea --output /nowhere/x.csv", 64, "cannot write /nowhere/x.csv"),
            ("config show --set max.pol.records=1", 64, "did you mean max.poll.records?"),
            ("config show --set web.port", 64, "must look like NAME=VALUE"),
            ("config show --config none.toml", 78, "cannot read the settings file none.toml"),
            ("config show --set web.port=x", 78, "web.port=x must be a whole number"),
            ("config check --set processing.guarantee=exactly_twice", 78, "must be one of at_least_once, "),
            ("config check --set model.spec=h-tre", 78, "model.spec: unknown learner 'h-tre'"),
            ("config check --set kafka.lingerr.ms=1", 78, "lingerr.ms"),
            ("topics create --partitions 0", 64, "--partitions"),
        ],
    )
    def test_one_line_that_says_what_to_do(
        self,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
        line: str,
        status: int,
        expected: str,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        found, err = mistake(capsys, *line.split())
        assert expected in err
        assert found == status

    def test_a_broker_that_is_not_there(self, capsys: pytest.CaptureFixture[str]) -> None:
        status, err = mistake(capsys, "topics", "check", "-b", "127.0.0.1:1")
        assert status == 1
        assert "127.0.0.1:1" in err
        assert "grove broker" in err

    def test_wrong_column(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        (tmp_path / "rows.csv").write_text("a,b,kind\n1,2,x\n3,4,y\n")
        status, err = mistake(capsys, "prequential", "--data", str(tmp_path / "rows.csv"), "--target", "knd")
        assert status == 64
        assert "did you mean 'kind'?" in err

    @pytest.mark.parametrize("command", ["prequential", "demo"])
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", "is empty"),
            ("\ufeff", "is empty"),
            ("a,b,class\n", "has no rows"),
            ("\ufeffa,b,class\r\n\r\n", "has no rows"),
            ("\n\n", "has no rows"),
            ("class\nx\ny\n", "no attribute beside the class"),
            (
                "@relation r\n@attribute class {x,y}\n@data\nx\n",
                "no attribute beside the class",
            ),
            ("@relation r\n@attribute a numeric\n@attribute class {x,y}\n@data\n", "has no rows"),
        ],
    )
    def test_files_without_a_row(
        self,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
        command: str,
        text: str,
        expected: str,
    ) -> None:
        monkeypatch.setattr("streamapp.worker.compile_ahead.kernels_are_cold", lambda: False)
        (tmp_path / "rows.csv").write_text(text, newline="")
        status, err = mistake(capsys, command, "--data", str(tmp_path / "rows.csv"))
        assert status == 64
        assert "rows.csv" in err or "the data set" in err
        assert expected in err

    def test_our_own_mistake_is_one_line_too_and_the_traceback_on_request(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr("importlib.metadata.version", broken)
        assert "please report it" in mistake(capsys, "version")[1]
        monkeypatch.setenv("GROVE_DEBUG", "1")
        status, _, err = run(capsys, "version")
        assert status == 1
        assert "Traceback" in err


class TestConfig:
    def test_show_masks_secrets(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("GROVE_KAFKA_SASL_PASSWORD", "s3cret")
        for form in ([], ["--json"]):
            status, out, _ = run(capsys, "config", "show", *form)
            assert status == 0
            assert "sasl.password" in out
            assert "s3cret" not in out

    def test_flag_over_environment(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("GROVE_TOPICS_PREFIX", "env.")
        shown = json.loads(run(capsys, "config", "show", "--json")[1])
        assert shown["topics.prefix"] == "env."
        shown = json.loads(run(capsys, "config", "show", "--json", "--topics-prefix", "flag.")[1])
        assert shown["topics.prefix"] == "flag."

    def test_schema(self, capsys: pytest.CaptureFixture[str]) -> None:
        schema = json.loads(run(capsys, "config", "show", "--schema")[1])
        assert schema["properties"]["web_port"]["maximum"] == 65_535

    def test_check(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GROVE_WEB_PROT", "1")
        status, out, err = run(capsys, "config", "check")
        assert (status, out) == (0, "settings are in order\n")
        assert err == "warning: GROVE_WEB_PROT is not a setting (did you mean 'GROVE_WEB_PORT'?)\n"


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, "version", "--json")[1])
    assert {"streamgrove", "python", "numba", "faust-streaming", "state version"} <= set(found)
