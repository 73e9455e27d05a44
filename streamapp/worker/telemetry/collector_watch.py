"""Collector watch: one log line when a collector stops taking spans or metrics, one when it takes them again.

The exporters log each attempt; while a collector is away that would be a line every few seconds. The watch
keeps these lines back, and has the cause from the connection.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Final

import requests

logger = logging.getLogger(__name__)

KEPT_BACK: Final = (
    "Transient error",
    "Failed to export",
    "Shutdown in progress",
    "Exporter already shutdown",
)
"""Beginnings of the exporters' lines about attempts."""

CREDENTIALS: Final = re.compile(r"OTEL_PYTHON_EXPORTER_OTLP_HTTP_(\w+_)?CREDENTIAL_PROVIDER")
"""Variables that name a plug-in with connections of its own."""

_ERRNO: Final = re.compile(r"\[Errno -?\d+\] ([^'\")]+)")


class CollectorWatch(logging.Filter):
    """Watches one exporter, as a filter of its logger; calls come from the thread that exports."""

    def __init__(self, exporter: str, content: str, endpoint: str, environment: Mapping[str, str]) -> None:
        """`exporter`: name of its logger; `content`: spans or metrics."""
        super().__init__()
        self._content, self._endpoint = content, endpoint
        self._is_away = False
        has_plugin = any(CREDENTIALS.fullmatch(name) and value for name, value in environment.items())
        self.session = None if has_plugin else WatchedSession()
        """Connection for the exporter; None: it has one from a plug-in."""
        logging.getLogger(exporter).addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a line of the exporter."""
        return not str(record.msg).startswith(KEPT_BACK)

    def failed(self) -> None:
        """Note that something was not sent."""
        if not self._is_away:
            self._is_away = True
            logger.warning(
                "%s are not sent to %s: %s; they are dropped until the collector takes them",
                self._content,
                self._endpoint,
                self.session.outcome if self.session else "it did not take them",
            )

    def succeeded(self) -> None:
        """Note that something was sent."""
        if self._is_away:
            self._is_away = False
            logger.info("%s are sent to %s again", self._content, self._endpoint)


class WatchedSession(requests.Session):
    """A session that keeps the outcome of its last request, as text."""

    outcome = "not tried"

    def request(self, *args: Any, **options: Any) -> requests.Response:
        """Send a request."""
        try:
            response = super().request(*args, **options)
        except requests.Timeout:
            self.outcome = "no answer in time"
            raise
        except requests.RequestException as error:
            errno = _ERRNO.search(str(error))
            self.outcome = errno[1] if errno is not None else type(error).__name__
            raise
        self.outcome = f"{response.status_code} {response.reason}"
        return response
