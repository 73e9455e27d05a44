"""The `kafkabatch://` driver: Faust with one event per partition and run instead of one per record."""

from __future__ import annotations

from typing import Any, ClassVar

from faust.transport import drivers
from faust.transport.drivers import aiokafka as driver

from streamapp.worker.driver.consumer import Consumer
from streamapp.worker.transport.connect_retry import retry_connect

SCHEME = "kafkabatch"


class Producer(driver.Producer):
    """Faust's producer (of changelogs), which waits for the broker when it starts."""

    def _new_producer(self, transactional_id: str | None = None) -> Any:
        producer = super()._new_producer(transactional_id)
        retry_connect(producer.client, lambda: self.app.should_stop)
        return producer


class Transport(driver.Transport):
    """Faust's aiokafka transport with our consumer and producer."""

    Consumer: ClassVar[type] = Consumer
    Producer: ClassVar[type] = Producer


def register() -> None:
    """Register the driver `kafkabatch://` with Faust."""
    drivers.TRANSPORTS.aliases[SCHEME] = "streamapp.worker.driver.kafkabatch:Transport"
