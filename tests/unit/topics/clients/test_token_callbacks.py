"""Tokens of confluent-kafka's clients: each is requested from the source, and an error has the reason."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from streamapp.worker.reserved_ports import free_ports
from tests.token_endpoint import TokenEndpoint, granted, refused
from topics.clients.sender import Sender
from topics.errors import TokenError
from topics.tokens.oidc import Oidc
from topics.tokens.token_source import TokenSource


@pytest.fixture
def away() -> dict[str, Any]:
    return {"bootstrap.servers": f"127.0.0.1:{free_ports()}", "log_level": 0}


def signing_in(source: TokenSource, away: dict[str, Any]) -> dict[str, Any]:
    return away | {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": source,
    }


class Asked(TokenSource):
    """Notes how often clients have asked for a token."""

    def __init__(self, url: str, extensions: dict[str, str]) -> None:
        given = {"client.id": "me", "client.secret": "x", "token.endpoint.url": url}
        super().__init__(
            Oidc({f"sasl.oauthbearer.{name}": value for name, value in given.items()}), extensions
        )
        self.times = 0
        self.comes = threading.Condition()

    def __call__(self, config: str | None = None) -> tuple[str, float, str, dict[str, str]]:
        with self.comes:
            self.times += 1
            self.comes.notify_all()
        return super().__call__(config)

    def wait_for(self, times: int) -> None:
        with self.comes:
            assert self.comes.wait_for(lambda: self.times >= times, 60), self.times


def test_a_client_requests_each_token_before_the_last_one_ends(away: dict[str, Any]) -> None:
    errors: list[KafkaError] = []
    with TokenEndpoint(granted(3)) as endpoint:
        source = Asked(endpoint.url, {"tenant": "grove"})
        client = Producer(signing_in(source, away) | {"error_cb": errors.append})
        source.wait_for(3)
        client.poll(0)
        assert [error.str() for error in errors if error.code() == KafkaError._AUTHENTICATION] == []
        del client
        source.close()


def test_a_sender_that_can_get_no_token_has_the_reason(away: dict[str, Any]) -> None:
    with TokenEndpoint(refused(401, "invalid_client")) as endpoint:
        source = Asked(endpoint.url, {})
        with pytest.raises(TokenError, match="invalid_client"):
            Sender(signing_in(source, away))
        source.close()
