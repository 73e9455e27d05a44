"""Registry client: what it asks for, keeps and refuses, and that no secret is shown."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from base64 import b64encode
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trustme

from tests.dripping_server import dripping_server
from tests.registry_endpoint import RegistryEndpoint, answered, failed
from topics.errors import RegistryError, UnknownSchemaError
from topics.registry import client as module
from topics.registry.client import Registry
from topics.registry.registered_schema import Reference, ReferencedSchema, RegisteredSchema
from topics.registry.registry_access import registry_access, without_user
from topics.registry.subject_names import subject_name

SECRET = "never-shown-7"


def client_of(url: str, **properties: str) -> Registry:
    access = registry_access(
        {"schema.registry.url": url, **{name.replace("_", "."): value for name, value in properties.items()}}
    )
    assert access is not None
    return Registry(access)


def test_a_schema_is_asked_for_once() -> None:
    with RegistryEndpoint(schemas__ids__7=answered(schema='"long"')) as endpoint:
        registry = client_of(endpoint.url)
        assert registry.schema(7) == registry.schema(7) == RegisteredSchema(7, "AVRO", '"long"')
        assert endpoint.requests == [("GET", "/schemas/ids/7")]


def test_a_schema_by_its_guid() -> None:
    guid = UUID("89791762-2336-4186-9674-299b90a802e2")
    path = {f"schemas__guids__{guid}": answered(schema="{}", schemaType="JSON")}
    with RegistryEndpoint(**path) as endpoint:
        assert client_of(endpoint.url).schema(guid).kind == "JSON"


def test_referenced_schemas_come_in_the_order_of_need() -> None:
    def needs(*names: str) -> list[dict[str, Any]]:
        return [{"name": name, "subject": f"of-{name}", "version": 1} for name in names]

    with RegistryEndpoint(
        schemas__ids__1=answered(schema="top", schemaType="PROTOBUF", references=needs("a", "b")),
        **{
            "subjects__of-a__versions__1": answered(schema="A", references=needs("b")),
            "subjects__of-b__versions__1": answered(schema="B", references=needs("a")),
        },
    ) as endpoint:
        schema = client_of(endpoint.url).schema(1)
        assert schema.references == (ReferencedSchema("b", "B"), ReferencedSchema("a", "A"))


def test_registration_returns_the_id_and_is_done_once() -> None:
    with RegistryEndpoint(**{"subjects__t%2Fx-value__versions": answered(id=3)}) as endpoint:
        registry = client_of(endpoint.url)
        references = [Reference("r", "s", 2)]
        assert [registry.register("t/x-value", "AVRO", '"int"', references) for _ in range(2)] == [3, 3]
        assert endpoint.bodies == [
            {
                "schema": '"int"',
                "schemaType": "AVRO",
                "references": [{"name": "r", "subject": "s", "version": 2}],
            }
        ]


def test_a_registry_without_guids_does_not_have_a_schema() -> None:
    guid = UUID("89791762-2336-4186-9674-299b90a802e2")
    answers = {"schemas__types": (200, b'["JSON","AVRO"]'), f"schemas__guids__{guid}": (404, b"")}
    with RegistryEndpoint(**answers) as endpoint, pytest.raises(UnknownSchemaError):
        client_of(endpoint.url).schema(guid)


def test_only_the_registry_itself_can_say_that_a_schema_is_unknown() -> None:
    with RegistryEndpoint(
        schemas__ids__1=(404, b"<html>"),
        schemas__ids__2=failed(500, 50001, "store is away"),
        schemas__types=(404, b""),
    ) as endpoint:
        registry = client_of(endpoint.url)
        with pytest.raises(UnknownSchemaError, match="does not have /schemas/ids/9"):
            registry.schema(9)
        for schema_id, reason in ((1, "status 404"), (2, "store is away")):
            with pytest.raises(RegistryError, match=reason) as caught:
                registry.schema(schema_id)
            assert not isinstance(caught.value, UnknownSchemaError)


@pytest.mark.parametrize(
    "answer", [(200, b"["), answered(id=1), answered(schema="x", references=[{"name": 1}])]
)
def test_an_answer_that_is_no_schema(answer: tuple[int, bytes]) -> None:
    with (
        RegistryEndpoint(schemas__ids__1=answer) as endpoint,
        pytest.raises(RegistryError, match=r"schema\.registry\.url="),
    ):
        client_of(endpoint.url).schema(1)


def test_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 100)
    with (
        RegistryEndpoint(schemas__ids__1=answered(schema="x" * 200)) as endpoint,
        pytest.raises(RegistryError, match="more than 100 bytes"),
    ):
        client_of(endpoint.url).schema(1)


def test_the_check_for_a_registry_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 100)
    with (
        RegistryEndpoint(schemas__ids__1=(404, b""), schemas__types=(200, b"AVRO" * 100)) as endpoint,
        pytest.raises(RegistryError, match="more than 100 bytes"),
    ):
        client_of(endpoint.url).schema(1)


@pytest.mark.parametrize("bundle", ["", "other.pem"])
def test_a_registry_that_takes_only_clients_with_a_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bundle: str
) -> None:
    """The named authority is trusted also where the environment names others (REQUESTS_CA_BUNDLE)."""
    authority, strangers = trustme.CA(), trustme.CA()
    trusted = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(trusted)
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    if bundle:
        strangers.cert_pem.write_to_path(tmp_path / bundle)
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / bundle))

    def identity(issuer: trustme.CA, name: str) -> tuple[Path, Path]:
        certificate, key = tmp_path / f"{name}.pem", tmp_path / f"{name}.key"
        issued = issuer.issue_cert(name)
        issued.cert_chain_pems[0].write_to_path(certificate)
        issued.private_key_pem.write_to_path(key)
        return certificate, key

    with RegistryEndpoint(schemas__ids__7=answered(schema='"long"')) as endpoint:
        own = tmp_path / "server.pem"
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(own)
        endpoint.only_for(trusted, own)

        def fetched(certificate: Path | None = None, key: Path | None = None) -> str:
            names = {"certificate": certificate, "key": key}
            properties = {f"schema.registry.ssl.{name}.location": str(p) for name, p in names.items() if p}
            properties["schema.registry.ssl.ca.location"] = str(trusted)
            return client_of(endpoint.url, **properties).schema(7).text

        assert fetched(*identity(authority, "grove")) == '"long"'
        both = tmp_path / "both.pem"
        authority.issue_cert("grove").private_key_and_cert_chain_pem.write_to_path(both)
        assert fetched(both) == '"long"'
        for refused in ((), identity(strangers, "stranger")):
            with pytest.raises(RegistryError, match="does not answer"):
                fetched(*refused)
        with pytest.raises(RegistryError, match=r"does not answer \(.*certificate verify failed"):
            client_of(endpoint.url).schema(7)
    assert endpoint.requests == [("GET", "/schemas/ids/7")] * 2, "no other client sent a request"


def test_an_answer_that_drips_is_bounded_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_S", 0.0)
    with dripping_server() as url, pytest.raises(RegistryError, match="has not sent its answer within 0 s"):
        client_of(url).schema(1)


def test_an_answer_that_is_cut_off() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")

        answering = threading.Thread(target=answer)
        answering.start()
        with pytest.raises(RegistryError, match="does not answer"):
            client_of(f"http://127.0.0.1:{server.getsockname()[1]}").schema(1)
        answering.join()


@pytest.mark.parametrize("encoding", ["gzip", "chunked"])
def test_encoded_answers(encoding: str) -> None:
    body = answered(schema='"int"')[1]
    if encoding == "gzip":
        body = gzip.compress(body)
        headers = f"Content-Encoding: gzip\r\nContent-Length: {len(body)}"
    else:
        body = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
        headers = "Transfer-Encoding: chunked"
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(f"HTTP/1.1 200 OK\r\n{headers}\r\n\r\n".encode() + body)

        answering = threading.Thread(target=answer)
        answering.start()
        assert client_of(f"http://127.0.0.1:{server.getsockname()[1]}").schema(1).text == '"int"'
        answering.join()


def test_the_second_address_answers_when_the_first_is_away() -> None:
    with RegistryEndpoint() as gone:
        pass
    with RegistryEndpoint(schemas__ids__1=answered(schema='"int"')) as endpoint:
        assert client_of(f"{gone.url}, {endpoint.url}/").schema(1).text == '"int"'
        with pytest.raises(RegistryError, match="Connection refused"):
            client_of(gone.url).schema(1)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"basic_auth_user_info": f"me:{SECRET}"}, "Basic " + b64encode(f"me:{SECRET}".encode()).decode()),
        ({"bearer_auth_token": SECRET}, f"Bearer {SECRET}"),
        ({}, None),
    ],
)
def test_it_signs_in_and_shows_no_secret(
    properties: dict[str, str], expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login other password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    sent = (expected or "").partition(" ")[2]
    told = failed(401, 40101, f"{SECRET} is wrong, and so is {sent}")
    with RegistryEndpoint(schemas__ids__1=told) as endpoint:
        registry = client_of(endpoint.url, **properties)
        with pytest.raises(RegistryError) as caught:
            registry.schema(1)
        assert endpoint.headers[0].get("Authorization") == expected
        if properties:
            shown = f"{caught.value!r} {registry!r} {registry._access!r}"
            assert SECRET not in shown
            assert sent not in shown
            assert "HTTP status 401" in shown


def test_user_and_password_of_an_address() -> None:
    with RegistryEndpoint() as endpoint:
        registry = client_of(endpoint.url.replace("http://", f"http://me:{SECRET}@"))
        with pytest.raises(UnknownSchemaError) as caught:
            registry.schema(1)
        assert SECRET not in str(caught.value) + registry.place
        assert endpoint.headers[0]["Authorization"].startswith("Basic ")
    assert without_user("https://me:x@h:8/base/") == "https://h:8/base"


def test_a_registry_inherits_the_login_of_the_brokers() -> None:
    properties = {"schema.registry.url": "http://h", "basic.auth.credentials.source": "SASL_INHERIT"}
    access = registry_access(properties, ("me", SECRET))
    assert access is not None
    assert access.login == ("me", SECRET)


def test_subject_names() -> None:
    assert subject_name("RecordNameStrategy", "t", "ns.R") == "ns.R"
    with pytest.raises(RegistryError, match="needs a schema with a name"):
        subject_name("TopicRecordNameStrategy", "t", None)


def test_answers_of_confluent_cloud_headers() -> None:
    with RegistryEndpoint(schemas__ids__1=answered(schema="{}", schemaType="JSON")) as endpoint:
        more = {"bearer_auth_token": "x", "bearer_auth_logical_cluster": "lsrc-1"}
        client_of(endpoint.url, **more).schema(1)
        assert endpoint.headers[0]["target-sr-cluster"] == "lsrc-1"
        assert json.dumps(endpoint.bodies) == "[null]"
