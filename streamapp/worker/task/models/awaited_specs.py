"""Awaited specs: the specs of keys whose model will be made by their first instance, which has the schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.spec import Spec


class AwaitedSpecs(Mapping[str, Spec]):
    """Specs by key, in the order in which they came; a run that is undone leaves them as they were."""

    def __init__(self) -> None:
        self._specs: dict[str, Spec] = {}
        self._before: dict[str, Spec] | None = None  # None: unchanged since `checkpoint`
        self.state_version = 0
        """The highest state version that a spec here has needed."""

    def __getitem__(self, key: str) -> Spec:
        return self._specs[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)

    def put(self, key: str, spec: Spec) -> None:
        """Set the spec of a key, which becomes the last one."""
        self.discard(key)
        self._will_change()
        self._specs[key] = spec
        self.state_version = max(self.state_version, spec.state_version)

    def discard(self, key: str) -> None:
        """Remove the spec of a key, if there is one."""
        if key in self._specs:
            self._will_change()
            del self._specs[key]

    def load(self, specs: Mapping[str, Spec]) -> None:
        """Replace all specs by stored ones."""
        self._specs, self._before = dict(specs), None
        self.state_version = max([spec.state_version for spec in specs.values()], default=0)

    def checkpoint(self) -> None:
        """Make all changes so far final."""
        self._before = None

    def rollback(self) -> None:
        """Undo the changes since `checkpoint`."""
        if self._before is not None:
            self._specs, self._before = self._before, None

    def _will_change(self) -> None:
        if self._before is None:
            self._before = dict(self._specs)
