"""Label Studio: a client of the part of its HTTP API that the bridge needs; no message has its token."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from streamapp.errors import StreamappError

TIMEOUT_S: Final = 30.0
PAGE: Final = 100
JWT_PARTS: Final = 3
SHOWN: Final = 200  # characters of an answer in a message


class LabelStudioError(StreamappError):
    """Label Studio refuses a request, or does not answer; `passes`: the same request may succeed later."""

    def __init__(self, message: str, *, passes: bool) -> None:
        super().__init__(message)
        self.passes = passes


class _NoRedirect(HTTPRedirectHandler):
    """Refuses redirects, because another address must not get the token."""

    def redirect_request(self, *arguments: Any) -> None:  # noqa: ARG002 - whatever it is
        return None


class LabelStudio:
    """One project of a Label Studio server. Several threads may use it."""

    def __init__(self, url: str, token: str, project: int, timeout_s: float = TIMEOUT_S) -> None:
        """token: a legacy token, or a personal access token, which is exchanged for short-lived tokens."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            message = (
                f"--url must be http(s)://host[:port][/path] without user and query, it is {parts.hostname}"
            )
            raise StreamappError(message)
        self.url = url.rstrip("/")
        self.project = project
        self._token = token
        self._timeout_s = timeout_s
        self._access = ""
        self._lock = threading.Lock()
        self._opener = build_opener(_NoRedirect)

    def check(self) -> str:
        """Return the title of the project; LabelStudioError if it cannot be read."""
        return str(self._call("GET", f"/api/projects/{self.project}").get("title", ""))

    def tasks(self) -> Iterator[dict[str, Any]]:
        """Yield all tasks of the project with their annotations."""
        page = 1
        while True:
            asked = {"project": self.project, "page": page, "page_size": PAGE, "fields": "all"}
            try:
                answer = self._call("GET", f"/api/tasks?{urlencode(asked)}")
            except LabelStudioError as error:
                if page > 1 and "404" in str(error):
                    return  # after the last page
                raise
            tasks = answer["tasks"] if isinstance(answer, dict) else answer
            yield from tasks
            if len(tasks) < PAGE:
                return
            page += 1

    def add(self, tasks: Sequence[Mapping[str, Any]]) -> int:
        """Import tasks; return the number of tasks that Label Studio has accepted."""
        answer = self._call("POST", f"/api/projects/{self.project}/import", list(tasks))
        return int(answer.get("task_count", len(tasks)))

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        try:
            return self._send(method, path, body, self._authorization())
        except LabelStudioError as error:
            if not self._is_personal or " 401" not in str(error):
                raise
        with self._lock:
            self._access = ""  # it has expired
        return self._send(method, path, body, self._authorization())

    @property
    def _is_personal(self) -> bool:
        return self._token.count(".") == JWT_PARTS - 1

    def _authorization(self) -> str:
        if not self._is_personal:
            return f"Token {self._token}"
        with self._lock:
            if not self._access:
                answer = self._send("POST", "/api/token/refresh", {"refresh": self._token}, None)
                self._access = str(answer.get("access", ""))
            return f"Bearer {self._access}"

    def _send(self, method: str, path: str, body: Any, authorization: str | None) -> Any:
        headers = {"Accept": "application/json"}
        if authorization is not None:
            headers["Authorization"] = authorization
        data = None
        if body is not None:
            headers["Content-Type"], data = "application/json", json.dumps(body).encode()
        request = Request(self.url + path, data, headers, method=method)  # noqa: S310 - http(s), checked
        where = f"{method} {self.url}{path.partition('?')[0]}"
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                return json.loads(answer.read() or b"{}")
        except HTTPError as error:
            error_text = error.read(SHOWN * 4).decode("utf-8", "replace")[:SHOWN].replace(self._token, "…")
            hint = ""
            if error.code in (401, 403):
                hint = "; set GROVE_LABEL_STUDIO_TOKEN to the token of a user who may see the project"
            message = f"{where}: {error.code} {error.reason}: {error_text}{hint}"
            raise LabelStudioError(message, passes=error.code in (408, 429) or error.code >= 500) from None
        except (URLError, HTTPException, OSError) as error:
            reason = getattr(error, "reason", None) or error
            message = f"{where}: Label Studio does not answer: {reason}"
            raise LabelStudioError(message, passes=True) from None
        except ValueError:
            message = f"{where}: the answer is no JSON; --url must be the address of Label Studio"
            raise LabelStudioError(message, passes=False) from None
