"""A real Apache Kafka (KRaft, one or more nodes) that needs only Python: jars from Maven, Java from a wheel.

Callers need only `with EmbeddedBroker() as broker: broker.bootstrap_servers`.
"""

from streamapp.embedded.broker import EmbeddedBroker
from streamapp.embedded.broker_cluster import EmbeddedCluster

__all__ = ["EmbeddedBroker", "EmbeddedCluster"]
