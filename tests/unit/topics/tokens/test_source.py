"""The one source of tokens in a process: renewed before the end, kept over failures, shared by threads."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from aiokafka.errors import KafkaConnectionError

from tests.token_endpoint import PATIENCE, TokenEndpoint, granted, jwt, refused
from topics.errors import TokenError, TokenRefusedError
from topics.fetching.token_provider import Tokens
from topics.tokens.oidc import Oidc
from topics.tokens.renewal import EARLIEST, LATEST, LONGEST_PAUSE_S, renewal_s, retry_s
from topics.tokens.token_source import TokenSource

N_THREADS = 8
LONG_S = 60.0


class Sources:
    """Makes sources, and ends their threads."""

    def __init__(self) -> None:
        self.made: list[TokenSource] = []

    def __call__(self, url: str, extensions: dict[str, str] | None = None) -> TokenSource:
        properties = {
            "sasl.oauthbearer.token.endpoint.url": url,
            "sasl.oauthbearer.client.id": "grove",
            "sasl.oauthbearer.client.secret": "s3cret",
        }
        self.made.append(TokenSource(Oidc(properties), extensions or {}))
        return self.made[-1]


@pytest.fixture
def sources() -> Iterator[Sources]:
    made = Sources()
    yield made
    for source in made.made:
        source.close()


def wait_until(source: TokenSource, holds: Callable[[], bool]) -> None:
    """Return once this holds, at the latest after a request that follows."""
    with source._changed:
        assert source._changed.wait_for(holds, PATIENCE), source.status


def test_all_threads_get_the_token_of_one_request(sources: Sources) -> None:
    with TokenEndpoint() as endpoint, ThreadPoolExecutor(N_THREADS) as threads:
        source = sources(endpoint.url, {"tenant": "7"})
        assert endpoint.forms == [], "nothing is requested before a client needs a token"
        assert str(source.status) == "no token yet"
        tokens = list(threads.map(lambda _: source.token(LONG_S), range(N_THREADS)))
        assert len(set(map(id, tokens))) == 1
        value, ends, principal, extensions = source()
        assert (value, principal, extensions) == (tokens[0].value, "grove", {"tenant": "7"})
        assert 0 < ends - time.time() <= 300
        assert len(endpoint.forms) == 1
        assert value not in f"{source!r} {source.status} {tokens}"
        assert source.status.is_valid and str(source.status).startswith("valid for ")


def test_a_token_is_renewed_before_its_end_again_and_again(sources: Sources) -> None:
    answers = [granted(2, jwt(sub="grove", jti=n)) for n in range(4)]
    with TokenEndpoint(*answers) as endpoint:
        source = sources(endpoint.url)
        first = source.token(LONG_S)
        endpoint.wait_for(3)
        assert source.token(LONG_S) != first


def test_an_endpoint_that_fails_is_asked_again_while_the_token_lasts(
    sources: Sources, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "topics.tokens")
    with TokenEndpoint(granted(5, "first"), refused(503, "away")) as endpoint:
        source = sources(endpoint.url)
        assert source.token(LONG_S).value == "first"
        endpoint.wait_for(3)
        wait_until(source, lambda: "HTTP status 503 (away)" in source.status.failure)
        endpoint.answers.append(granted(300, "second"))
        endpoint.answers.popleft()
        wait_until(source, lambda: not source.status.failure)
    assert source.token().value == "second"
    (warning,) = [line for line in caplog.messages if "away" in line]
    assert "and is requested again" in warning
    assert caplog.messages[-1].endswith("has a token again")


def test_a_refusal_is_raised_at_once_and_an_absence_after_the_time_given(sources: Sources) -> None:
    with TokenEndpoint(refused(401, "invalid_client")) as endpoint:
        source = sources(endpoint.url)
        with pytest.raises(TokenRefusedError, match="invalid_client"):
            source.token(LONG_S)
        assert not source.status.is_valid
        with pytest.raises(KafkaConnectionError, match="invalid_client"):
            asyncio.run(Tokens(source).token())
        endpoint.answers.append(granted())
        endpoint.answers.popleft()
        wait_until(source, lambda: source.status.is_valid)
        assert asyncio.run(Tokens(source).token()) == source.token().value, "a secret may be made known later"
        url = endpoint.url
    with pytest.raises(TokenError, match="does not answer"):
        sources(url).token(0.2)


def test_a_token_that_has_ended_is_given_to_nobody(sources: Sources) -> None:
    with TokenEndpoint(granted(1, "first"), refused(503, "away")) as endpoint:
        source = sources(endpoint.url)
        with contextlib.suppress(TokenError):
            source.token(0)
        wait_until(source, lambda: source.status.seconds_left is not None and not source.status.is_valid)
        assert str(source.status).startswith("ended ")
        with pytest.raises(TokenError, match="away"):
            source.token(0)


def test_a_method_that_fails_in_itself_does_not_end_the_source(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        place = "sasl.oauthbearer.method=broken"

        def fetch(self) -> None:
            raise ZeroDivisionError

    source = TokenSource(Broken(), {})  # type: ignore[arg-type]
    with pytest.raises(TokenError, match="sasl.oauthbearer.method=broken: ZeroDivisionError"):
        source.token(0.2)
    source.close()
    assert "the method of sasl.oauthbearer.method=broken failed" in caplog.text


def test_renewals_are_spread_by_the_names_of_workers_and_the_same_in_every_run() -> None:
    moments = [renewal_s(1000, f"worker-{n}", m) for n in range(50) for m in range(20)]
    assert moments == [renewal_s(1000, f"worker-{n}", m) for n in range(50) for m in range(20)]
    assert EARLIEST * 1000 <= min(moments) < 610 and 740 < max(moments) <= LATEST * 1000
    assert len(set(moments)) == len(moments)


def test_attempts_come_often_enough_for_what_is_left_of_the_token_and_ever_more_rarely_after_it() -> None:
    pauses = [retry_s(n, 0, "worker") for n in range(1, 12)]
    assert pauses[0] <= 0.5 and max(pauses) <= LONGEST_PAUSE_S
    assert pauses[-1] > LONGEST_PAUSE_S / 2
    assert all(retry_s(n, 4.0, "worker") <= 1 for n in range(1, 12))
