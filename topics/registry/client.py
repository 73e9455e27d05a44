"""Registry client: schemas by id, and the registration of schemas, over Confluent's HTTP interface.

    GET  /schemas/ids/ID, /schemas/guids/GUID           the schema of an id
    GET  /subjects/SUBJECT/versions/VERSION             a referenced schema
    POST /subjects/SUBJECT/versions                     the id of a schema, registered if it is new

It waits for an answer, so nothing calls it in an event loop. The newest answers are kept, because the schema
of an id never changes.
"""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from topics.errors import RegistryError, TokenError, UnknownSchemaError
from topics.http_answers import BodyError, LargeBodyError, bounded_body, innermost
from topics.registry.registered_schema import (
    KINDS,
    Kind,
    Reference,
    ReferencedSchema,
    RegisteredSchema,
    SchemaId,
)
from topics.registry.registry_access import URL, RegistryAccess

if TYPE_CHECKING:
    from requests import PreparedRequest, Response, Session

CONNECT_S: Final = 5.0
READ_S: Final = 10.0  # between two pieces of an answer
ANSWER_S: Final = 30.0  # for a whole answer
MOST_BYTES: Final = 4 << 20  # of an answer
MOST_KEPT: Final = 1024  # answers of a kind
MOST_REFERENCES: Final = 500  # schemas that a schema needs, directly or not
MOST_SHOWN: Final = 200  # characters of the registry's own reason

MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
NOT_FOUND: Final = (40401, 40402, 40403)
"""Error codes of a subject, a version and a schema that the registry does not have."""


