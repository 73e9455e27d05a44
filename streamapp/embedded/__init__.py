"""A real Apache Kafka (KRaft, one node) that needs nothing but Python: jars from Maven, Java from a wheel.

`with EmbeddedBroker() as broker: broker.bootstrap_servers` is all a caller needs.
"""

from streamapp.embedded.broker import EmbeddedBroker

__all__ = ["EmbeddedBroker"]
