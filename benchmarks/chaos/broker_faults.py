"""Faults of the brokers of a cluster; one node is away at a time, except after an unclean shutdown of all."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Final

from benchmarks.chaos.network import Network
from streamapp.embedded import EmbeddedCluster

FENCED_S: Final = 9.0
"""Seconds after which controllers give up a broker without heartbeats (`broker.session.timeout.ms`)."""

KINDS: Final[Mapping[str, int]] = {  # number of each kind in a deck
    "leader killed": 1,
    "coordinator killed": 1,
    "broker stopped": 1,
    "broker cut off": 2,  # silent, or with connections reset; sometimes for so long that others lead
    "half-open connections": 1,
    "slow broker": 1,
    "rolling restart": 1,
    "unclean shutdown": 1,  # of all brokers
}


class BrokerFaults:
    """Faults by their names; each ends when all replicas are in sync again."""

    def __init__(
        self, cluster: EmbeddedCluster, network: Network, topic: str, partitions: int, group: str, seed: int
    ) -> None:
        """`topic` and `partitions`: those whose leaders are killed; `group`: that of the workers."""
        self._cluster, self._network = cluster, network
        self._topic, self._partitions, self._group = topic, partitions, group
        self._draw = random.Random(seed)
        self.by_kind: Mapping[str, Callable[[], None]] = {
            "leader killed": lambda: self._kill(self._leader()),
            "coordinator killed": lambda: self._kill(cluster.coordinator(group)),
            "broker stopped": lambda: self._restart(self._any(), kill=False),
            "broker cut off": self._cut_off,
            "half-open connections": self._leave_half_open,
            "slow broker": self._slow_down,
            "rolling restart": cluster.restart_one_by_one,
            "unclean shutdown": self._kill_all,
        }

    def _any(self) -> int:
        return self._draw.choice(list(self._cluster.nodes))

    def _leader(self) -> int:
        return self._cluster.leader(self._topic, self._draw.randrange(self._partitions))

    def _kill(self, node: int) -> None:
        self._restart(node, kill=True)

    def _restart(self, node: int, *, kill: bool) -> None:
        self._cluster.stop(node, kill=kill)
        time.sleep(self._draw.uniform(0.0, 1.5 * FENCED_S))  # it comes back before or after it is given up
        self._cluster.start(node)

    def _cut_off(self) -> None:
        self._network.cut_off(self._any(), self._draw.choice(("silent", "reset")))
        time.sleep(self._draw.uniform(0.3, 2.0) * FENCED_S)
        self._heal()

    def _leave_half_open(self) -> None:
        self._network.leave_half_open(self._any())
        time.sleep(self._draw.uniform(1.0, 3.0))

    def _slow_down(self) -> None:
        self._network.slow_down(self._any(), self._draw.uniform(0.02, 0.2))
        time.sleep(self._draw.uniform(2.0, 6.0))
        self._heal()

    def _heal(self) -> None:
        self._network.heal()
        self._cluster.wait_until_in_sync(self._cluster.nodes)

    def _kill_all(self) -> None:
        self._cluster.stop(kill=True)
        self._cluster.start()
