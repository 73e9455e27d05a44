"""Ways to get tokens: entry points, the properties that each takes, files and the signer of AWS."""

from __future__ import annotations

import base64
import time
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.token_endpoint import jwt
from topics.errors import TokenError
from topics.tokens import providers
from topics.tokens.msk_iam import MskIam
from topics.tokens.providers import GROUP, methods, provider_class
from topics.tokens.sign_in import sign_in_problems, signed_in, source_in
from topics.tokens.token import UNKNOWN_LIFE_S
from topics.tokens.token_file import TokenFile

ROOT = Path(__file__).parents[4]
URL = "sasl.oauthbearer.token.endpoint.url"
SIGN_IN = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
OIDC = SIGN_IN | {
    "sasl.oauthbearer.method": "oidc",
    URL: "https://login/token",
    "sasl.oauthbearer.client.id": "grove",
    "sasl.oauthbearer.client.secret": "s3cret",
}


def test_the_methods_are_the_entry_points_of_the_package() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][GROUP]
    assert declared.keys() <= methods().keys(), "install the package again: its entry points are older"
    assert {name: methods()[name].value for name in declared} == declared
    assert declared.keys() == {"oidc", "file", "msk_iam"}


def test_a_method_of_another_package_is_one_like_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("vault", "topics.tokens.token_file:TokenFile", GROUP)
    monkeypatch.setattr(providers, "_methods", lambda: {"vault": entry})
    given = SIGN_IN | {"sasl.oauthbearer.method": "vault", URL: "file:///token"}
    assert list(sign_in_problems(given)) == []
    assert provider_class("vault") is TokenFile
    monkeypatch.setattr(providers, "_methods", lambda: {"vault": EntryPoint("vault", "nowhere:It", GROUP)})
    (problem,) = sign_in_problems(given)
    assert "sasl.oauthbearer.method=vault cannot be loaded (No module named 'nowhere')" in problem


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (SIGN_IN, "sasl.oauthbearer.method=(none) must be one of file, msk_iam, oidc with"),
        (OIDC | {"sasl.oauthbearer.method": "odic"}, "method=odic must be one of file, msk_iam, oidc"),
        (OIDC | {URL: ""}, f"{URL} must be set with sasl.oauthbearer.method=oidc; set GROVE_KAFKA_SASL_"),
        (
            {name: value for name, value in OIDC.items() if not name.endswith("secret")},
            "CLIENT_SECRET_FILE to a file that holds it",
        ),
        (OIDC | {"sasl.oauthbearer.scopes": "x"}, "(did you mean sasl.oauthbearer.scope?)"),
        (OIDC | {"https.ca.pem": "x"}, "https.ca.pem has no effect with sasl.oauthbearer.method=oidc"),
        (OIDC | {"https.ca.location": "/nowhere"}, "https.ca.location=/nowhere must be a file or folder"),
        (
            SIGN_IN | {"sasl.oauthbearer.method": "file", URL: "https://login"},
            "must be the address of a file",
        ),
        (
            SIGN_IN
            | {"sasl.oauthbearer.method": "file", URL: "file:///token", "sasl.oauthbearer.client.id": "x"},
            "sasl.oauthbearer.client.id has no effect with sasl.oauthbearer.method=file",
        ),
        (OIDC | {"sasl.oauthbearer.extensions": "tenant"}, "sasl.oauthbearer.extensions='tenant' must be"),
        (OIDC | {"sasl.oauthbearer.extensions": "a1=2"}, "names of letters only"),
        (OIDC | {"sasl.oauthbearer.extensions": "auth=2"}, "not 'auth'"),
    ],
)
def test_a_wrong_way_to_sign_in_is_a_sentence_without_the_secret(
    given: dict[str, str], expected: str
) -> None:
    (problem,) = sign_in_problems(given)
    assert expected.replace("(did", "did").replace("?)", "?") in problem
    assert "s3cret" not in problem


def test_clients_that_sign_in_in_one_way_share_a_source_and_get_no_secret() -> None:
    first = signed_in(OIDC | {"bootstrap.servers": "a:1", "sasl.oauthbearer.extensions": "a=b, c=d=e"})
    again = signed_in(OIDC | {"bootstrap.servers": "b:1", "sasl.oauthbearer.extensions": "a=b, c=d=e"})
    other = signed_in(OIDC | {"sasl.oauthbearer.client.id": "other"})
    source = source_in(first)
    assert source is not None and source is source_in(again) and source is not source_in(other)
    assert source.extensions == {"a": "b", "c": "d=e"}
    assert "s3cret" not in repr(first)
    assert first.keys() == {*SIGN_IN, "bootstrap.servers", "oauth_cb"}
    assert signed_in(first) == first
    password = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.password": "x"}
    assert signed_in(password | {"sasl.oauthbearer.scope": "x"}) == password
    assert source_in(signed_in(SIGN_IN | {"security.protocol": "SSL"})) is None


class TestFile:
    def test_a_file_is_read_anew_each_time(self, tmp_path: Path) -> None:
        file = tmp_path / "a token"
        provider = TokenFile({URL: file.as_uri()})
        with pytest.raises(TokenError, match=r"readable file with a token \(No such file"):
            provider.fetch()
        file.write_text(jwt(sub="system:serviceaccount:ns:grove", exp=time.time() + 600) + "\n")
        token = provider.fetch()
        assert token.principal == "system:serviceaccount:ns:grove"
        assert 500 < token.seconds <= 600
        file.write_text("opaque")
        assert provider.fetch().seconds == UNKNOWN_LIFE_S

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "visible characters of ASCII, not a text of 0"),
            (b"two words", "not a text of 9"),
            ("schlüssel".encode(), "not ASCII"),
            (jwt(exp=1000).encode(), "has a token that expired"),
        ],
    )
    def test_a_file_without_a_good_token_is_named(self, tmp_path: Path, content: bytes, words: str) -> None:
        (tmp_path / "token").write_bytes(content)
        with pytest.raises(TokenError, match=f"{URL}=file://.*{words}"):
            TokenFile({URL: (tmp_path / "token").as_uri()}).fetch()


class TestMskIam:
    CONFIG = "sasl.oauthbearer.config"

    def test_a_token_is_a_signed_address_of_the_region(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
        token = MskIam({self.CONFIG: "region=eu-central-1"}).fetch()
        address = base64.urlsafe_b64decode(token.value + "=" * (-len(token.value) % 4)).decode()
        assert urlsplit(address).hostname == "kafka.eu-central-1.amazonaws.com"
        assert parse_qs(urlsplit(address).query)["Action"] == ["kafka-cluster:Connect"]
        assert 0 < token.seconds <= 900

    def test_the_region_may_be_that_of_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("AWS_REGION", raising=False)
        monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
        assert [problem.partition(" ")[0] for problem in MskIam.problems({})] == [self.CONFIG]
        assert "must name the region" in next(MskIam.problems({self.CONFIG: "principal=x"}))
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        assert list(MskIam.problems({})) == []
        assert MskIam({}).place == "sasl.oauthbearer.method=msk_iam, region us-east-1"

    def test_a_process_without_credentials_is_told_so(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        for name in (
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_PROFILE",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
        ):
            monkeypatch.delenv(name, raising=False)
        for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
            monkeypatch.setenv(name, str(tmp_path / "none"))
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        with pytest.raises(TokenError, match="see to the credentials of AWS"):
            MskIam({self.CONFIG: "region=eu-central-1"}).fetch()
