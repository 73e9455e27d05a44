"""Log lines: text for people, JSON for machines, fields in both."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from streamapp.logs import configure_logs


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def logged(form: str, level: str = "INFO") -> str:
    stream = io.StringIO()
    configure_logs(level, form, worker="host-0", stream=stream)  # type: ignore[arg-type]
    logger = logging.getLogger("streamapp.test")
    logger.debug("hidden")
    logger.info("partition %d live", 3, extra={"topic": "grove.labels", "offset": 17})
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        logger.exception("broken")
    return stream.getvalue()


def test_json_is_one_object_a_line() -> None:
    info, broken = map(json.loads, logged("json").splitlines())
    assert info["message"] == "partition 3 live"
    assert (info["topic"], info["offset"], info["worker"]) == ("grove.labels", 17, "host-0")
    assert info["level"] == "INFO"
    assert info["time"].endswith("+00:00")
    assert "ZeroDivisionError" in broken["exception"]


def test_text_shows_the_fields() -> None:
    line = logged("text").splitlines()[0]
    assert "INFO" in line
    assert line.endswith("streamapp.test: partition 3 live  topic=grove.labels  offset=17 [host-0]")


def test_auto_is_json_where_nobody_looks() -> None:
    assert logged("auto").startswith("{")


def test_level() -> None:
    assert "hidden" in logged("text", "DEBUG")
    assert "partition" not in logged("text", "ERROR")


def test_libraries_are_heard_only_when_something_is_wrong() -> None:
    configure_logs("DEBUG", "json", stream=io.StringIO())
    assert not logging.getLogger("aiokafka").isEnabledFor(logging.INFO)
    configure_logs("ERROR", "json", stream=io.StringIO())
    assert not logging.getLogger("faust").isEnabledFor(logging.WARNING)
