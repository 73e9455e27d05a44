"""Data sets that there is nothing to replay of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from topics.definitions import TopicNames
from topics.errors import DatasetError
from topics.readers import open_dataset
from topics.replay import Replay, ReplayPlan

NAMES = TopicNames("t.")


@pytest.fixture(scope="module")
def kafka() -> Any:
    """Yield the properties of librdkafka's mock cluster, alive as long as its owner."""
    owner = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "unused", "log_level": 0})
    for topic in (NAMES.instances, NAMES.labels):
        metadata = owner.list_topics(topic, timeout=60)
    broker = next(iter(metadata.brokers.values()))
    yield {"bootstrap.servers": f"{broker.host}:{broker.port}"}
    owner.flush(1)


def replayed(path: Path, text: str, kafka: Any) -> int:
    path.write_text(text, newline="")
    return Replay(open_dataset(path), ReplayPlan(names=NAMES), kafka).run().rows


@pytest.mark.parametrize("text", ["a,b,class\n", "\ufeffa,b,class\r\n\r\n", "\n \n\n"])
def test_a_file_without_rows_is_an_error_that_names_it(tmp_path: Path, kafka: Any, text: str) -> None:
    with pytest.raises(DatasetError, match=r"rows\.csv: has no rows"):
        replayed(tmp_path / "rows.csv", text, kafka)


def test_a_class_alone_is_no_instance(tmp_path: Path, kafka: Any) -> None:
    with pytest.raises(DatasetError, match="no attribute beside the class"):
        replayed(tmp_path / "rows.csv", "class\nx\ny\n", kafka)


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffa,b,class\n1,2,x\n3,4,y\n",
        "a,b,class\r\n1,2,x\r\n3,4,y\r\n",
        "a,b,class\n1,2,x\n3,4,y",
        "\n\na,b,class\n1,2,x\n\n3,4,y\n  \n\n\n",
    ],
)
def test_marks_line_ends_and_blank_lines_do_not_count(tmp_path: Path, kafka: Any, text: str) -> None:
    assert replayed(tmp_path / "rows.csv", text, kafka) == 2
