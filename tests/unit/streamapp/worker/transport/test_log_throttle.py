"""A message that repeats is logged once in a while, with how often it was kept back."""

import logging

from streamapp.worker.transport.log_throttle import THROTTLE_SECONDS, LogThrottle, throttle_logs


def test_a_message_is_said_once_and_its_repetitions_are_counted() -> None:
    now = [100.0]
    filter_ = LogThrottle(lambda: now[0])

    def said(text: str, *args: object) -> str | None:
        record = logging.LogRecord("aiokafka", logging.ERROR, "file", 1, text, args, None)
        return record.getMessage() if filter_.filter(record) else None

    assert said("no connection to %s", "a:1") == "no connection to a:1"
    assert said("no connection to %s", "b:1") is None
    assert said("something else") == "something else"
    now[0] += THROTTLE_SECONDS
    assert said("no connection to %s", "c:1") == "no connection to c:1 (and 1 times more)"
    now[0] += THROTTLE_SECONDS
    assert said("no connection to %s", "d:1") == "no connection to d:1"


def test_every_logger_of_aiokafka_is_filtered_once() -> None:
    import aiokafka.consumer.fetcher

    throttle_logs()
    throttle_logs()
    filters = logging.getLogger(aiokafka.consumer.fetcher.__name__).filters
    assert len([each for each in filters if isinstance(each, LogThrottle)]) == 1
