"""A real Apache Kafka (KRaft, one node) that needs only Python: jars from Maven, Java from a wheel.

Callers need only `with EmbeddedBroker() as broker: broker.bootstrap_servers`.
"""

from streamapp.embedded.broker import EmbeddedBroker

__all__ = ["EmbeddedBroker"]
