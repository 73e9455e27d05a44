"""Settings: precedence, names, secrets, rules, and the page that documents them."""

import asyncio
import importlib.util
import os
import re
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from streamapp.errors import SettingsError
from streamapp.settings import Settings, env_name, kafka_name, load_settings, to_environment
from streamapp.settings.check import check_clients, check_names, check_spec
from streamapp.settings.clients import faust_arguments, librdkafka_properties
from streamapp.settings.loading import unknown_variables
from streamapp.settings.page import page
from streamapp.worker.observability.metrics import Metrics

ROOT = Path(__file__).parents[4]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("GROVE_"):
            monkeypatch.delenv(name)


def refused(**flags: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(**flags)
    message = str(caught.value)
    assert "\n" not in message
    return message


class TestPrecedence:
    def test_default(self) -> None:
        assert load_settings().max_poll_records == 10_000

    def test_file_over_default_environment_over_file_flag_over_environment(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "grove.toml"
        file.write_text("max.poll.records = 1\nweb.port = 1\ncommit.interval.ms = 1\n")
        monkeypatch.setenv("GROVE_KAFKA_MAX_POLL_RECORDS", "2")
        monkeypatch.setenv("GROVE_WEB_PORT", "2")
        settings = load_settings(file, web_port=3)
        assert (settings.commit_interval_ms, settings.max_poll_records, settings.web_port) == (1, 2, 3)

    def test_pass_through_properties_of_all_places_are_merged(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "grove.toml"
        file.write_text('[kafka]\nlinger.ms = 7\n"compression.type" = "lz4"\n')
        monkeypatch.setenv("GROVE_KAFKA_COMPRESSION_TYPE", "zstd")
        settings = load_settings(file, kafka={"batch.size": 1000})
        assert settings.kafka == {"linger.ms": "7", "compression.type": "zstd", "batch.size": "1000"}

    def test_config_variable_names_the_file_and_the_flag_wins(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in (1, 2):
            (tmp_path / f"{number}.toml").write_text(f"web.port = {number}\n")
        monkeypatch.setenv("GROVE_CONFIG", str(tmp_path / "1.toml"))
        assert load_settings().web_port == 1
        assert load_settings(tmp_path / "2.toml").web_port == 2

    def test_to_environment_gives_a_child_the_same_settings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        parent = load_settings(
            topics_prefix="x.",
            models_auto_create=False,
            group_instance_id="a-0",
            kafka={"sasl.password": "p w", "security.protocol": "SSL"},
        )
        for name, value in to_environment(parent).items():
            monkeypatch.setenv(name, value)
        assert load_settings() == parent


class TestFile:
    def test_kafka_names_tables_and_attributes_are_the_same(self, tmp_path: Path) -> None:
        file = tmp_path / "grove.toml"
        file.write_text(
            'topics_prefix = "a."\n[web]\nport = 1\n[kafka]\nbootstrap.servers = "k:1"\n'
            '[model.spec]\nquery = "random"\n'
        )
        settings = load_settings(file)
        assert (settings.topics_prefix, settings.web_port, settings.bootstrap_servers) == ("a.", 1, "k:1")
        assert settings.model_spec == '{"query": "random"}'

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("max.pol.records = 1", "did you mean 'max.poll.records'?"),
            ("web.port = ", "is not TOML"),
            ('web.port = "x"', "web.port=x must be a whole number"),
        ],
    )
    def test_mistakes(self, tmp_path: Path, text: str, expected: str) -> None:
        (tmp_path / "grove.toml").write_text(text)
        with pytest.raises(SettingsError, match=re.escape(expected)):
            load_settings(tmp_path / "grove.toml")

    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(SettingsError, match="No such file"):
            load_settings(tmp_path / "none.toml")


class TestSecrets:
    def test_never_shown(self) -> None:
        settings = load_settings(
            kafka={
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "grove",
                "sasl.password": "s3cret",
                "ssl.key.password": "s3cret",
                "sasl.oauthbearer.client.secret": "s3cret",
            }
        )
        shown = repr(settings) + str(settings) + str(settings.shown()) + settings.model_dump_json()
        assert "s3cret" not in shown
        assert settings.shown()["sasl.username"] == "grove"
        assert settings.shown()["sasl.password"] == "**********"
        assert librdkafka_properties(settings)["sasl.password"] == "s3cret"

    def test_from_a_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "password").write_text("s3cret\n")
        monkeypatch.setenv("GROVE_KAFKA_SASL_PASSWORD_FILE", str(tmp_path / "password"))
        assert librdkafka_properties(load_settings())["sasl.password"] == "s3cret"

    def test_missing_file_names_the_variable_not_a_secret(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GROVE_KAFKA_SASL_PASSWORD_FILE", "/nowhere/password")
        assert "GROVE_KAFKA_SASL_PASSWORD_FILE=/nowhere/password must name a readable file" in refused()

    def test_a_property_that_ends_in_file_is_passed_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GROVE_KAFKA_SASL_OAUTHBEARER_ASSERTION_FILE", "/run/assertion")
        assert load_settings().kafka == {"sasl.oauthbearer.assertion.file": "/run/assertion"}


class TestRules:
    @pytest.mark.parametrize(
        ("flags", "expected"),
        [
            (
                {"processing_guarantee": "exactly_twice"},
                "processing.guarantee=exactly_twice must be one of at_least_once, exactly_once",
            ),
            ({"web_port": 70_000}, "web.port=70000 must be at most 65535; set GROVE_WEB_PORT"),
            ({"commit_interval_ms": 0}, "commit.interval.ms=0 must be at least 1"),
            ({"output_format": "arrow"}, "output.format=arrow must be one of json, packed, avro"),
            ({"output_format": "avro"}, "output.format=avro needs schema.registry.url"),
            ({"models_auto_create": "perhaps"}, "models.auto.create=perhaps must be true or false"),
            ({"bootstrap_servers": "kafka"}, "bootstrap.servers='kafka' must be host:port"),
            ({"bootstrap_servers": "a:1,b:99999"}, "bootstrap.servers='b:99999'"),
            ({"topics_prefix": "a b"}, "topics.prefix='a b' must consist of"),
            (
                {"session_timeout_ms": 10_000, "max_poll_interval_ms": 9_000},
                "must be at least session.timeout.ms=10000",
            ),
            (
                {"max_poll_interval_ms": 20_000, "commit_interval_ms": 20_000},
                "must be less than max.poll.interval.ms",
            ),
            (
                {"commit_interval_ms": 40_000},
                "commit.interval.ms=40000 must be less than transaction.timeout.ms=40000 with "
                "processing.guarantee=exactly_once",
            ),
            (
                {"commit_interval_ms": 10_000, "transaction_timeout_ms": 10_000},
                "lower the first or raise the second",
            ),
            ({"group_instance_id": ".."}, "group.instance.id=.. must be another name"),
            ({"group_instance_id": "."}, "group.instance.id=. must be another name"),
            ({"group_instance_id": "../x"}, "group.instance.id=../x must be"),
            ({"group_instance_id": "a/b"}, "group.instance.id=a/b must be"),
            ({"pending_ttl_ms": 500}, "pending.ttl.ms=500 must be more than input.skew.ms=1000"),
            ({"pending_keep": "all", "pending_max_bytes": 8192}, "pending.max.bytes=8192 must be at least"),
            ({"kafka": {"group.id": "x"}}, "group.id must not be set: set application.id instead"),
            ({"kafka": {"auto.offset.reset": "none"}}, "auto.offset.reset=none must be earliest or latest"),
            ({"kafka": {"auto.offset.reset": "error"}}, "auto.offset.reset=error must be earliest or latest"),
            ({"kafka": {"security.protocol": "TLS"}}, "security.protocol=TLS must be one of PLAINTEXT, SSL"),
            ({"kafka": {"security.protocol": "SASL_SSL"}}, "sasl.mechanism=(none) must be one of PLAIN"),
            (
                {"kafka": {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u"}},
                "set GROVE_KAFKA_SASL_PASSWORD_FILE",
            ),
            ({"application_id": "a b"}, "application.id=a b must be"),
            ({"nonsense": 1}, "unknown setting 'nonsense'"),
        ],
    )
    def test_refused_in_one_line(self, flags: dict[str, object], expected: str) -> None:
        assert expected in refused(**flags)

    @pytest.mark.parametrize(
        "flags",
        [
            {"commit_interval_ms": 30_000, "processing_guarantee": "at_least_once"},
            {"commit_interval_ms": 30_000, "transaction_timeout_ms": 60_000},
            {"group_instance_id": "..."},
            {"group_instance_id": ".hidden"},
        ],
    )
    def test_what_can_be_meant_is_taken(self, flags: dict[str, Any]) -> None:
        load_settings(**flags)

    def test_several_mistakes_are_named_at_once(self) -> None:
        message = refused(web_port="x", commit_interval_ms=0)
        assert "web.port=x" in message
        assert "commit.interval.ms=0" in message

    def test_addresses_of_every_form(self) -> None:
        load_settings(bootstrap_servers="a:1, b.c-d:65535,[::1]:9092,SASL_SSL://k:9093")

    @pytest.mark.parametrize(
        ("name", "value", "expected"),
        [
            ("fetch.wait.max.ms", "5", "fetch.wait.max.ms must be called fetch.max.wait.ms"),
            ("queue.buffering.max.ms", "5", "must be called linger.ms"),
            ("sasl.mechanisms", "PLAIN", "must be called sasl.mechanism"),
            (
                "max.request.size",
                "5",
                "max.request.size is not known to these clients; set message.max.bytes",
            ),
            ("linger.ms", "5s", "linger.ms=5s must be a whole number of milliseconds; write 5000"),
            ("reconnect.backoff.ms", "0.5s", "write 500"),
            ("linger.ms", "soon", "linger.ms=soon must be a whole number of milliseconds; correct it"),
            ("fetch.max.bytes", "50 MB", "fetch.max.bytes=50 MB must be a whole number; write 52428800"),
            ("check.crcs", "yes", "check.crcs=yes must be true or false"),
            ("group.protocol", "consumer", "group.protocol=consumer must be classic"),
        ],
    )
    def test_properties_that_cannot_be_meant(self, name: str, value: str, expected: str) -> None:
        assert expected in refused(kafka={name: value})

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("lingerr.ms", "lingerr.ms is no property of the Kafka clients (did you mean 'linger.ms'?)"),
            ("xyzzy", "xyzzy is no property of the Kafka clients; see librdkafka's list of properties"),
        ],
    )
    def test_properties_that_nobody_knows(self, name: str, expected: str) -> None:
        with pytest.raises(SettingsError, match=re.escape(expected)):
            check_names(load_settings(kafka={name: "1", "ssl.sigalgs.list": "x"}))

    def test_a_property_that_no_list_has_but_librdkafka_knows_is_passed_on(self) -> None:
        check_names(load_settings(kafka={"ssl.sigalgs.list": "x"}))

    def test_settings_with_units_are_told_in_numbers(self) -> None:
        message = refused(commit_interval_ms="5s", pending_max_bytes="64MB", web_port="6066s")
        assert "commit.interval.ms=5s must be a whole number; write 5000; set GROVE_COMMIT_" in message
        assert "pending.max.bytes=64MB must be a whole number; write 67108864; set" in message
        assert "web.port=6066s must be a whole number; set GROVE_WEB_PORT" in message

    def test_what_kubernetes_says_of_a_service_called_grove_kafka_sets_nothing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in (
            ("GROVE_KAFKA_SERVICE_HOST", "10.0.0.7"),
            ("GROVE_KAFKA_BOOTSTRAP_SERVICE_PORT_TCP_CLIENTS", "9092"),
            ("GROVE_KAFKA_PORT", "tcp://10.0.0.7:9092"),
            ("GROVE_KAFKA_BOOTSTRAP_PORT_9092_TCP_ADDR", "10.0.0.7"),
        ):
            monkeypatch.setenv(name, value)
        assert load_settings().kafka == {}
        assert len(unknown_variables()) == 4

    def test_properties_of_the_consumer_alone(self) -> None:
        settings = load_settings(kafka={"fetch.max.wait.ms": "100", "fetch.min.bytes": "1"})
        check_clients(settings)
        assert librdkafka_properties(settings)["fetch.wait.max.ms"] == "100"

    def test_a_mechanism_that_both_clients_lack_is_refused_with_their_names(self) -> None:
        kafka = {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}
        message = refused(kafka=kafka)
        assert "librdkafka" in message and "aiokafka" in message and "OAUTHBEARER" in message
        with pytest.raises(KafkaException, match="No provider for SASL mechanism GSSAPI"):
            AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0, **kafka})
        assert importlib.util.find_spec("gssapi") is None, "aiokafka may support it by now"

    def test_a_way_to_sign_in_by_tokens_is_checked_without_a_token(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "secret").write_text("s3cret\n")
        for name, value in (
            ("SECURITY_PROTOCOL", "SASL_SSL"),
            ("SASL_MECHANISM", "OAUTHBEARER"),
            ("SASL_OAUTHBEARER_METHOD", "oidc"),
            ("SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL", "https://127.0.0.1:1/token"),
            ("SASL_OAUTHBEARER_CLIENT_ID", "grove"),
            ("SASL_OAUTHBEARER_CLIENT_SECRET_FILE", str(tmp_path / "secret")),
        ):
            monkeypatch.setenv(f"GROVE_KAFKA_{name}", value)
        settings = load_settings(kafka={"sasl.oauthbearer.scope": "kafka"})
        check_names(settings)
        check_clients(settings)
        properties = librdkafka_properties(settings)
        credentials = faust_arguments(settings, "worker-0")["broker_credentials"]
        assert "s3cret" not in f"{settings!r} {settings.shown()} {properties} {credentials!r}"
        assert (credentials.protocol.value, credentials.mechanism.value) == ("SASL_SSL", "OAUTHBEARER")
        (tmp_path / "secret").write_text("")
        message = refused(kafka={"sasl.oauthbearer.scopes": "kafka"})
        assert "sasl.oauthbearer.client.secret must be set" in message
        assert "sasl.oauthbearer.scopes has no effect" in message

    def test_model_spec(self) -> None:
        check_spec(load_settings())
        with pytest.raises(SettingsError, match=r"model\.spec: unknown learner 'h-tre'"):
            check_spec(load_settings(model_spec="h-tre"))

    def test_variables_that_set_nothing_are_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GROVE_WEB_PROT", "1")
        monkeypatch.setenv("GROVE_WEB_HOST", "0.0.0.0")
        monkeypatch.setenv("GROVE_DEBUG", "1")
        assert unknown_variables() == ["GROVE_WEB_PROT is not a setting (did you mean 'GROVE_WEB_PORT'?)"]

    def test_frozen(self) -> None:
        with pytest.raises(ValueError, match="frozen"):
            load_settings().web_port = 1  # type: ignore[misc]


