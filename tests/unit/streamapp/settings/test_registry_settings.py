"""Settings of the schema registry: places, rules, secrets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from streamapp.errors import SettingsError
from streamapp.settings import load_settings, to_environment
from streamapp.settings.clients import registry_of

SECRET = "never-shown-7"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("GROVE_"):
            monkeypatch.delenv(name)


@pytest.mark.parametrize("prefix", ["GROVE_", "GROVE_KAFKA_"])
def test_variables_under_both_prefixes(prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "login").write_text(f"me:{SECRET}\n")
    monkeypatch.setenv(f"{prefix}SCHEMA_REGISTRY_URL", "http://registry:8081/")
    monkeypatch.setenv(f"{prefix}BASIC_AUTH_USER_INFO_FILE", str(tmp_path / "login"))
    settings = load_settings()
    registry = registry_of(settings)
    assert registry is not None
    assert registry.place == "schema.registry.url=http://registry:8081"
    assert registry._access.login == ("me", SECRET)
    assert SECRET not in f"{settings.shown()} {settings!r} {registry!r}"
    assert to_environment(settings)["GROVE_BASIC_AUTH_USER_INFO"] == f"me:{SECRET}"


def test_a_file_may_have_them_among_the_client_properties(tmp_path: Path) -> None:
    file = tmp_path / "grove.toml"
    file.write_text('[kafka]\n"schema.registry.url" = "https://a,https://b"\n"bearer.auth.token" = "t"\n')
    settings = load_settings(file)
    assert settings.schema_registry_url == "https://a,https://b"
    assert registry_of(settings) is not None
    assert registry_of(load_settings()) is None


def test_user_and_password_in_an_address_are_masked() -> None:
    shown = load_settings(schema_registry_url=f"https://me:{SECRET}@h:1,https://h:2").shown()
    assert shown["schema.registry.url"] == "https://***@h:1,https://h:2"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"schema_registry_url": "registry:8081"}, "must be http:// or https://"),
        ({"schema_registry_url": f"http://me:{SECRET}@h:99999"}, r"http://\*\*\*@h:99999 must be"),
        ({"schema_registry_url": f"me:{SECRET}@h:1"}, r"=\*\*\*@h:1 must be"),
        ({"schema_registry_url": f"http://me:a,{SECRET}@h:1"}, r"=http://\*\*\*@h:1 must be"),
        ({"schema_registry_url": f"http://me:{SECRET},a@h:1"}, r"=http://\*\*\*@h:1 must be"),
        ({"schema_registry_url": f"http://h:1/?key={SECRET}"}, "must be http"),
        ({"basic_auth_user_info": f"me:{SECRET}"}, "has no effect without schema.registry.url"),
        ({"schema_registry_url": "http://h", "basic_auth_user_info": SECRET}, "with a colon"),
        ({"schema_registry_url": "http://h", "basic_auth_credentials_source": "USER_INFO"}, "must be set"),
        ({"schema_registry_url": "http://h", "basic_auth_credentials_source": SECRET}, "must be one of"),
        ({"schema_registry_url": "http://h", "basic_auth_credentials_source": "SASL_INHERIT"}, "needs sasl"),
        (
            {"schema_registry_url": "http://h", "bearer_auth_credentials_source": "SASL_OAUTHBEARER_INHERIT"},
            "needs sasl.mechanism=OAUTHBEARER",
        ),
        ({"schema_registry_url": "http://h", "bearer_auth_token": f"{SECRET} x"}, "visible characters"),
        ({"schema_registry_url": "http://h", "schema_registry_ssl_key_location": "/nowhere"}, "correct the"),
    ],
)
def test_rules(flags: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words) as caught:
        load_settings(**flags)
    if "source" not in str(flags):
        assert SECRET not in str(caught.value)
