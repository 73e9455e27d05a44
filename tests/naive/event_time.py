"""The clock of a partition as its rule is told, from lists of the records that count."""

from __future__ import annotations

TRUSTED = 100


class NaiveClock:
    """Which records agree with the clock, which are behind it, and which one is doubted."""

    def __init__(self, max_jump_ms: int) -> None:
        self.max_jump_ms = max_jump_ms
        self.believed: list[
            int
        ] = []  # the records that agree with the clock since it began, jumped or went back
        self.behind: list[int] = []  # the records too far behind it, without a gap up to the last one
        self.doubted: int | None = None  # the record before, if it was too far ahead
        self.trusted = False
        self.clock: int | None = None

    def see(self, timestamp: int) -> int:
        if timestamp < 0:
            return -1 if self.clock is None else self.clock
        doubted, self.doubted = self.doubted, None
        if self.clock is None:
            self._begin([timestamp])
        elif timestamp > self.clock + self.max_jump_ms:
            self.behind = []
            if doubted is None:
                self.doubted = timestamp
            elif abs(doubted - timestamp) <= self.max_jump_ms:
                self._begin([doubted, timestamp])
                self.clock = timestamp
            else:
                self._begin([min(doubted, timestamp)])
                self.doubted = max(doubted, timestamp)
        elif timestamp < self.clock - self.max_jump_ms:
            if not self.trusted:
                self.behind.append(timestamp)
                if len(self.behind) == len(self.believed):
                    self._begin(self.behind)
        else:
            self.behind = []
            self.believed.append(timestamp)
            self.clock = max(self.clock, timestamp)
            self.trusted = self.trusted or len(self.believed) >= TRUSTED
        assert self.clock is not None
        return self.clock

    def _begin(self, believed: list[int]) -> None:
        self.believed, self.behind, self.clock = list(believed), [], max(believed)
        self.trusted = False
