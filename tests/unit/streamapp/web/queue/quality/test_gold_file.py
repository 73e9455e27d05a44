"""Gold files: each line a record with its class; the first wrong line is named with its rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamapp.cli.main import main
from streamapp.errors import UsageError
from streamapp.web.queue.quality.gold_file import GoldRecord, read_gold

GOOD = (
    '{"key": "shop", "id": "4711", "features": {"amount": 12.5, "new": true, "note": null}, "label": "fraud"}'
)


def read(path: Path, *lines: str, models: tuple[str, ...] = ()) -> list[GoldRecord]:
    path.write_text("\n".join(lines), encoding="utf-8")
    return read_gold(path, models, 1024)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "gold.jsonl"


def test_lines_have_the_members_of_instances_or_of_label_requests(path: Path) -> None:
    request = (
        '{"request_id": "3-1", "instance_id": "7", "features": {"colour": "red"}, "label": "no", '
        '"prediction": "fraud", "probabilities": {"fraud": 0.7, "no": 0.3}, "explanation": "amount > 5"}'
    )
    assert read(path, GOOD, "", request, models=("shop",)) == [
        GoldRecord("shop", "4711", "fraud", {"amount": 12.5, "new": 1.0, "note": None}),
        GoldRecord(*("shop", "7", "no", {"colour": "red"}, "fraud", "amount > 5"), {"fraud": 0.7, "no": 0.3}),
    ]


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("{", "must be a JSON object"),
        ("[1]", "must be a JSON object"),
        (GOOD.replace('"key": "shop", ', ""), 'must have "key"'),
        (GOOD.replace('"4711"', "4711"), 'must have "id", a text that is not empty, not 4711'),
        (GOOD.replace('"fraud"', '""'), 'must have "label"'),
        (GOOD.replace('"fraud"', '"a\\nb"'), "all printable"),
        (GOOD.replace('"fraud"', f'"{"x" * 1025}"'), "1 to 1,024 bytes"),
        (GOOD.replace('{"amount"', '[{"amount"').replace("null}", "null}]"), 'an object as "features"'),
        (GOOD.replace("12.5", "[1]"), "feature 'amount' of the wrong type"),
        (GOOD[:-1] + ', "probabilities": {"a": 2}}', "from 0 to 1"),
        (GOOD.replace('"features"', '"f"'), "must have features"),
        (GOOD, "has instance '4711' of model 'shop' again"),
    ],
)
def test_the_first_wrong_line_is_named(path: Path, line: str, rule: str) -> None:
    with pytest.raises(UsageError, match=rule) as error:
        read(path, GOOD, line)
    assert f"--gold {path}:2" in str(error.value)


def test_a_file_without_records_and_a_missing_file_are_refused(path: Path) -> None:
    with pytest.raises(UsageError, match="must have a record"):
        read(path, "")
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_gold(path.with_name("none"), (), 1024)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (["--gold", "gold.jsonl"], "--gold gold.jsonl needs --gold-share"),
        (["--gold-feedback"], "--gold-feedback needs --gold-share"),
        (["--gold-share", "0.1"], "--gold-share 0.1 needs --gold FILE"),
        (["--gold-share", "2"], "less than or equal to 1"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: list[str], rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["web", *options]) == 64
    assert rule in capsys.readouterr().err
