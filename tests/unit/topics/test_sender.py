"""A producer never forgets what it could not send."""

from collections.abc import Callable

import pytest

from streamapp.embedded.broker import free_port
from topics.errors import DeliveryError
from topics.sender import Sender


def one_run(sender: Sender, value: bytes) -> None:
    sender.send_run("topic", 0, [value], [b"key"], [0])


def one_row(sender: Sender, value: bytes) -> None:
    sender.send(["topic"], [value], [b"key"], [0], [0])


@pytest.mark.parametrize("send", [one_run, one_row])
def test_a_record_that_the_client_did_not_take_fails_every_later_flush(
    send: Callable[[Sender, bytes], None],
) -> None:
    sender = Sender({"bootstrap.servers": f"127.0.0.1:{free_port()}", "message.max.bytes": 2000})
    for use in (lambda: send(sender, bytes(4000)), sender.check, sender.flush):
        with pytest.raises(DeliveryError, match=r"^topic\[0\]: a record of 4000 bytes: .*too large"):
            use()
    sender.close()
