"""Hook formats: how webhooks of a label tool prove their sender, and which of them have annotations."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Mapping
from typing import Any, Final, Protocol

from streamapp.errors import UsageError

Parts = tuple[Mapping[str, Any], list[Mapping[str, Any]]]
"""A task of the tool and annotations of it, in the tool's own form."""

ACTIONS: Final = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_CREATED")
EVENTS: Final = ("response.created", "response.updated")
TOLERANCE_S: Final = 300  # of the clocks of Argilla and the bridge, as Standard Webhooks advises
SIGNATURES_MAX: Final = 10  # signatures of one webhook that are looked at: one for each secret in use


class HookFormat(Protocol):
    """The webhooks of one label tool; "" as the result of a check: nothing is wrong."""

    def check_secret(self, secret: str) -> None:
        """Raise UsageError if a secret cannot be one of this tool."""

    def refuses_head(self, secret: str, headers: Mapping[str, str]) -> str:
        """Return why a webhook is refused by its headers alone."""

    def refuses_body(self, secret: str, headers: Mapping[str, str], body: bytes) -> str:
        """Return why a webhook is refused after its body has come."""

    def parts(self, body: Mapping[str, Any]) -> Parts | None:
        """Return the task and the annotations of a webhook; None: it is about something else."""


class LabelStudioHooks:
    """Label Studio sends a header that its user has chosen; the secret is expected in Authorization."""

    def check_secret(self, secret: str) -> None:
        """Any text may be a secret."""

    def refuses_head(self, secret: str, headers: Mapping[str, str]) -> str:
        authorization = headers.get("Authorization", "").encode("latin-1", "replace")
        if not secret or hmac.compare_digest(authorization, secret.encode()):
            return ""
        return "the header Authorization must have the value of GROVE_LABEL_STUDIO_WEBHOOK_SECRET"

    def refuses_body(self, secret: str, headers: Mapping[str, str], body: bytes) -> str:  # noqa: ARG002
        return ""

    def parts(self, body: Mapping[str, Any]) -> Parts | None:
        task, annotation = body.get("task"), body.get("annotation")
        if not isinstance(task, dict) or body.get("action") not in ACTIONS:
            return None
        annotations = annotation if isinstance(annotation, list) else [annotation]
        return task, [annotation for annotation in annotations if isinstance(annotation, dict)]


class ArgillaHooks:
    """Argilla signs its webhooks as Standard Webhooks do: HMAC-SHA256 of id, time and body."""

    def check_secret(self, secret: str) -> None:
        if secret and not _key(secret):
            message = (
                "GROVE_ARGILLA_WEBHOOK_SECRET must be the secret that Argilla has for the webhook: base64, "
                "with or without 'whsec_' before it"
            )
            raise UsageError(message)

    def refuses_head(self, secret: str, headers: Mapping[str, str]) -> str:
        if not secret:
            return ""
        sent = headers.get("webhook-timestamp", "")
        if not sent.isascii() or not sent.isdigit() or len(sent) > len("9999999999"):
            return "the header webhook-timestamp must have the seconds since 1970"
        if abs(int(sent) - time.time()) > TOLERANCE_S:
            return f"webhook-timestamp {sent} must be at most {TOLERANCE_S} s from the time of the bridge"
        return "" if headers.get("webhook-signature") else "the header webhook-signature is missing"

    def refuses_body(self, secret: str, headers: Mapping[str, str], body: bytes) -> str:
        if not secret:
            return ""
        about = f"{headers.get('webhook-id', '')}.{headers.get('webhook-timestamp', '')}."
        digest = hmac.digest(_key(secret), about.encode("latin-1", "replace") + body, hashlib.sha256)
        right = b"v1," + base64.b64encode(digest)
        signatures = headers.get("webhook-signature", "").encode("latin-1", "replace").split(b" ")
        if any(hmac.compare_digest(right, signature) for signature in signatures[:SIGNATURES_MAX]):
            return ""
        return "webhook-signature must be the signature with GROVE_ARGILLA_WEBHOOK_SECRET"

    def parts(self, body: Mapping[str, Any]) -> Parts | None:
        response = body.get("data")
        if body.get("type") not in EVENTS or not isinstance(response, dict):
            return None
        record = response.get("record")
        return (record, [response]) if isinstance(record, dict) else None


def _key(secret: str) -> bytes:
    """Return the key of a secret of Standard Webhooks; b"": the text is none."""
    text = secret.removeprefix("whsec_").rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""
