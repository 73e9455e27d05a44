"""Replay of a data set into topics, at a rate or as fast as possible, with late and lost labels."""

from topics.delay import Delay
from topics.replay.plan import LabelMode, ReplayPlan, Spread
from topics.replay.replay import Replay, ReplayProgress

__all__ = ["Delay", "LabelMode", "Replay", "ReplayPlan", "ReplayProgress", "Spread"]
