"""Tool client: JSON over HTTP to a label tool; no message has the secret, and no redirect is followed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from streamapp.bridge.label_tool import LabelToolError
from streamapp.errors import StreamappError

TIMEOUT_S: Final = 30.0
SHOWN: Final = 200  # characters of an answer in a message


class _NoRedirect(HTTPRedirectHandler):
    """Refuses redirects, because another address must not get the token."""

    def redirect_request(self, *arguments: Any) -> None:  # noqa: ARG002 - whatever it is
        return None


class ToolClient:
    """The server of a label tool. Several threads may use it."""

    def __init__(
        self, url: str, tool: str, secret: str, hint: str, error: type[LabelToolError], timeout_s: float
    ) -> None:
        """Check the address (StreamappError).

        tool: its name in messages; hint: what to do about a refused secret; error: the class of errors.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            message = (
                f"--url must be http(s)://host[:port][/path] without user and query, it is {parts.hostname}"
            )
            raise StreamappError(message)
        self.url = url.rstrip("/")
        self._tool, self._secret, self._hint, self._error = tool, secret, hint, error
        self._timeout_s = timeout_s
        self._opener = build_opener(_NoRedirect)

    def send(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Any:
        """Return the answer to a request; an error of the class that was given."""
        sent = {"Accept": "application/json", **headers}
        data = None
        if body is not None:
            sent["Content-Type"], data = "application/json", json.dumps(body).encode()
        request = Request(self.url + path, data, sent, method=method)  # noqa: S310 - http(s), checked
        where = f"{method} {self.url}{path.partition('?')[0]}"
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                return json.loads(answer.read() or b"{}")
        except HTTPError as error:
            error_text = error.read(SHOWN * 4).decode("utf-8", "replace")[:SHOWN].replace(self._secret, "…")
            hint = f"; {self._hint}" if error.code in (401, 403) else ""
            message = f"{where}: {error.code} {error.reason}: {error_text}{hint}"
            raise self._error(message, passes=error.code in (408, 429) or error.code >= 500) from None
        except (URLError, HTTPException, OSError) as error:
            reason = getattr(error, "reason", None) or error
            message = f"{where}: {self._tool} does not answer: {reason}"
            raise self._error(message, passes=True) from None
        except ValueError:
            message = f"{where}: the answer is no JSON; --url must be the address of {self._tool}"
            raise self._error(message, passes=False) from None
