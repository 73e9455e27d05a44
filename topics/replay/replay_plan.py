"""Replay plan: the data to send, the rate and the format, checked before anything is sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from topics.columns.records import Format
from topics.definitions import TopicNames
from topics.delay import Delay

LabelMode = Literal["with", "apart", "none"]
Spread = Literal["each", "round-robin", "zipf"]
ReplayFormat = Format | Literal["avro"]
FORMATS = (*get_args(Format), "avro")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPlan:
    """The way in which a data set becomes records.

    `names`: the topics. `keys`: the model keys. `spread`: `each` sends the whole stream to every key;
    `round-robin` and `zipf` (exponent `zipf_exponent`, the first key most often) give each row to one key.

    `labels`: `with` the instance (learned at once), `apart` on the topic of labels, or `none`. `label_delay`:
    for labels apart, the number of rows or seconds after their instance. `label_loss`: share of labels that
    are never sent.

    `format`: of the values; `packed` has nominal values as their codes. `block_rows`: rows of an arrow block.
    `by_name`: features by name, else by position (arrow always by name, packed always by position).
    `withhold`: names of features that are left out of instances, as if they were missing; "*" is all of them.

    `ids`: an instance id is `id_prefix` and the row number; False: the worker assigns ids (labels cannot be
    apart).

    `rate`: rows per second; None: as fast as possible. `records`: rows to send, None: all. `from_row`: the
    first row to send. Rows are numbered from 0; with `loop`, which begins again at the end, the numbers
    continue. `max_outstanding`: rows that may be sent beyond the last one that has gone through the label
    loop (see `label_loop`); None: the replay does not wait for it. `start_ms`: None: timestamps are the time
    of sending; else row i has the timestamp start_ms + i·step_ms, independent of the time of sending. `seed`:
    of lost labels, random delays and Zipf keys, each drawn by row number.
    """

    names: TopicNames = field(default_factory=TopicNames)
    keys: tuple[str, ...] = ("default",)
    spread: Spread = "each"
    zipf_exponent: float = 1.1
    labels: LabelMode = "with"
    label_delay: Delay = field(default_factory=Delay)
    label_loss: float = 0.0
    format: ReplayFormat = "json"
    block_rows: int = 1000
    by_name: bool = True
    withhold: tuple[str, ...] = ()
    ids: bool = True
    id_prefix: str = ""
    rate: float | None = None
    records: int | None = None
    from_row: int = 0
    loop: bool = False
    start_ms: int | None = None
    step_ms: float = 1.0
    seed: int = 1
    max_outstanding: int | None = None

    def __post_init__(self) -> None:
        for name, allowed in (
            ("spread", get_args(Spread)),
            ("labels", get_args(LabelMode)),
            ("format", FORMATS),
        ):
            if getattr(self, name) not in allowed:
                _refuse(name, getattr(self, name), f"one of {', '.join(allowed)}")
        if not self.keys or "" in self.keys or len(set(self.keys)) < len(self.keys):
            _refuse("keys", self.keys, "at least one model key, none empty, all different")
        if self.rate is not None and not 0 < self.rate < float("inf"):
            _refuse("rate", self.rate, "greater than 0 rows per second; leave it out for as fast as possible")
        if not 0 <= self.label_loss <= 1:
            _refuse("label_loss", self.label_loss, "a share from 0 to 1")
        for name, least in (("block_rows", 1), ("from_row", 0)):
            if getattr(self, name) < least:
                _refuse(name, getattr(self, name), f"at least {least}")
        if self.records is not None and self.records < 1:
            _refuse("records", self.records, "at least 1, or None for all")
        if self.max_outstanding is not None and self.max_outstanding < 1:
            _refuse("max_outstanding", self.max_outstanding, "at least 1, or None for no waiting")
        if self.zipf_exponent < 0:
            _refuse("zipf_exponent", self.zipf_exponent, "at least 0")
        if self.start_ms is not None and (self.start_ms < 0 or self.step_ms < 0):
            _refuse("start_ms, step_ms", (self.start_ms, self.step_ms), "at least 0")
        if not self.label_delay.is_zero and self.labels != "apart":
            message = (
                f"label_delay={self.label_delay.text} must be 0 unless labels=apart; "
                "a label in its instance has none"
            )
            raise ValueError(message)
        if self.labels == "apart" and not self.ids:
            _refuse("ids", self.ids, "True with labels=apart; a label names its instance by id")


def _refuse(name: str, value: object, rule: str) -> None:
    message = f"{name}={value!r} must be {rule}"
    raise ValueError(message)
