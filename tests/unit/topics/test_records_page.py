"""docs/records.md: every example of the page is decoded, every reason is explained."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.unit.topics.codecs.samples import run_of
from topics.codecs import (
    CONTENT_TYPES,
    Limits,
    decode_audit,
    decode_controls,
    decode_drift_alerts,
    decode_evaluations,
    decode_feature_requests,
    decode_feature_values,
    decode_instances,
    decode_label_requests,
    decode_labels,
    decode_model_events,
    decode_predictions,
)
from topics.columns.records import Malformed
from topics.errors import Reason

PAGE = (Path(__file__).parents[3] / "docs" / "records.md").read_text(encoding="utf-8")
FENCE = re.compile(r'^```(json|python) title="(\S+)(?: (\S+))?"\n(.*?)^```$', re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    language: str
    topic: str
    reason: str | None
    text: str


EXAMPLES = [
    Example(language, topic, reason or None, text) for language, topic, reason, text in FENCE.findall(PAGE)
]


class Reports(NamedTuple):
    items: list[Any]

    @property
    def malformed(self) -> list[Malformed]:
        return [item for item in self.items if isinstance(item, Malformed)]

    def __len__(self) -> int:
        return len(self.items) - len(self.malformed)


DECODERS: dict[str, Callable[[bytes], Any]] = {
    "instances": lambda value: decode_instances(run_of([value])),
    "labels": lambda value: decode_labels(run_of([value])),
    "feature-values": lambda value: decode_feature_values(run_of([value])),
    "feature-requests": lambda value: Reports(decode_feature_requests([value])),
    "controls": lambda value: decode_controls(run_of([value])),
    "predictions": lambda value: decode_predictions([value]),
    "label-requests": lambda value: decode_label_requests([value]),
    "drift-alerts": lambda value: Reports(decode_drift_alerts([value])),
    "model-events": lambda value: Reports(decode_model_events([value])),
    "evaluations": lambda value: Reports(decode_evaluations([value])),
    "audit": lambda value: Reports(decode_audit([value])),
}


def value_of(example: Example) -> bytes:
    if example.language == "json":
        return example.text.encode()
    names: dict[str, Any] = {}
    exec(example.text, names)
    value: bytes = names["value"]
    return value


@pytest.mark.parametrize(
    "example", EXAMPLES, ids=lambda example: f"{example.topic}-{example.language}-{example.reason or 'good'}"
)
def test_examples(example: Example) -> None:
    decoded = DECODERS[example.topic](value_of(example))
    reasons = [str(malformed.reason) for malformed in decoded.malformed]
    assert reasons == ([example.reason] if example.reason else [])
    assert (len(decoded) > 0) == (example.reason is None or example.reason == "bad-rows")


def test_no_example_escapes() -> None:
    assert len(EXAMPLES) == PAGE.count("\n```json") + PAGE.count("\n```python")
    assert {example.topic for example in EXAMPLES} == set(DECODERS)
    assert {(example.topic, example.language) for example in EXAMPLES} >= {
        (topic, "python") for topic in ("instances", "labels", "predictions")
    }


def test_every_reason_is_in_the_table() -> None:
    table = PAGE.split("## Reasons")[1]
    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE) == [reason.value for reason in Reason]


def test_content_types_and_limits() -> None:
    for name in CONTENT_TYPES.values():
        assert f"`{name}`" in PAGE
    limits = Limits()
    assert limits.record_max_bytes == 8 * 1024 * 1024
    assert "`record.max.bytes` bytes (8 MiB)" in PAGE
    assert f"`block.max.rows` rows ({limits.block_max_rows:,})" in PAGE
