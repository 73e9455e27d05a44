"""A broker behind TLS that lets clients in by tokens of an issuer, and knows their rights by the subject."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from streamapp.embedded import broker as embedded
from streamapp.embedded.configuration import logging_properties
from tests.broker.issuer import COMPANY, Issuer
from tests.broker.secured import USER, SecuredBroker, broker_behind_tls, properties_of
from topics.tokens.sign_in import signed_in

AUDIENCE = "kafka"
LIFE_S = 12
"""Life of a token, and of a connection: the broker closes one whose client does not sign in again."""

OAUTH = "org.apache.kafka.common.security.oauthbearer"


class TokenBroker(SecuredBroker):
    """Users are the clients of an issuer. `issuer` is set before the broker starts."""

    issuer: Issuer
    first_token: str  # one that has ended when the other tests are over

    def add_users(self, users: Iterable[str]) -> None:
        """Do nothing: the issuer gives a token to any client."""

    def _lets_in(self) -> bool:
        try:
            client = AdminClient(signed_in(properties_of(self.settings)) | {"log_level": 0})
            return bool(client.list_topics(timeout=5).brokers)
        except KafkaException:
            return False

    def settings_of(self, user: str) -> dict[str, str]:
        """Environment of a command of a user."""
        return self.settings_at(f"{self.issuer.url(COMPANY)}/token", user)

    def settings_at(self, endpoint: str, user: str = USER, scope: str = AUDIENCE) -> dict[str, str]:
        """Environment of a command of a user whose tokens come from an endpoint."""
        return {
            "GROVE_KAFKA_BOOTSTRAP_SERVERS": self.clients,
            "GROVE_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "GROVE_KAFKA_SSL_CA_LOCATION": str(self.authority),
            "GROVE_KAFKA_SASL_MECHANISM": "OAUTHBEARER",
            "GROVE_KAFKA_SASL_OAUTHBEARER_METHOD": "oidc",
            "GROVE_KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL": endpoint,
            "GROVE_KAFKA_SASL_OAUTHBEARER_CLIENT_ID": user,
            "GROVE_KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET": SECRET,
            "GROVE_KAFKA_SASL_OAUTHBEARER_SCOPE": scope,
            "GROVE_KAFKA_SASL_OAUTHBEARER_EXTENSIONS": "tenant=grove",
        }


SECRET = "never-shown-7"


@contextmanager
def token_broker(monkeypatch: pytest.MonkeyPatch, directory: Path) -> Iterator[TokenBroker]:
    """A broker with its issuer; both logs lie in `directory`."""
    with Issuer(directory, LIFE_S) as issuer:
        url = issuer.url(COMPANY)
        # Kafka reads keys of named places only.
        monkeypatch.setenv("JDK_JAVA_OPTIONS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}/jwks")
        plain = logging_properties

        def with_requests(file: Path) -> str:
            return plain(file) + "logger.requests.name=kafka.request.logger\nlogger.requests.level=debug\n"

        monkeypatch.setattr(embedded, "logging_properties", with_requests)
        monkeypatch.setattr(TokenBroker, "issuer", issuer, raising=False)
        listener = {
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "oauthbearer.sasl.jaas.config": f"{OAUTH}.OAuthBearerLoginModule required;",
            "oauthbearer.sasl.server.callback.handler.class": f"{OAUTH}.OAuthBearerValidatorCallbackHandler",
            "sasl.oauthbearer.jwks.endpoint.url": f"{url}/jwks",
            "sasl.oauthbearer.expected.issuer": url,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.clock.skew.seconds": 0,
            "oauthbearer.connections.max.reauth.ms": LIFE_S * 1000,
        }
        with broker_behind_tls(monkeypatch, directory, TokenBroker, listener) as broker:
            yield broker
