"""Tokens of an identity provider: the request, the answers that are taken, and the error of any other."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.dripping_server import dripping_server
from tests.log_lines import lines_of
from tests.token_endpoint import Answer, TokenEndpoint, granted, jwt, refused
from topics.errors import TokenError, TokenRefusedError
from topics.tokens import oidc
from topics.tokens.oidc import Oidc
from topics.tokens.token import MOST_BYTES, UNKNOWN_LIFE_S, Token

SECRET = "s3cr%t +ü"
OWN = {"sasl.oauthbearer.client.id": "grove", "sasl.oauthbearer.client.secret": SECRET}


def provider(url: str, **more: str) -> Oidc:
    given = {"sasl.oauthbearer.token.endpoint.url": url, **OWN} | more
    assert list(Oidc.problems(given)) == []
    return Oidc(given)


def fetch(*answers: Answer, **more: str) -> Token:
    with TokenEndpoint(*answers) as endpoint:
        return provider(endpoint.url, **more).fetch()


@pytest.mark.parametrize(
    ("encode", "login"), [("false", f"grove:{SECRET}"), ("true", "grove:s3cr%25t+%2B%C3%BC")]
)
def test_the_request_is_a_client_credentials_grant(encode: str, login: str) -> None:
    more = {"sasl.oauthbearer.scope": "kafka cluster-1", "sasl.oauthbearer.header.urlencode": encode}
    with TokenEndpoint() as endpoint:
        token = provider(endpoint.url, **more).fetch()
    assert endpoint.forms == [{"grant_type": ["client_credentials"], "scope": ["kafka cluster-1"]}]
    assert endpoint.logins == [login]
    assert (token.seconds, token.principal) == (300, "grove")


@pytest.mark.parametrize(
    ("answer", "life"),
    [
        (granted(60), 60.0),
        (granted("60"), 60.0),
        (granted(None, jwt(iat=1_000, exp=1_090)), 90.0),  # neither by the clock of this machine
        (granted(3600, jwt(iat=1_000, exp=1_090)), 90.0),  # the broker goes by the token
        (granted(60, jwt(iat=1_000, exp=1_090)), 60.0),
        (granted(60, jwt(iat=9e9, exp=1e300)), 60.0),
        (granted(60, jwt(exp=1_090)), 60.0),
        (granted(None, "opaque"), UNKNOWN_LIFE_S),
        (granted(None, "a.b.c"), UNKNOWN_LIFE_S),
        (granted(None, jwt(exp="soon", iat=True)), UNKNOWN_LIFE_S),
        (granted("soon", "opaque"), UNKNOWN_LIFE_S),
    ],
)
def test_the_life_is_what_the_issuer_says_by_its_own_clock(answer: Answer, life: float) -> None:
    assert fetch(answer).seconds == life


def test_the_principal_is_in_the_claim_that_the_broker_reads() -> None:
    answer = granted(60, jwt(sub="0815", preferred_username="anna", azp=7))
    assert fetch(answer).principal == "0815"
    claim = "sasl.oauthbearer.sub.claim.name"
    assert fetch(answer, **{claim: "preferred_username"}).principal == "anna"
    assert fetch(answer, **{claim: "azp"}).principal == ""


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (
            refused(401, "invalid_client", "no such client"),
            TokenRefusedError,
            "invalid_client: no such client",
        ),
        (refused(400, "invalid_scope"), TokenRefusedError, "HTTP status 400 (invalid_scope)"),
        ((403, b"<html>"), TokenRefusedError, "HTTP status 403 (no reason given)"),
        ((302, b""), TokenRefusedError, "HTTP status 302"),
        ((200, b"<html>"), TokenRefusedError, "answers without a bearer token"),
        ((200, b"[" * 100_000), TokenRefusedError, "answers without a bearer token"),
        ((200, b'{"access_token": 7}'), TokenRefusedError, "answers without a bearer token"),
        (granted(60, "x", token_type="mac"), TokenRefusedError, "answers without a bearer token"),
        ((200, b" " * (MOST_BYTES + 1)), TokenRefusedError, f"more than {MOST_BYTES} bytes"),
        (granted(60, "two lines\n"), TokenRefusedError, "visible characters of ASCII, not a text of 10"),
        (granted(0), TokenRefusedError, "has a token that expired 0 s ago"),
        (granted(None, jwt(iat=2000, exp=1000)), TokenRefusedError, "has a token that expired 1000 s ago"),
        (
            refused(503, "temporarily_unavailable"),
            TokenError,
            "is not ready: HTTP status 503 (temp",
        ),
        (refused(429, "slow_down"), TokenError, "is not ready: HTTP status 429 (slow_down)"),
    ],
)
def test_an_answer_without_a_token_has_an_error_with_the_issuers_reason(
    answer: Answer, error: type[TokenError], words: str
) -> None:
    with pytest.raises(error) as raised:
        fetch(answer)
    assert type(raised.value) is error
    assert words in str(raised.value)
    assert str(raised.value).startswith("sasl.oauthbearer.token.endpoint.url=http://127.0.0.1:")


@pytest.mark.parametrize("repeated", [SECRET, "s3cr%25t+%2B%C3%BC"])
def test_no_error_log_or_representation_has_the_secret_even_if_the_issuer_repeats_it(
    repeated: str, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.DEBUG),
        TokenEndpoint(refused(401, repeated, f"secret {repeated}\nis wrong")) as endpoint,
    ):
        asking = provider(endpoint.url)
        with pytest.raises(TokenRefusedError) as raised:
            asking.fetch()
    assert "secret *** is wrong" in str(raised.value)
    chain = (raised.value.__cause__, raised.value.__suppress_context__)
    shown = f"{raised.value} {asking!r} {caplog.text} {chain}"
    assert repeated not in shown


def test_an_endpoint_that_is_away_is_named_with_the_reason() -> None:
    with TokenEndpoint() as endpoint:
        url = endpoint.url
    with pytest.raises(TokenError, match=r"token.endpoint.url=\S+ does not answer \(.*Connection refused\)"):
        provider(url).fetch()


def test_an_answer_that_drips_is_bounded_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oidc, "ANSWER_S", 0.0)
    with dripping_server() as url, pytest.raises(TokenError, match="has not sent its answer within 0 s"):
        provider(url).fetch()


def test_an_authority_of_ones_own_is_trusted_when_it_is_named(tmp_path: Path) -> None:
    authority = trustme.CA()
    identity, trusted = tmp_path / "server.pem", tmp_path / "authority.pem"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(identity)
    authority.cert_pem.write_to_path(trusted)
    with TokenEndpoint(identity=identity) as endpoint:
        assert provider(endpoint.url, **{"https.ca.location": str(trusted)}).fetch().principal == "grove"
        with pytest.raises(TokenError, match=r"certificate verify failed.*check it and https\.ca\.location"):
            provider(endpoint.url).fetch()
        assert len(endpoint.forms) == 1, "no secret is sent to a server that is not trusted"


def test_an_authority_that_is_none_is_an_error_and_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("none")
    with TokenEndpoint() as endpoint:
        url = endpoint.url.replace("http:", "https:")
        with pytest.raises(TokenError, match="does not answer"):
            provider(url, **{"https.ca.location": str(tmp_path / "none.pem")}).fetch()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("token.endpoint.url", "ftp://login/token", "url=ftp://login/token must be an https address"),
        ("token.endpoint.url", "login/token", "must be an https address"),
        ("token.endpoint.url", "https://login:99999/token", "with a port from 1 to 65535"),
        ("token.endpoint.url", "https://anna:s3cret@login/token", "must have no user and no password in it"),
        ("header.urlencode", "yes", "sasl.oauthbearer.header.urlencode=yes must be true or false"),
    ],
)
def test_values_that_cannot_be_meant(name: str, value: str, expected: str) -> None:
    given: dict[str, Any] = {"sasl.oauthbearer.token.endpoint.url": "https://login/token", **OWN}
    (problem,) = Oidc.problems(given | {f"sasl.oauthbearer.{name}": value})
    assert expected in problem
    assert "s3cr" not in problem


def test_a_secret_that_goes_in_the_clear_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    provider("https://login.example.com/token")
    provider("http://localhost:1/token")
    assert lines_of(caplog) == []
    provider("http://login.example.com/token")
    assert "the client secret is sent in the clear; use https" in caplog.text
