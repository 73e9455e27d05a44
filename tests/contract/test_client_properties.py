"""Our lists of client properties against the librdkafka that is installed."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from streamapp.settings.clients import _LIBRDKAFKA_NAMES
from streamapp.settings.properties import ELSEWHERE, KNOWN, NOT_OF_A_WORKER, RENAMED
from streamapp.settings.rules import OWNED
from topics.tokens.msk_iam import MskIam
from topics.tokens.oidc import Oidc
from topics.tokens.providers import OF_EVERY_METHOD, Provider
from topics.tokens.token_file import TokenFile


def is_known(name: str) -> bool:
    try:
        AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0, name: "\x01"})
    except KafkaException as error:
        return "No such configuration property" not in error.args[0].str()
    return True


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_every_listed_property_is_one(name: str) -> None:
    assert is_known(_LIBRDKAFKA_NAMES.get(name, name))


@pytest.mark.parametrize("name", sorted(RENAMED))
def test_librdkafkas_own_names_are_its_own_and_ours_lead_to_a_property(name: str) -> None:
    ours = RENAMED[name]
    assert is_known(name)
    assert ours in KNOWN or ours in OWNED or ours == "bootstrap.servers"
    assert ours not in RENAMED


def test_the_lists_do_not_overlap() -> None:
    assert not KNOWN & (RENAMED.keys() | ELSEWHERE.keys() | OWNED.keys())
    assert NOT_OF_A_WORKER <= KNOWN


def test_what_somebody_elses_clients_call_it_is_not_known_here() -> None:
    ours = "enable.sasl.oauthbearer.unsecure.jwt"  # the source of tokens takes its place
    assert [name for name in ELSEWHERE if is_known(name) and name != ours] == [
        name for name in ELSEWHERE if name in ("sasl.jaas.config", "ssl.truststore.location")
    ], "librdkafka knows these two to say what to use instead"


@pytest.mark.parametrize("provider", [Oidc, TokenFile, MskIam])
def test_what_sources_of_tokens_take_has_the_names_of_kafkas_clients(provider: type[Provider]) -> None:
    of_java = ("sasl.oauthbearer.sub.claim.name", "sasl.oauthbearer.header.urlencode")
    for name in (*OF_EVERY_METHOD, *provider.required, *provider.optional):
        assert name in of_java or is_known(name), name
