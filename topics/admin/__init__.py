"""Create, check and describe the topics of the catalogue on a cluster."""

from topics.admin.creation import BROKER_DEFAULT, Creation, create
from topics.admin.description import PartitionDescription, TopicDescription, describe
from topics.admin.differences import Difference, check

__all__ = [
    "BROKER_DEFAULT",
    "Creation",
    "Difference",
    "PartitionDescription",
    "TopicDescription",
    "check",
    "create",
    "describe",
]
