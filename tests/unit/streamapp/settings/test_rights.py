"""The table of rights: its page is current, and it names commands that exist and topics of the catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from streamapp.cli.main import app
from streamapp.settings import load_settings
from streamapp.settings.rights import QUESTIONS, RIGHTS, page
from streamapp.tools.inspection.server import questions
from streamapp.tools.offline.installation import Installation
from streamapp.worker.task.task_config import TaskConfig
from topics.definitions import CATALOGUE, TopicNames

ROOT = Path(__file__).parents[4]


def test_the_page_is_current() -> None:
    assert (ROOT / "docs" / "rights.md").read_text() == page(), "grove config show --rights > docs/rights.md"


@pytest.mark.parametrize("command", RIGHTS)
def test_a_command_of_the_table_exists(command: str) -> None:
    found = typer.main.get_command(app)
    for word in command.partition(",")[0].split():
        if word.startswith("--"):
            assert word in {option for parameter in found.params for option in parameter.opts}
        else:
            found = found.commands[word]  # type: ignore[attr-defined]


def test_every_question_of_a_page_has_the_rights_of_an_entry(tmp_path: Path) -> None:
    config = TaskConfig.from_settings(load_settings(state_dir=tmp_path))
    place = Installation({"bootstrap.servers": "127.0.0.1:1"}, "a", TopicNames("p."), config)
    assert QUESTIONS.keys() == questions(place).keys()
    assert set(QUESTIONS.values()) <= RIGHTS.keys()


def test_topics_are_those_of_the_catalogue_and_each_has_a_reader_or_writer() -> None:
    named = {right.name for rights in RIGHTS.values() for right in rights if right.kind == "topic"}
    assert named - {""} == {topic.name for topic in CATALOGUE}


def test_a_worker_has_no_rights_on_what_others_write() -> None:
    rights = {right.name: right.operations for right in RIGHTS["worker"] if right.kind == "topic"}
    assert "Write" not in rights["instances"] + rights["labels"] + rights["controls"]
    assert "audit" not in rights
