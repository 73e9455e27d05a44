"""Topic administration: create, check and describe the topics of the catalogue on a cluster."""

from topics.clients.admin.creation import BROKER_DEFAULT, Creation, create
from topics.clients.admin.description import PartitionDescription, TopicDescription, describe
from topics.clients.admin.differences import TopicDifference, check
from topics.clients.admin.likeness import Likeness, alike, create_alike, existing, installed
from topics.clients.admin.readiness import wait_until_ready

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