class TestClients:
    @pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
    def test_every_compression_is_one_of_both_clients(self, compression: str) -> None:
        """A worker ended at its start with `none`: Kafka's word and librdkafka's, but not aiokafka's."""
        settings = load_settings(kafka={"compression.type": compression})
        check_clients(settings)
        given = faust_arguments(settings, "host-0").get("producer_compression_type")

        async def made() -> None:
            await AIOKafkaProducer(compression_type=given).stop()

        asyncio.run(made())
        assert given == (None if compression == "none" else compression)

    def test_faust_counts_in_seconds(self) -> None:
        arguments = faust_arguments(
            load_settings(bootstrap_servers="a:1,b:2", session_timeout_ms=6000), "host-0"
        )
        assert arguments["broker"] == ["kafkabatch://a:1", "kafkabatch://b:2"]
        assert arguments["broker_session_timeout"] == 6.0
        assert arguments["broker_heartbeat_interval"] == 2.0
        assert arguments["consumer_group_instance_id"] == "host-0"
        assert "broker_credentials" not in arguments

    def test_a_session_may_be_longer_than_faust_waits_for_an_answer_by_default(self) -> None:
        for session, wait in ((15_000, 90.0), (300_000, 300.0)):
            arguments = faust_arguments(load_settings(session_timeout_ms=session), "w")
            assert arguments["broker_request_timeout"] == wait >= arguments["broker_session_timeout"]

    @pytest.mark.parametrize(
        ("given", "begin"),
        [
            ("earliest", "earliest"),
            ("beginning", "earliest"),
            ("smallest", "earliest"),
            ("latest", "latest"),
            ("end", "latest"),
            ("Largest", "latest"),
        ],
    )
    def test_where_to_begin_by_any_of_its_names(self, given: str, begin: str) -> None:
        settings = load_settings(kafka={"auto.offset.reset": given})
        assert faust_arguments(settings, "w")["consumer_auto_offset_reset"] == begin
        check_clients(settings)

    def test_sasl_credentials(self) -> None:
        kafka = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}
        settings = load_settings(kafka=kafka | {"sasl.username": "u", "sasl.password": "p"})
        credentials = faust_arguments(settings, "w")["broker_credentials"]
        assert (credentials.username, credentials.password) == ("u", "p")
        assert credentials.mechanism.value == "SCRAM-SHA-512"
        assert credentials.ssl_context is None

    def test_tls_checks_the_host_name_unless_told_not_to(self) -> None:
        checking = load_settings(kafka={"security.protocol": "SSL"})
        not_checking = load_settings(
            kafka={"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "none"}
        )
        assert faust_arguments(checking, "w")["broker_credentials"].context.check_hostname
        assert not faust_arguments(not_checking, "w")["broker_credentials"].context.check_hostname

    def test_missing_certificate_is_one_line(self) -> None:
        settings = load_settings(kafka={"security.protocol": "SSL", "ssl.ca.location": "/nowhere/ca.pem"})
        with pytest.raises(SettingsError, match=r"ssl\.ca\.location"):
            faust_arguments(settings, "w")


class TestPage:
    def test_is_current(self) -> None:
        assert (ROOT / "docs" / "settings.md").read_text() == page()

    def test_has_every_setting_in_a_section(self) -> None:
        text = page()
        for attribute in set(Settings.model_fields) - {"kafka"}:
            assert f"| `{kafka_name(attribute)}` | `{env_name(attribute)}` |" in text
        assert all(section in text for section in Settings.sections.values())

    def test_a_page_that_a_description_names_speaks_of_the_setting(self) -> None:
        named = {
            kafka_name(attribute): re.findall(r"docs/[a-z-]+\.md", field.description or "")
            for attribute, field in Settings.model_fields.items()
        }
        assert named["output.headers"] == ["docs/outcomes.md"]
        for setting in ("output.headers", "model.spec"):
            assert all(f"`{setting}" in (ROOT / name).read_text() for name in named[setting])

    def test_the_page_that_the_metric_of_outcomes_names_has_them(self) -> None:
        [records] = [family for family in Metrics().registry.collect() if family.name == "grove_records"]
        [name] = re.findall(r"docs/[a-z-]+\.md", records.documentation)
        assert "| case | outcome |" in (ROOT / name).read_text()
