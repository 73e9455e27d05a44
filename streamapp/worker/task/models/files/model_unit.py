"""Model unit: core's snapshot of a model, and the task's data about it."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from core.errors import GroveError, OtherReleaseSnapshotError, SnapshotError, SpecError
from core.model import snapshot
from core.model.model import Model
from streamapp.errors import OtherReleaseError
from streamapp.worker.task.models.challenge import Challenge
from streamapp.worker.task.models.files.exported import fits
from streamapp.worker.task.models.files.model_record import ModelRecord
from streamapp.worker.task.unit import Unit, UnitName, damaged, seal, unseal

MODEL: Final = "model"
CHALLENGER: Final = "challenger"
"""Kind of the unit of a challenger, which has the key of its champion."""


class StoredModel(NamedTuple):
    """A model as its unit describes it."""

    name: UnitName
    model: Model
    known_classes: int
    open: bool
    frozen: bool
    warned: bool
    fresh: bool
    since: int = 0
    challenge: Challenge | None = None


class LargeModel(NamedTuple):
    """A model that takes too long to seal between two runs: a copy, to be sealed in any thread."""

    record: ModelRecord

    @property
    def size(self) -> int:
        """Bytes of its buffer."""
        return int(self.record.ints.nbytes)

    def seal(self) -> Unit:
        """Return its unit."""
        return write_model(self.record)


def write_model(record: ModelRecord) -> Unit:
    """Return the unit of a model."""
    facts: dict[str, Any] = {
        "known_classes": record.known_classes,
        "open": record.open,
        "frozen": record.frozen,
        "warned": record.warned,
        "fresh": record.fresh,
    }
    if record.since:
        facts["since"] = record.since
    if record.challenge is not None:
        facts["challenge"] = record.challenge.to_facts()
    kind = MODEL if record.challenge is None else CHALLENGER
    name = UnitName(kind, record.key, record.incarnation)
    return seal(name, facts, [snapshot.write(record.plan, record.ints)])


def read_model(unit: Unit) -> StoredModel:
    """Return the model of a unit."""
    facts, body = unseal(unit)
    try:
        model = Model.restore(body)
    except OtherReleaseSnapshotError as error:
        message = f"unit {unit.name}: {error}"
        raise OtherReleaseError(message) from error
    except SnapshotError as error:
        raise damaged(unit.name, str(error)) from error
    try:
        flags: dict[str, Any] = {name: bool(facts[name]) for name in ("open", "frozen", "warned", "fresh")}
        challenge = Challenge.of_facts(facts["challenge"]) if unit.name.kind == CHALLENGER else None
        since = int(facts.get("since", 0))
        stored = StoredModel(
            unit.name, model, int(facts["known_classes"]), **flags, since=since, challenge=challenge
        )
    except SpecError as error:
        message = f"unit {unit.name}: its challenge has a spec that this build cannot build: {error}"
        raise OtherReleaseError(message) from error
    except (
        GroveError,
        LookupError,
        TypeError,
        ValueError,
        OverflowError,
    ) as error:  # the unit may come from any writer
        raise damaged(unit.name, f"its facts must describe a model: {error!r}") from error
    if not fits(model, stored.known_classes, is_open=stored.open):
        raise damaged(unit.name, "its facts must fit its snapshot")
    return stored
