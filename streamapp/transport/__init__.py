"""The `kafkabatch://` driver: Faust with one event per partition and run instead of one per record."""

from __future__ import annotations

from typing import ClassVar

from faust.transport import drivers
from faust.transport.drivers import aiokafka as driver

from streamapp.transport.consumer import Consumer

SCHEME = "kafkabatch"


class Transport(driver.Transport):
    """Faust's aiokafka transport with our consumer."""

    Consumer: ClassVar[type] = Consumer


def register() -> None:
    """Make `kafkabatch://` known to Faust."""
    drivers.TRANSPORTS.aliases[SCHEME] = "streamapp.transport:Transport"
