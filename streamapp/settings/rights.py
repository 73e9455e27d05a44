"""Rights: the minimum that each command needs of a broker with access control (ACLs), as one table.

The page `docs/rights.md` is made of it. A test grants each command only the rights of this table
(`tests/broker/test_rights.py`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from streamapp.settings.tables import code, table
from topics.clients.access import Kind
from topics.definitions import CATALOGUE, Topic, TopicNames

Operation = Literal["Read", "Write", "Create", "Delete", "Describe", "DescribeConfigs"]


@dataclass(frozen=True, slots=True)
class Right:
    """Operations on one resource. `Read`, `Write` and `Delete` each imply `Describe` for Kafka."""

    kind: Kind
    name: str
    """Name of a topic without the prefix, "" for all topics; else the part after application.id."""
    operations: tuple[Operation, ...]
    prefixed: bool = False  # True: all resources whose names begin so
    without: str = ""  # effect on a command without the right, or when it needs it; "": an error

    def resource(self, prefix: str, application: str) -> str:
        """Return the full name of the resource."""
        return (prefix if self.kind == "topic" else application) + self.name


def _topics(topics: tuple[Topic, ...], *operations: Operation, without: str = "") -> tuple[Right, ...]:
    return tuple(Right("topic", topic.name, operations, without=without) for topic in topics)


SOURCES: Final = tuple(topic for topic in CATALOGUE if topic.direction == "in")
OUTPUTS: Final = tuple(topic for topic in CATALOGUE if topic.direction == "out")
_SETTINGS_OF_TOPICS: Final = Right(
    "topic",
    "",
    ("DescribeConfigs",),
    prefixed=True,
    without="settings of topics are not compared; a warning is logged",
)
_GROUP_SEEN: Final = Right("group", "", ("Describe",))
_TAIL: Final = _topics(
    SOURCES, "Read", without="`Describe` is enough where no record follows the newest snapshot"
)
_STATE_READ: Final = (*_TAIL, *_topics((TopicNames.journal, TopicNames.snapshots), "Read"), _GROUP_SEEN)
_PARTITION_WRITTEN: Final = (
    *_topics(SOURCES, "Read"),
    *_topics((TopicNames.journal,), "Read", "Write"),
    Right("group", "", ("Read",)),
    Right("transactional-id", "-", ("Write",), prefixed=True),
)

RIGHTS: Final[Mapping[str, tuple[Right, ...]]] = {
    "worker": (
        *_topics(SOURCES, "Read"),
        *_topics(OUTPUTS, "Write"),
        *_topics((TopicNames.journal, TopicNames.snapshots), "Read", "Write"),
        Right("group", "", ("Read",)),
        Right("transactional-id", "-", ("Write",), prefixed=True),
        *_topics(
            (TopicNames.journal,),
            "Delete",
            without="the journal keeps the part before its snapshots, and grows",
        ),
        _SETTINGS_OF_TOPICS,
    ),
    "web": (
        *_topics(
            (
                TopicNames.label_requests,
                TopicNames.feature_requests,
                TopicNames.controls,
                TopicNames.evaluations,
                TopicNames.model_events,
            ),
            "Read",
        ),
        *_topics((TopicNames.labels, TopicNames.feature_values, TopicNames.audit), "Read", "Write"),
    ),
    "bridge label-studio": (
        *_topics((TopicNames.label_requests, TopicNames.controls), "Read"),
        *_topics((TopicNames.labels,), "Write"),
        Right("group", "-label-studio", ("Read",)),
    ),
    "bridge argilla": (
        *_topics((TopicNames.label_requests, TopicNames.controls), "Read"),
        *_topics((TopicNames.labels,), "Write"),
        Right("group", "-argilla", ("Read",)),
    ),
    "replay": _topics((TopicNames.instances, TopicNames.labels), "Write"),
    "replay --max-outstanding": (
        *_topics((TopicNames.instances, TopicNames.labels), "Write"),
        *_topics((TopicNames.label_requests,), "Describe"),
        Right("group", "", ("Describe",)),
        Right("group", "-oracle", ("Describe",)),
    ),
    "replay --from-topic": _topics((TopicNames.instances, TopicNames.labels), "Write"),
    "replay --from-topic, other topics": _topics((TopicNames.instances, TopicNames.labels), "Read"),
    "oracle": (
        *_topics((TopicNames.label_requests,), "Read"),
        *_topics((TopicNames.labels,), "Write"),
        Right("group", "-oracle", ("Read",)),
    ),
    "oracle --features": (
        *_topics((TopicNames.feature_requests,), "Read"),
        *_topics((TopicNames.feature_values,), "Write"),
        Right("group", "-feature-oracle", ("Read",)),
    ),
    "topics create": (Right("topic", "", ("Create", "Describe"), prefixed=True),),
    "topics check": (Right("topic", "", ("Describe", "DescribeConfigs"), prefixed=True),),
    "topics describe": (
        Right("topic", "", ("Describe",), prefixed=True),
        Right(
            "topic", "", ("DescribeConfigs",), prefixed=True, without="cleanup and retention are not shown"
        ),
        _GROUP_SEEN,
    ),
    "journal show": _topics((TopicNames.journal,), "Read"),
    "models list": _STATE_READ,
    "models show": _STATE_READ,
    "models export": _STATE_READ,
    "models rebuild": (
        *_topics(SOURCES, "Read", without="`Describe` is enough where there is nothing to replay"),
        *_topics((TopicNames.snapshots,), "Read", without="needed where a snapshot is read"),
        *_topics((TopicNames.journal,), "Read"),
        _GROUP_SEEN,
    ),
    "whatif": (
        *_topics(SOURCES, "Read", without="`Describe` is enough where there is nothing to replay"),
        *_topics((TopicNames.snapshots,), "Read", without="needed where a snapshot is read"),
        *_topics((TopicNames.journal, TopicNames.predictions), "Read"),
        _GROUP_SEEN,
    ),
    "migrate": (*_topics((*SOURCES, TopicNames.journal, TopicNames.snapshots), "Read"), _GROUP_SEEN),
    "migrate, new topics": (
        Right("topic", "", ("Create", "Read", "Write"), prefixed=True),
        Right("group", "", ("Describe",)),
    ),
    "models import": (
        *_topics((TopicNames.controls,), "Read", "Write"),
        *_topics((TopicNames.instances, TopicNames.dead_letters), "Read"),
        _GROUP_SEEN,
    ),
    "models restore": (*_PARTITION_WRITTEN, *_topics((TopicNames.snapshots,), "Read")),
    "models reset": _PARTITION_WRITTEN,
    "dlq list": _topics((TopicNames.dead_letters,), "Read"),
    "dlq show": _topics((TopicNames.dead_letters,), "Read"),
    "dlq replay": (
        *_topics((TopicNames.dead_letters,), "Read"),
        *_topics(SOURCES, "Write", without="needed where dead letters of that topic are sent back"),
    ),
    "dlq skip": _PARTITION_WRITTEN,
    "people list": _topics((TopicNames.audit,), "Read"),
    "people agreement": _topics((TopicNames.audit,), "Read"),
    "people export": _topics((TopicNames.audit,), "Read"),
    "people erase": _topics((TopicNames.audit,), "Read", "Write", "Delete"),
    "web, page Partitions": (
        *_topics(SOURCES, "Describe"),
        *_topics((TopicNames.journal,), "Read"),
        _GROUP_SEEN,
    ),
    "demo": (
        Right("topic", "", ("Create", "Delete", "Read", "Write"), prefixed=True),
        Right("group", "", ("Read",), prefixed=True),
        Right("transactional-id", "", ("Write",), prefixed=True),
        _SETTINGS_OF_TOPICS,
    ),
}
"""Command → its rights, if all topics have one prefix and all groups one application.id."""

QUESTIONS: Final[Mapping[str, str]] = {
    "model": "models show",
    "explanation": "models rebuild",
    "path": "models rebuild",
    "differences": "models show",
    "partitions": "web, page Partitions",
    "dead-letters": "dlq list",
    "dead-letter": "dlq show",
    "replay": "dlq replay",
    "skip": "dlq skip",
}
"""Questions that pages of `grove web` send to `streamapp.tools.inspection` → the command whose rights they
need, in addition to those that `web` has.
"""

INTRODUCTION: Final = """# Rights

