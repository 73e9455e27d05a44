"""Topic administration: create, check and describe the topics of the catalogue on a cluster."""

from topics.admin.creation import BROKER_DEFAULT, Creation, create
from topics.admin.description import PartitionDescription, TopicDescription, describe
from topics.admin.differences import TopicDifference, check
from topics.admin.likeness import Likeness, alike, create_alike, existing, installed
from topics.admin.readiness import wait_until_ready

__all__ = [
    "BROKER_DEFAULT",
    "Creation",
    "Likeness",
    "PartitionDescription",
    "TopicDescription",
    "TopicDifference",
    "alike",
    "check",
    "create",
    "create_alike",
    "describe",
    "existing",
    "installed",
    "wait_until_ready",
]
