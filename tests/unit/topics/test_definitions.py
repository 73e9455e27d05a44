"""The catalogue says what DESIGN §2 says."""

import pytest

from topics.definitions import CATALOGUE, Topic, TopicNames

PER_DAY = 24 * 3600 * 1000


def test_the_catalogue_lists_inputs_outputs_and_where_state_is_kept():
    directions = ("in", "out", "internal")
    by_direction = {d: [t.name for t in CATALOGUE if t.direction == d] for d in directions}
    assert by_direction == {
        "in": ["instances", "labels", "feature-values", "controls"],
        "out": [
            "predictions",
            "label-requests",
            "feature-requests",
            "drift-alerts",
            "model-events",
            "evaluations",
            "dead-letters",
        ],
        "internal": ["journal", "snapshots", "audit"],
    }


def test_all_topics_are_co_partitioned_and_those_of_users_keyed_by_model():
    assert {t.group for t in CATALOGUE} == {"learning"}
    assert {t.key for t in CATALOGUE if t.direction != "internal"} == {"model key"}


def test_state_is_kept_until_a_worker_removes_it():
    assert {t.config["retention.ms"] for t in (TopicNames.journal, TopicNames.snapshots)} == {"-1"}
    assert TopicNames.snapshots.config["cleanup.policy"] == "compact"
    assert TopicNames.journal.config["cleanup.policy"] == "delete"


def test_deleted_parts_of_snapshots_leave_a_compacted_topic_within_hours():
    """Each snapshot has its own keys: marks that stay for a day outnumber its parts by far."""
    settings = TopicNames.snapshots.config
    assert int(settings["delete.retention.ms"]) * 24 == PER_DAY
    assert int(settings["segment.bytes"]) * 16 == 1024**3, "the last segment is not compacted"
    others = [topic for topic in CATALOGUE if topic is not TopicNames.snapshots]
    assert not any("delete.retention.ms" in topic.config for topic in others)


def test_commands_are_kept_for_ever_and_dead_letters_longest_of_the_others():
    assert TopicNames.controls.config["retention.ms"] == "-1"
    others = [t.retention_ms for t in CATALOGUE if t is not TopicNames.controls and t.direction != "internal"]
    assert TopicNames.dead_letters.retention_ms == max(others) >= 90 * PER_DAY


def largest(topic: Topic) -> int:
    """Return the limit of a topic that has one of its own, in bytes."""
    assert topic.max_message_bytes is not None
    return topic.max_message_bytes


def test_a_dead_letter_has_room_for_the_largest_input_and_its_headers():
    assert largest(TopicNames.dead_letters) > largest(TopicNames.instances) > 1024 * 1024


def test_a_label_request_has_room_for_the_features_of_the_largest_instance_and_what_is_around_them():
    for topic in (TopicNames.label_requests, TopicNames.evaluations, TopicNames.model_events):
        assert int(topic.config["max.message.bytes"]) > largest(TopicNames.instances)


def test_a_dead_letter_has_room_for_the_largest_control():
    assert largest(TopicNames.controls) == largest(TopicNames.instances) < largest(TopicNames.dead_letters)


def test_names_carry_the_prefix_as_attributes_and_as_a_mapping():
    names = TopicNames("team.fraud.")
    assert names.instances == "team.fraud.instances"
    assert names.label_requests == "team.fraud.label-requests"
    assert list(names.all()) == ["team.fraud." + t.name for t in CATALOGUE]
    assert names.of(TopicNames.dead_letters) == names.dead_letters == "team.fraud.dead-letters"
    assert TopicNames() == TopicNames("grove.") != names


def test_an_attribute_is_the_name_of_its_topic_and_its_definition_on_the_class():
    names = TopicNames("fraud.")
    for topic in CATALOGUE:
        attribute = topic.name.replace("-", "_")
        assert getattr(names, attribute) == "fraud." + topic.name
        assert getattr(TopicNames, attribute) is topic


@pytest.mark.parametrize("prefix", ["grove/", "grün.", "a b", "x" * 201])
def test_a_prefix_that_kafka_would_refuse_is_refused_at_once(prefix):
    with pytest.raises(ValueError, match=r"^topics\.prefix="):
        TopicNames(prefix)