*Made by `grove config show --rights > docs/rights.md`. One test compares the page with the code; another
test gives each command the rights of this table, and no others, on a broker with TLS, SCRAM-SHA-512 and
`StandardAuthorizer`.*

The table holds the rights that each command needs at a broker with access control. Names of topics are
without their prefix (`topics.prefix`), names of groups and transactional ids begin with `<application.id>`;
a `*` stands for every name that begins so. `Read`, `Write` and `Delete` imply `Describe`. A command that
lacks a right ends with one line that holds the `kafka-acls` command which grants it. `grove demo` with an
address uses its own topics and groups: there `topics.prefix` begins with `grove.demo-` and `application.id`
with `grove-demo-`. Commands that are not in the table need no rights.

The row `web` is for the pages for annotators and the lists of models. The other pages need, in addition,
the rights of the commands that do the same: a tree and a comparison `models show`, an explanation
`models rebuild`, dead letters `dlq list`, `show`, `replay` and `skip`. A page names the rights that it lacks.

"""

KAFKA_ACLS: Final = """
## Commands of kafka-acls

These five commands grant a worker's rights with one prefix for all topics; this is more than the table:

```
kafka-acls --add --allow-principal User:grove --operation Read --operation DescribeConfigs \\
           --topic grove. --resource-pattern-type prefixed
kafka-acls --add --allow-principal User:grove --operation Write \\
           --topic grove. --resource-pattern-type prefixed
kafka-acls --add --allow-principal User:grove --operation Delete --topic grove.journal
kafka-acls --add --allow-principal User:grove --operation Read --group streamgrove
kafka-acls --add --allow-principal User:grove --operation Write \\
           --transactional-id streamgrove- --resource-pattern-type prefixed
```

