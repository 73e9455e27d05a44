"""Log lines: text for people, JSON for machines, fields in both."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from streamapp.worker.observability.logs import configure_logs


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


FORGED = "k\n12:00:00 ERROR   streamapp.worker.worker: forged\r\x1b[2J\x85\u2028\u202e\ud800"
"""A key with line ends of four kinds, a terminal's command, a turn of writing, half a character."""


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_a_record_says_makes_no_line_of_its_own(form: str) -> None:
    stream = io.StringIO()
    configure_logs("INFO", form, worker="host-0", stream=stream)  # type: ignore[arg-type]
    logger = logging.getLogger("streamapp.test")
    logger.info("model %s created", FORGED, extra={"key": FORGED})
    try:
        raise ValueError(FORGED)
    except ValueError:
        logger.exception("broken by %s", FORGED)
    text = stream.getvalue()
    text.encode()  # a stream in UTF-8 takes it
    assert text.isprintable() or {c for c in text if not c.isprintable()} == {"\n"}
    lines = text.rstrip("\n").split("\n")
    if form == "json":
        first, second = map(json.loads, lines)
        assert first["key"] == FORGED
        assert FORGED in second["exception"]
    else:
        own = [line for line in lines if not line.startswith("    ")]
        assert len(own) == 2
        assert all("streamapp.test: " in line for line in own)
        assert "k\\n12:00:00 ERROR" in own[0]
