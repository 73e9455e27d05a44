"""docs/topics.md: the table is the catalogue."""

from pathlib import Path

import pytest

from topics.definitions import (
    BLOCK_BYTES,
    CATALOGUE,
    DAY_MS,
    DEFAULT_PARTITIONS,
    ROOM_BYTES,
    UNLIMITED,
    Topic,
    TopicNames,
    retention,
)

PAGE = (Path(__file__).parents[3] / "docs" / "topics.md").read_text(encoding="utf-8")
SIZES = {None: "the broker's", BLOCK_BYTES: "8 MiB", BLOCK_BYTES + ROOM_BYTES: "8 MiB + 64 KiB"}


def row(topic: Topic) -> str:
    cells = (
        f"`{TopicNames().of(topic)}`",
        topic.direction,
        topic.key,
        topic.cleanup,
        retention(topic.retention_ms),
        SIZES[topic.max_message_bytes],
        topic.group,
    )
    return f"| {' | '.join(cells)} |"


def test_the_table_is_the_catalogue() -> None:
    assert [line for line in PAGE.splitlines() if line.startswith("| `")] == list(map(row, CATALOGUE))


def test_what_all_topics_set_is_said() -> None:
    assert f"{DEFAULT_PARTITIONS} partitions" in PAGE
    shown = {"cleanup.policy", "retention.ms", "max.message.bytes"}
    for topic in CATALOGUE:
        for name, value in topic.config.items():
            assert (name if name in shown else f"{name}={value}") in PAGE


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (UNLIMITED, "for ever"),
        (0, "0 ms"),
        (1500, "1500 ms"),
        (60_000, "1 minute"),
        (90 * 60_000, "90 minutes"),
        (36 * 3_600_000, "36 hours"),
        (DAY_MS, "1 day"),
        (7 * DAY_MS, "7 days"),
    ],
)
def test_retention_in_words(milliseconds: int, words: str) -> None:
    assert retention(milliseconds) == words
