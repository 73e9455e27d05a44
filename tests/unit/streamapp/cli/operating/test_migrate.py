"""`grove migrate`: mistakes that are seen before a broker is asked; how it says what is left to do."""

from __future__ import annotations

import pytest

from streamapp.cli.main import main
from streamapp.tools.migration.advice import left_to_do, stays_in_words
from streamapp.tools.migration.migration import Report, named
from streamapp.tools.migration.old_place import Stays
from streamapp.tools.migration.places import NewPlace
from topics.definitions import TopicNames

NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        ([], 64, "Missing option '--to-prefix'"),
        (["--to-prefix", "grove."], 64, "--to-prefix 'grove.' must not be the prefix of the old topics"),
        (["--to-prefix", "a b"], 64, "--to-prefix 'a b' must consist of letters, digits"),
        (["--to-prefix", "b.", "--partitions", "0"], 64, "'--partitions'"),
        (["--to-prefix", "b.", "--set", "nonsense=1"], 64, "--set nonsense: no such setting"),
        (["--to-prefix", "b."], 1, f"bootstrap.servers={NOWHERE} did not answer"),
        (["--to-prefix", "grove.", "--to-bootstrap-servers", "x:1"], 1, f"{NOWHERE} did not answer"),
    ],
)
def test_what_cannot_be_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, says: str
) -> None:
    assert main(["migrate", *arguments, "-b", NOWHERE]) == status
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert says in err


def test_what_is_left_to_do_says_only_what_is() -> None:
    was = TopicNames("a.")
    new = NewPlace({"bootstrap.servers": NOWHERE}, "app", TopicNames("b."), 3)
    report = Report()
    nothing = left_to_do(report, was, new, {"GROVE_TOPICS_PREFIX": "b."})
    assert [step.split(":")[0] for step in nothing] == [
        "producers",
        "consumers",
        "workers",
        "the old topics (a.*) are as they were",
    ]
    assert "b.instances, b.labels and b.controls" in nothing[0]
    assert "over 3 partitions" in nothing[0]
    assert (
        "the same settings but GROVE_TOPICS_PREFIX=b., and auto.offset.reset=earliest if it was latest"
        in nothing[2]
    )
    assert r"kafka-topics --delete --topic 'a\.(instances|labels|feature-values|controls|" in nothing[3]
    report.models, report.stays = 2, Stays(waiting=3, requests=1)
    report.unprocessed["labels"] = 1234
    more = left_to_do(report, was, new, {"GROVE_TOPICS_PREFIX": "b."})
    assert "records that were not processed (1,234 of labels)" in more[0]
    assert "shows the 2 models" in more[4]
    assert len(more) == len(nothing) + 3
    waiting = "3 instances that wait for a label, 1 of them with an open request, which is counted as expired"
    assert stays_in_words(report) == waiting


def test_of_many_keys_the_first_few_are_named() -> None:
    assert named(["a", "b"]) == "'a', 'b'"
    assert named([str(n) for n in range(7)]) == "'0', '1', '2', '3', '4' and 2 more"
