"""What a user is shown who may not do something: a command that grants it, with the broker's own tool."""

import shlex

import pytest

from topics.clients.access import Access, Kind


@pytest.mark.parametrize(
    ("kind", "resource"),
    [
        ("topic", ["--topic", "labels"]),
        ("group", ["--group", "labels"]),
        ("transactional-id", ["--transactional-id", "labels"]),
        ("cluster", ["--cluster"]),
    ],
)
@pytest.mark.parametrize(("kafka", "user"), [({"sasl.username": "anna"}, "anna"), ({}, "NAME")])
def test_the_command_grants_the_operations_on_what_was_denied(
    kind: Kind, resource: list[str], kafka: dict[str, str], user: str
) -> None:
    sentence = Access.of(kafka).denied(kind, "labels", "Write,Describe")
    command = shlex.split(sentence.partition("grant it with ")[2])
    allowed = ["kafka-acls", "--add", "--allow-principal", f"User:{user}"]
    assert command == [*allowed, "--operation", "Write", "--operation", "Describe", *resource]
