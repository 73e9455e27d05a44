"""Subject names: the names under which a registry keeps the versions of schemas, by strategy."""

from __future__ import annotations

from typing import Final, Literal, get_args

from topics.errors import RegistryError

Strategy = Literal["TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy"]
STRATEGIES: Final[tuple[Strategy, ...]] = get_args(Strategy)


def subject_name(strategy: Strategy, topic: str, record_name: str | None) -> str:
    """Return the subject of the values of a topic; RegistryError if the strategy needs a record name.

    >>> subject_name("TopicNameStrategy", "grove.instances", None)
    'grove.instances-value'
    >>> subject_name("TopicRecordNameStrategy", "grove.instances", "grove.Instance")
    'grove.instances-grove.Instance'
    """
    if strategy == "TopicNameStrategy":
        return f"{topic}-value"
    if not record_name:
        message = (
            f"value.subject.name.strategy={strategy} needs a schema with a name; name its record or title, "
            "or set TopicNameStrategy"
        )
        raise RegistryError(message)
    return record_name if strategy == "RecordNameStrategy" else f"{topic}-{record_name}"
