"""Logs: one line per decision that an operator may ask about, as text or as JSON objects."""

import datetime
import json
import logging
import sys
from collections.abc import Mapping
from typing import Any, Literal, TextIO

from streamapp.errors import StreamappError
from topics.errors import TopicsError

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def configure_logs(
    level: str = "INFO",
    form: Literal["auto", "text", "json"] = "auto",
    worker: str = "",
    stream: TextIO | None = None,
) -> None:
    """Send everything of `level` and above to `stream` (standard output); `worker` is put into every line."""
    stream = stream or sys.stdout
    handler = logging.StreamHandler(stream)
    as_json = form == "json" or (form == "auto" and not stream.isatty())
    handler.setFormatter(JsonLines(worker) if as_json else TextLines(worker))
    handler.addFilter(_without_needless_traceback)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name, floor in (
        ("faust", "WARNING"),
        ("mode", "WARNING"),
        ("aiokafka", "WARNING"),
        ("numba", "WARNING"),
    ):
        logging.getLogger(name).setLevel(max(logging.getLevelName(floor), root.level))


def _without_needless_traceback(record: logging.LogRecord) -> bool:
    """Remove the traceback of an error meant for operators, whose text is complete without it."""
    values = (record.exc_info or (None, None))[1], *(record.args if isinstance(record.args, tuple) else ())
    if any(isinstance(value, (StreamappError, TopicsError)) for value in values):
        record.exc_info = record.exc_text = None
    return True


class TextLines(logging.Formatter):
    """`12:30:01 INFO streamapp.worker.processing.task_manager: partition live  topic=… partition=3`."""

    def __init__(self, worker: str) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%H:%M:%S")
        self._worker = f" [{worker}]" if worker else ""

    def formatMessage(self, record: logging.LogRecord) -> str:
        fields = "".join(f"  {name}={value}" for name, value in _fields(record).items())
        return printable(super().formatMessage(record) + fields + self._worker)

    def formatException(self, ei: Any) -> str:
        """Return a traceback, indented: its text may come from a record and must not look like a log line."""
        lines = super().formatException(ei).split("\n")
        return "\n".join(f"    {printable(line)}" for line in lines)


class JsonLines(logging.Formatter):
    """One object a line: time, level, logger, message, and the fields given as `extra`."""

    def __init__(self, worker: str) -> None:
        super().__init__()
        self._worker = {"worker": worker} if worker else {}

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.datetime.fromtimestamp(record.created, datetime.UTC).isoformat(
                timespec="milliseconds"
            ),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **self._worker,
            **_fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        text = json.dumps(line, default=str, ensure_ascii=False)
        # JSON escapes the line ends of ASCII; terminals and viewers also break lines at other characters.
        return (
            text
            if text.isprintable()
            else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
        )


def printable(text: str) -> str:
    """Return a text in one line, with line ends, control characters and lone surrogates escaped.

    Keys, names and values come from producers: none may look like a line of this log, or control a terminal.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    """Return the fields that a log call gave as `extra={"partition": 3}`."""
    return {name: value for name, value in vars(record).items() if name not in _STANDARD and name[0] != "_"}
