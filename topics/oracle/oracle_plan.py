"""Oracle plan: the delays, errors and losses of answers, and when the oracle stops."""

from __future__ import annotations

from dataclasses import dataclass, field

from topics.definitions import TopicNames
from topics.delay import Delay


@dataclass(frozen=True, slots=True, kw_only=True)
class OraclePlan:
    """The behaviour of an oracle for label requests or feature requests.

    `features`: answer feature requests; the fields about labels below then have no effect. `unavailable`:
    share of features that are unavailable, drawn by row and feature.

    `names`: the topics. `group_id`: the consumer group; several oracles of one group share the partitions.
    `id_prefix`: the text before the row number in instance ids (see ReplayPlan). `loop`: a row number beyond
    the data set continues from its beginning, as a looping replay numbers rows.

    `delay`: seconds from the request to its answer. `loss`: share of requests that are never answered.
    `declined`: share of the remaining requests that are answered with "declined". `error_rate`: share of the
    labels that name a wrong class, each equally likely. `seed`: of all four, drawn by row number: a row has
    the same outcome for every request.

    `event_time`: if False, answers wait for the clock and have the time of sending as timestamp. If True, no
    answer waits for the clock: its timestamp is that of its request plus the delay, and answers are sent in
    the order of timestamps. This is for streams of the past: brokers refuse timestamps more than an hour
    ahead of them. `annotator`: written into every label, if given.

    `waiting_max`: the largest number of waiting answers, which are in memory. When so many wait for the
    clock, no more requests are taken; with `event_time` the earliest answers are then sent before their turn.

    `left_to_people`: model keys whose requests are not answered.

    `limit`: stop after this number of answers. `idle_seconds`: stop when no request came for this time and no
    answer waits.
    """

    names: TopicNames = field(default_factory=TopicNames)
    group_id: str = "grove-oracle"
    id_prefix: str = ""
    loop: bool = False
    delay: Delay = field(default_factory=lambda: Delay(0.0, "seconds"))
    loss: float = 0.0
    features: bool = False
    unavailable: float = 0.0
    declined: float = 0.0
    error_rate: float = 0.0
    seed: int = 1
    event_time: bool = False
    annotator: str | None = "oracle"
    waiting_max: int = 100_000
    left_to_people: tuple[str, ...] = ()
    limit: int | None = None
    idle_seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("loss", "declined", "error_rate", "unavailable"):
            share = getattr(self, name)
            if not 0 <= share <= 1:
                message = f"{name}={share} must be a share from 0 to 1"
                raise ValueError(message)
        idle = ("declined", "error_rate") if self.features else ("unavailable",)
        for name in idle:
            if getattr(self, name):
                what = "features" if self.features else "labels"
                message = f"{name}={getattr(self, name)} must be 0 for requests of {what}"
                raise ValueError(message)
        if self.delay.unit != "seconds" and not self.delay.is_zero:
            message = (
                f"delay={self.delay.text} records must be a time such as 30s; the oracle sees no records"
            )
            raise ValueError(message)
        if not self.group_id:
            message = "group_id='' must be a name; answers are committed under it"
            raise ValueError(message)
        if self.waiting_max < 1:
            message = f"waiting_max={self.waiting_max} must be at least 1"
            raise ValueError(message)
        if self.limit is not None and self.limit < 1:
            message = f"limit={self.limit} must be at least 1, or None for no limit"
            raise ValueError(message)
        if self.idle_seconds is not None and self.idle_seconds <= 0:
            message = f"idle_seconds={self.idle_seconds} must be greater than 0, or None to wait for ever"
            raise ValueError(message)
