"""Feature values: the answers to feature requests; each record continues its episode.

    open episode, all values requested ──> taken: the next request, or the answer
    no open episode ──> late      all values here already ──> duplicate      not requested ──> dead letter

A record that names a feature which was not requested changes nothing. Unavailable features cost nothing.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from core.schema.schema import MAX_VALUES, Attribute, Columns
from streamapp.worker.task import counters
from streamapp.worker.task.acquisition.episode_course import FINISH, Course
from streamapp.worker.task.effects.effects import Effects
from streamapp.worker.task.effects.refusals import Refusals
from streamapp.worker.task.episodes.episode import ASKED, BOUGHT, UNAVAILABLE, Episode
from streamapp.worker.task.models.schemas.feature_placement import named
from streamapp.worker.task.partition_state import PartitionState
from streamapp.worker.task.pending.event_time import RunTime
from topics.columns.records import FeatureValues, RawRecords
from topics.errors import Reason


class RefusedValuesError(Exception):
    """Why a record of feature values is refused."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class FeatureValuesRun:
    """One run of feature values on its way through the task; n rows."""

    def __init__(
        self, state: PartitionState, raw: RawRecords, batch: FeatureValues, time: RunTime, effects: Effects
    ) -> None:
        self.state, self.store = state, state.store
        self.raw, self.batch, self.effects = raw, batch, effects
        self.clocks: list[int] = time.clocks().tolist()
        self.course = Course(state, raw, effects)
        self.refusals = Refusals(raw, batch)

    def process(self) -> None:
        """Give every record its outcome, in order."""
        for row in range(len(self.batch)):
            try:
                outcome = self._take(row)
            except RefusedValuesError as error:
                self.refusals.add(row, error.reason, error.detail)
                outcome = counters.VALUES_DEAD
            self.effects.count(outcome)
        self.course.answers.give()
        self.effects.count(counters.VALUES_DEAD, len(self.batch.malformed))
        self.effects.dead_letters += self.refusals.dead_letters()
        self.effects.dead_letters.sort(key=lambda letter: letter.record)

    def _take(self, row: int) -> str:
        batch, record = self.batch, int(self.batch.record[row])
        key, clock = batch.keys[batch.key[row]], self.clocks[int(self.batch.record[row])]
        episode = self.state.episodes.get((key, batch.ids[row]))
        if episode is None:
            return counters.VALUES_LATE
        slot = self.store.keys.slot(key)
        episode = episode.widened(int(self.store.traits.width[slot]))
        values, unavailable = self._asked(row, slot, episode)
        if not values and not unavailable and not batch.finish[row]:
            return counters.VALUES_DUPLICATE
        codes = {column: self._code(slot, column, cell) for column, cell in values.items()}
        episode = self.course.take(episode, codes, unavailable)
        if batch.finish[row]:
            self.course.finish(episode, FINISH, record, clock)
        elif episode.waits:
            self.state.episodes.put(episode)
        else:
            self.course.advance(episode, record, clock)
        return counters.VALUES_TAKEN

    def _asked(self, row: int, slot: int, episode: Episode) -> tuple[dict[int, float | str], list[int]]:
        """Return the requested values by column, and the columns that are unavailable."""
        columns = self.store.traits.schema(slot).columns
        place = _places(columns)
        values: dict[int, float | str] = {}
        unavailable: list[int] = []
        for name, cell in self.batch.values[row].items():
            column = self._column(place, name, episode)
            if episode.status[column] == ASKED:
                _check(columns.attributes[column], cell)
                values[column] = cell
        for name in self.batch.unavailable[row]:
            column = self._column(place, name, episode)
            if episode.status[column] == ASKED:
                unavailable.append(column)
        return values, unavailable

    def _column(self, place: dict[str, int], name: str, episode: Episode) -> int:
        column = place.get(name, -1)
        if column < 0:
            detail = f"feature {name[:40]!r} is not in the model's schema; send the requested features"
            raise RefusedValuesError(Reason.NOT_ASKED, detail)
        if episode.status[column] not in (ASKED, BOUGHT, UNAVAILABLE):
            detail = f"feature {name[:40]!r} was not requested; send known features with the instance"
            raise RefusedValuesError(Reason.NOT_ASKED, detail)
        return column

    def _code(self, slot: int, column: int, cell: float | str) -> float:
        """Return a value in the model's coding; NaN for a value that the model has no code for."""
        attribute = self.store.traits.schema(slot).attributes[column]
        if attribute.kind != "nominal":
            return float(cell)
        text = _text(cell)
        code = attribute.codes.code(text)
        takes_in = (
            attribute.open and not self.store.traits.frozen[slot] and len(attribute.values) < MAX_VALUES
        )
        if code < 0 and takes_in:
            self.course.answers.give_model(slot)  # these answers were due before the model has the value
            self.state.will_change(np.array([slot]))
            self.store.growth.grow(slot, self.store.traits.schema(slot).with_values([(column, text)]))
            self.store.growth.adopt()
            code = self.store.traits.schema(slot).attributes[column].codes.code(text)
        self.effects.count(counters.VALUES_IGNORED, int(code < 0))
        return float(code) if code >= 0 else np.nan


def _check(attribute: Attribute, cell: float | str) -> None:
    if attribute.kind != "nominal" and isinstance(cell, str):
        detail = f"feature {attribute.name!r} must be a number; got the string {cell[:40]!r}"
        raise RefusedValuesError(Reason.WRONG_SCHEMA, detail)


def _text(cell: float | str) -> str:
    """Return the name of a nominal value."""
    if isinstance(cell, str):
        return cell
    return str(named(np.array([cell]), None)[0])


@lru_cache(maxsize=64)
def _places(columns: Columns) -> dict[str, int]:
    return {name: column for column, name in enumerate(columns.names)}
