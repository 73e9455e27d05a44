"""The catalogue says what DESIGN §2 says."""

import pytest

from topics.definitions import (
    CATALOGUE,
    CONTROLS,
    DEAD_LETTERS,
    EVALUATIONS,
    INSTANCES,
    LABEL_REQUESTS,
    TopicNames,
)

PER_DAY = 24 * 3600 * 1000


def test_the_catalogue_lists_three_inputs_and_five_outputs():
    by_direction = {d: [t.name for t in CATALOGUE if t.direction == d] for d in ("in", "out")}
    assert by_direction == {
        "in": ["instances", "labels", "controls"],
        "out": ["predictions", "label-requests", "drift-alerts", "evaluations", "dead-letters"],
    }


def test_all_topics_are_keyed_by_model_and_co_partitioned():
    assert {(t.key, t.group) for t in CATALOGUE} == {("model key", "learning")}


def test_commands_are_kept_for_ever_and_dead_letters_longest_of_the_others():
    assert CONTROLS.config["retention.ms"] == "-1"
    others = [t.retention_ms for t in CATALOGUE if t is not CONTROLS]
    assert DEAD_LETTERS.retention_ms == max(others) >= 90 * PER_DAY


def test_a_dead_letter_has_room_for_the_largest_input_and_its_headers():
    assert DEAD_LETTERS.max_message_bytes > INSTANCES.max_message_bytes > 1024 * 1024


def test_a_label_request_has_room_for_the_features_of_the_largest_instance_and_what_is_around_them():
    for topic in (LABEL_REQUESTS, EVALUATIONS):
        assert int(topic.config["max.message.bytes"]) > INSTANCES.max_message_bytes


def test_a_dead_letter_has_room_for_the_largest_control():
    assert CONTROLS.max_message_bytes == INSTANCES.max_message_bytes < DEAD_LETTERS.max_message_bytes


def test_names_carry_the_prefix_as_attributes_and_as_a_mapping():
    names = TopicNames("team.fraud.")
    assert names.instances == "team.fraud.instances"
    assert names.label_requests == "team.fraud.label-requests"
    assert list(names.all()) == ["team.fraud." + t.name for t in CATALOGUE]
    assert names.of(DEAD_LETTERS) == names.dead_letters == "team.fraud.dead-letters"
    assert TopicNames() == TopicNames("grove.") != names


@pytest.mark.parametrize("prefix", ["grove/", "grün.", "a b", "x" * 201])
def test_a_prefix_that_kafka_would_refuse_is_refused_at_once(prefix):
    with pytest.raises(ValueError, match=r"^topics\.prefix="):
        TopicNames(prefix)
