"""Replay of a data set, with late and lost labels, or of existing topics, at any rate."""

from topics.delay import Delay
from topics.replay.from_topics import TopicReplay, TopicReplayPlan, TopicReplayProgress, target_of
from topics.replay.label_loop import LoopGroups
from topics.replay.replay import Replay, ReplayProgress
from topics.replay.replay_plan import LabelMode, ReplayPlan, Spread

__all__ = [
    "Delay",
    "LabelMode",
    "LoopGroups",
    "Replay",
    "ReplayPlan",
    "ReplayProgress",
    "Spread",
    "TopicReplay",
    "TopicReplayPlan",
    "TopicReplayProgress",
    "target_of",
]