class Registry:
    """A client of a schema registry; every method may be called from any thread."""

    def __init__(self, access: RegistryAccess) -> None:
        self._access = access
        self._local = threading.local()
        self._schema = lru_cache(MOST_KEPT)(self._requested_schema)
        self._schema_id = lru_cache(MOST_KEPT)(self._registered_id)

    def __repr__(self) -> str:
        """Return the addresses; no secret is ever shown."""
        return f"<{type(self).__name__} {self.place}>"

    @property
    def place(self) -> str:
        """The property and value that name the registry."""
        return f"{URL}={','.join(self._access.urls)}"

    def schema(self, schema_id: SchemaId) -> RegisteredSchema:
        """Return the schema of an id.

        Raises UnknownSchemaError if the registry does not have it, RegistryError if it does not answer, or if
        its answer is no schema.
        """
        return self._schema(schema_id)

    def register(self, subject: str, kind: Kind, text: str, references: Sequence[Reference] = ()) -> int:
        """Return the id of a schema under a subject, to which it is added if it is new.

        Raises RegistryError, also for a schema that is not compatible with the subject's versions.
        """
        return self._schema_id(subject, kind, text, tuple(references))

    def _requested_schema(self, schema_id: SchemaId) -> RegisteredSchema:
        kind = "ids" if isinstance(schema_id, int) else "guids"
        answer = self._request("GET", f"/schemas/{kind}/{schema_id}")
        text, of_kind = self._text(answer), self._kind(answer)
        return RegisteredSchema(schema_id, of_kind, text, self._referenced(self._references(answer)))

    def _registered_id(self, subject: str, kind: Kind, text: str, references: tuple[Reference, ...]) -> int:
        body: dict[str, Any] = {"schema": text, "schemaType": kind}
        if references:
            body["references"] = [
                {"name": reference.name, "subject": reference.subject, "version": reference.version}
                for reference in references
            ]
        answer = self._request("POST", f"/subjects/{quote(subject, safe='')}/versions", body)
        schema_id: Any = answer.get("id")
        if type(schema_id) is not int:
            message = f"{self.place} answers without an id for subject {subject}; is it a registry?"
            raise RegistryError(message)
        return schema_id

    def _referenced(self, references: Sequence[Reference]) -> tuple[ReferencedSchema, ...]:
        """Return all schemas that references lead to, each after the schemas that it needs itself."""
        ordered: dict[str, ReferencedSchema] = {}
        entered: set[str] = set()
        path = [(reference, False) for reference in reversed(references)]
        answers: dict[str, Mapping[str, Any]] = {}
        while path:
            reference, is_left = path.pop()
            if is_left:
                ordered[reference.name] = ReferencedSchema(
                    reference.name, self._text(answers[reference.name])
                )
                continue
            if reference.name in entered:
                continue
            entered.add(reference.name)
            if len(entered) > MOST_REFERENCES:
                message = f"{self.place}: a schema must need at most {MOST_REFERENCES} others; divide it"
                raise UnknownSchemaError(message)
            place = f"/subjects/{quote(reference.subject, safe='')}/versions/{reference.version}"
            answer = answers[reference.name] = self._request("GET", place)
            path.append((reference, True))
            path += [(inner, False) for inner in reversed(self._references(answer))]
        return tuple(ordered.values())

    def _references(self, answer: Mapping[str, Any]) -> list[Reference]:
        try:
            return [
                Reference(str(member["name"]), str(member["subject"]), int(member["version"]))
                for member in answer.get("references") or ()
            ]
        except (KeyError, TypeError, ValueError):
            message = f"{self.place} answers with references that are none; is it a registry?"
            raise RegistryError(message) from None

    def _text(self, answer: Mapping[str, Any]) -> str:
        text = answer.get("schema")
        if not isinstance(text, str):
            message = f"{self.place} answers without a schema; is it the address of a registry?"
            raise RegistryError(message)
        return text

    def _kind(self, answer: Mapping[str, Any]) -> Kind:
        kind: Any = answer.get("schemaType") or "AVRO"  # older registries have no other kind
        if kind not in KINDS:
            message = f"{self.place} answers with schemaType={kind!r}; known: {', '.join(KINDS)}"
            raise UnknownSchemaError(message)
        of_kind: Kind = kind
        return of_kind

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """Return the answer of the first address that gives one."""
        failures = []
        for url in self._access.urls:
            try:
                return self._request_at(url, method, path, body)
            except UnknownSchemaError:
                raise
            except RegistryError as error:
                failures.append(str(error))
        raise RegistryError("; ".join(failures))

    def _request_at(
        self, url: str, method: str, path: str, body: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        from requests import RequestException
        from urllib3.exceptions import HTTPError

        headers = {"Accept": f"{MEDIA_TYPE}, application/json", **self._access.headers}
        if body is not None:
            headers["Content-Type"] = MEDIA_TYPE
        try:
            with self._session().request(
                method,
                f"{url}{path}",
                data=None if body is None else json.dumps(body),
                headers=headers,
                verify=self._access.authorities,
                timeout=(CONNECT_S, READ_S),
                allow_redirects=False,  # the secret goes to the named registry, and to no other place
                stream=True,
            ) as response:
                return self._answer(url, path, response)
        except TokenError as error:
            raise RegistryError(str(error)) from None
        except (RequestException, HTTPError, OSError) as error:
            message = f"{URL}={url} does not answer ({innermost(error)})"
            raise RegistryError(message) from None  # the request in the chain holds the secret

    def _answer(self, url: str, path: str, response: Response) -> Mapping[str, Any]:
        answer = _object(_body(response, url))
        status = response.status_code
        if status == HTTPStatus.OK and answer is not None:
            return answer
        code, words = (answer or {}).get("error_code"), str((answer or {}).get("message") or "")
        reason = self._shown(words) or "no reason given"
        if status == HTTPStatus.NOT_FOUND and (code in NOT_FOUND or self._is_registry(url)):
            message = f"{URL}={url} does not have {path} ({reason})"
            raise UnknownSchemaError(message)
        message = f"{URL}={url} answers {path} with HTTP status {status} ({reason})"
        raise RegistryError(message)

    def _is_registry(self, url: str) -> bool:
        """Whether an address that does not know a path is that of a registry: not all have GUIDs."""
        timeout = (CONNECT_S, READ_S)
        with self._session().get(
            f"{url}/schemas/types",
            verify=self._access.authorities,
            timeout=timeout,
            allow_redirects=False,
            stream=True,
        ) as response:
            return b"AVRO" in _body(response, url) and response.status_code == HTTPStatus.OK

    def _session(self) -> Session:
        """Return this thread's session.

        It does not hold the authorities: REQUESTS_CA_BUNDLE has precedence over those of a session, and not
        over those of a request.
        """
        from requests import Session

        session: Session | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = Session()
            session.auth = self._sign_in  # without it, a .netrc would replace the credentials of the settings
            session.cert = self._access.certificate
        return session

    def _sign_in(self, request: PreparedRequest) -> PreparedRequest:
        """Add the credentials to a request."""
        token, login = self._access.token, self._access.login
        if token is not None:
            value = token if isinstance(token, str) else token.token().value
            request.headers["Authorization"] = f"Bearer {value}"
            self._local.sent = (value,)
        elif login is not None:
            encoded = b64encode(":".join(login).encode()).decode()
            request.headers["Authorization"] = f"Basic {encoded}"
            self._local.sent = (login[1], encoded)
        return request

    def _shown(self, text: str) -> str:
        """Return a text of the registry in one short line, without secrets, which it may repeat."""
        for secret in getattr(self._local, "sent", ()):
            text = text.replace(secret, "***") if secret else text
        printable = "".join(letter if letter.isprintable() else " " for letter in text)
        return printable if len(printable) <= MOST_SHOWN else f"{printable[:MOST_SHOWN]}…"


def _body(response: Response, url: str) -> bytes:
    try:
        return bounded_body(response, MOST_BYTES, ANSWER_S)
    except BodyError as error:
        remedy = "; is it a registry?" if isinstance(error, LargeBodyError) else ""
        message = f"{URL}={url} {error}{remedy}"
        raise RegistryError(message) from None


def _object(body: bytes) -> Mapping[str, Any] | None:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None
