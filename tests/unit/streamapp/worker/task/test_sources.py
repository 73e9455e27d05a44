"""The one table of sources: whoever goes by it gets every row."""

from typing import get_args

from streamapp.worker.observability.metrics import Metrics
from streamapp.worker.task import counters
from streamapp.worker.task.sources import SOURCES, SourceName, in_words, named, positions_of, source_topics
from streamapp.worker.task.task import CODE
from topics.definitions import TopicNames


def test_every_name_has_a_row_a_topic_and_code() -> None:
    assert tuple(SOURCES) == get_args(SourceName)
    assert source_topics(TopicNames("t.")) == {source: f"t.{source.replace('_', '-')}" for source in SOURCES}
    assert CODE.keys() == SOURCES.keys()


def test_a_control_comes_before_its_instances_and_an_instance_before_its_label() -> None:
    order = list(SOURCES)
    assert order.index("controls") < order.index("instances") < order.index("labels")
    assert order.index("instances") < order.index("feature_values") < order.index("labels")


def test_an_installation_may_do_without_the_topics_of_features() -> None:
    without = source_topics(TopicNames("t.", features=False))
    assert list(without) == ["controls", "instances", "labels"]
    positions = positions_of({"instances": 7})
    assert positions["feature_values"] == 0
    assert named(positions) == {"controls": 0, "instances": 7, "labels": 0}
    assert named(positions_of({"feature_values": 3}))["feature_values"] == 3


def test_what_is_counted_of_a_source_shares_one_metric() -> None:
    of_sources = [name for name in counters.MEANING if name.partition(".")[0] in SOURCES]
    assert {name.partition(".")[0] for name in of_sources} == set(SOURCES)
    assert not set(of_sources) & Metrics().counted.keys()


def test_positions_are_said_by_name_in_causal_order() -> None:
    positions = positions_of({"labels": 2, "instances": 7})
    assert positions == {"controls": 0, "instances": 7, "feature_values": 0, "labels": 2}
    assert in_words(positions) == "controls 0, instances 7, labels 2"
    assert in_words({**positions, "feature_values": 3}).endswith("instances 7, feature_values 3, labels 2")
    assert in_words({"controls": None}) == "controls none"
