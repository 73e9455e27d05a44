"""Topics and rights as JSON, of which the Helm chart makes objects of Strimzi.

A test compares the file with the code.
"""

import json
from collections.abc import Mapping
from typing import Final

from streamapp.settings.rights import RIGHTS, Right
from topics.definitions import CATALOGUE

COMPONENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "worker": ("worker",),
    "web": ("web", *("models show", "models rebuild", "dlq list", "dlq show", "web, page Partitions")),
    "bridge": ("bridge label-studio",),
    "topics": ("topics create",),
}
"""Component of the chart → commands whose rights it needs. `web` shows trees, explanations, dead letters and
partitions, but sends no dead letter back and skips no record: these need rights of administrators.
"""

_STRIMZI_TYPES: Final = {"topic": "topic", "group": "group", "transactional-id": "transactionalId"}


def catalogue_text() -> str:
    """Return the JSON text: `topics` in the order of the catalogue, `rights` by component, with a line end.

    Names have neither prefix nor application id: the name of a group or transactional id is the part after
    the application id.
    """
    topics = [{"name": topic.name, "config": topic.config} for topic in CATALOGUE]
    rights = {component: _entries(commands) for component, commands in COMPONENTS.items()}
    return json.dumps({"topics": topics, "rights": rights}, indent=2) + "\n"


def _entries(commands: tuple[str, ...]) -> list[dict[str, object]]:
    """Return one entry for each resource, with all operations that the commands need on it."""
    operations: dict[tuple[str, str, str], list[str]] = {}
    for command in commands:
        for right in RIGHTS[command]:
            listed = operations.setdefault(_resource(right), [])
            listed += [operation for operation in right.operations if operation not in listed]
    return [
        {"type": kind, "name": name, "patternType": pattern, "operations": listed}
        for (kind, name, pattern), listed in operations.items()
    ]


def _resource(right: Right) -> tuple[str, str, str]:
    return _STRIMZI_TYPES[right.kind], right.name, "prefix" if right.prefixed else "literal"
