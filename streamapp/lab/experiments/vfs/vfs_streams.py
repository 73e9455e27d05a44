"""The streams of VFS (Speeding up VFDT, section 4.1) as its code makes them: MOA's bits, all seeds 1."""

from __future__ import annotations

from dataclasses import dataclass

from core.streams.base import Generator, parse_address

AGRAWAL = "agrawal?balanced=true&function="


def _gradual(parts: list[str], position: int, width: int) -> str:
    """Return the address of streams that follow each other; positions count from the last change."""
    address = parts[-1]
    for part in reversed(parts[:-1]):
        address = f"drift?before=({part})&after=({address})&position={position}&width={width}"
    return address


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of Table 1."""

    name: str
    records: int
    """Published number of records."""
    sample: int
    """Records between two samples of the windowed accuracy."""
    drifts: bool = False
    """The concept changes along the stream, at positions given for its published length."""

    def address(self, records: int) -> str:
        """Return the generator's address for a given length; changes come after the same shares."""
        share = records / self.records
        if self.name == "SEA":
            return "sea?function=1&balanced=true"
        if self.name == "LED":
            parts = [f"led?drift={d}" for d in (1, 3, 5, 7)]
            return _gradual(parts, round(250_000 * share), max(1, round(50_000 * share)))
        if self.name == "AGR":
            parts = [AGRAWAL + f for f in "1214"]
            return _gradual(parts, round(2_500_000 * share), max(1, round(500 * share)))
        if self.name == "RBF":
            return "rbf?classes=15&attributes=200&centroids=100"
        return "random_tree?classes=25&nominal=200&numeric=200"

    def open(self, records: int) -> Generator:
        address = self.address(records)
        return parse_address(f"gen:{address}{'&' if '?' in address else '?'}rng=java")[0]


STREAMS = {
    stream.name: stream
    for stream in (
        Stream("SEA", 5_000_000, 10_000),
        Stream("LED", 1_000_000, 1_000, drifts=True),
        Stream("AGR", 10_000_000, 10_000, drifts=True),
        Stream("RBF", 2_000_000, 10_000),
        Stream("RTG", 10_000_000, 10_000),
    )
}
