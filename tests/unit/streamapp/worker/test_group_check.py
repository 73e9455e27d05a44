"""What a worker looks at before it joins its group: who is there, and with how many partitions."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition

from streamapp.errors import SettingsError
from streamapp.worker.group_check import ForeignGroupError, check_members, check_partitions
from streamapp.worker.journal.offset_metadata import metadata_of
from topics.clients.consumer_group import GroupMember
from topics.definitions import TopicNames

NAMES = TopicNames("b.")


def member(name: str, *topics: str) -> GroupMember:
    return GroupMember(name, "10.0.0.7", frozenset(topics))


def test_a_worker_does_not_join_those_of_other_topics() -> None:
    with pytest.raises(ForeignGroupError) as raised:
        check_members([member("w1", "a.instances", "a.labels")], "one", "w2", NAMES)
    assert str(raised.value).startswith(
        "application.id=one must be one installation's own: its group has the member w1 at 10.0.0.7, which "
        "reads a.instances, not b.instances; "
    )
    assert "--set application.id=NAME" in str(raised.value)
    assert raised.value.exit_code == 1, "it may pass: one that was stopped is waited for"


@pytest.mark.parametrize(
    "there",
    [
        member("w1"),  # has nothing yet
        member("w1", "b.instances"),
        member("w1", "b.snapshots"),  # as a standby
        member("w2", "a.instances"),  # whose place we take
    ],
)
def test_others_of_our_topics_and_one_of_our_name_are_no_reason_not_to(there: GroupMember) -> None:
    check_members([there], "one", "w2", NAMES)


def committed(*notes: str) -> list[TopicPartition]:
    return [TopicPartition("b.instances", number, 7, metadata=note) for number, note in enumerate(notes)]


def test_topics_that_have_more_partitions_than_were_processed_are_refused() -> None:
    with pytest.raises(SettingsError) as raised:
        check_partitions(committed("", metadata_of("abc", 2)), "one", NAMES, 4)
    told = str(raised.value)
    assert told.startswith(
        "topics b.* have 4 partitions, but group one has processed b.instances with 2 partitions"
    )
    assert "grove migrate" in told
    assert "reset --partition N' for each N from 0 to 1" in told


def test_offsets_of_a_release_that_noted_no_number_are_taken() -> None:
    check_partitions(committed("", "by hand", metadata_of("abc"), metadata_of("abc", 4)), "one", NAMES, 4)