**`Write` on `controls` is for administrators.** A record there creates, replaces, freezes or deletes any
model of its partition, and may import a model from a file. An imported model is checked word by word
([Import](portable-models.md#import)), so that it can harm no process; its answers are those for which its
author made it. Applications need `Write` on `instances` and `labels` only:

```
kafka-acls --add --allow-principal User:shop --operation Write --topic grove.instances
kafka-acls --add --allow-principal User:shop --operation Write --topic grove.labels
kafka-acls --add --allow-principal User:admin --operation Write --topic grove.controls
```

The transactional ids of a worker are `<application.id>-<group.instance.id>`. A worker needs the ids of all
workers, because it ends transactions that another worker has left open. `models restore`, `models reset` and
`dlq skip` write to the journal in a transaction whose id begins with `<application.id>-` too.
"""


def page() -> str:
    """The whole page `docs/rights.md`, with a final line end."""
    rows = [row for command, rights in RIGHTS.items() for row in _rows(command, rights)]
    return (
        INTRODUCTION
        + table(("command", "of", "names", "operations", "without it, or when it is needed"), rows)
        + KAFKA_ACLS
    )


def _rows(command: str, rights: tuple[Right, ...]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each kind of resource and set of operations, with the names of the resources."""
    merged: dict[tuple[str, tuple[Operation, ...], str], list[str]] = {}
    for right in rights:
        start = "" if right.kind == "topic" else "<application.id>"
        name = code(f"{start}{right.name}{'*' * right.prefixed}")
        merged.setdefault((right.kind, right.operations, right.without), []).append(name)
    for number, ((kind, operations, without), names) in enumerate(merged.items()):
        listed = ", ".join(map(code, operations))
        yield code(command) if not number else "", kind, ", ".join(names), listed, without
