"""Rate limits: token buckets by name, for a bounded number of names."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

_REMEMBERED: Final = 10_000


class RateLimit:
    """A token bucket for each name: `per_s` actions a second, with bursts of `burst` after a rest."""

    def __init__(self, per_s: float, burst: int) -> None:
        self._per_ms, self._burst = per_s / 1000, burst
        self._buckets: OrderedDict[str, tuple[float, int]] = OrderedDict()  # tokens left, time of last action

    def admits(self, name: str, now: int) -> bool:
        """Take a token from the bucket of a name; return whether there was one. now: ms since the epoch.

        >>> limit = RateLimit(per_s=1, burst=2)
        >>> [limit.admits("ann", ms) for ms in (0, 0, 0, 1000)]
        [True, True, False, True]
        """
        tokens, at = self._buckets.pop(name, (float(self._burst), now))
        tokens = min(float(self._burst), tokens + max(0, now - at) * self._per_ms)
        admitted = tokens >= 1
        self._buckets[name] = (tokens - 1 if admitted else tokens, max(at, now))
        if len(self._buckets) > _REMEMBERED:
            self._buckets.popitem(last=False)
        return admitted
