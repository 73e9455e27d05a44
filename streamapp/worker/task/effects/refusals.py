"""Refusals: rows of a run that are not processed, and their dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamapp.worker.task.effects.effects import DeadLetter, Origin
from topics.columns.records import FeatureValues, Instances, Labels, Malformed, RawRecords
from topics.errors import Reason

ROWS_IN_DETAIL = 3


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a row is not processed."""

    reason: Reason
    detail: str


class Refusals:
    """The refused rows of one run."""

    def __init__(self, raw: RawRecords, batch: Instances | Labels | FeatureValues) -> None:
        self._raw = raw
        self._batch = batch
        self._by_row: dict[int, Refusal] = {}

    def __len__(self) -> int:
        """Return the number of refused rows, without those that the codec refused."""
        return len(self._by_row)

    def __contains__(self, row: int) -> bool:
        """Return whether a row is refused."""
        return row in self._by_row

    def add(self, row: int, reason: Reason, detail: str) -> None:
        """Refuse a row; the first reason stands."""
        self._by_row.setdefault(row, Refusal(reason, detail))

    def rows(self) -> list[int]:
        """Return the refused rows, ascending."""
        return sorted(self._by_row)

    def dead_letters(self, others: Sequence[DeadLetter] = ()) -> list[DeadLetter]:
        """Return a dead letter for each record with refusals, and `others`, in input order."""
        by_record: dict[int, list[int]] = {}
        for row in self.rows():
            by_record.setdefault(int(self._batch.record[row]), []).append(row)
        malformed = {flawed.record: flawed for flawed in self._batch.malformed}
        letters = [
            self._dead_letter(record, by_record.get(record, []), malformed.get(record))
            for record in by_record.keys() | malformed.keys()
        ]
        return sorted([*letters, *others], key=lambda letter: letter.record)

    def _dead_letter(self, record: int, rows: list[int], malformed: Malformed | None) -> DeadLetter:
        if malformed is not None and not rows:
            return DeadLetter.of(self._raw, malformed)
        refused = [(int(self._batch.row[row]), self._by_row[row]) for row in rows]
        bad = () if malformed is None else malformed.rows
        if not bad and refused[-1][0] == 0 and not self._is_block(record):
            reason, detail = refused[0][1].reason, refused[0][1].detail
            return DeadLetter(Origin.of(self._raw, record), reason, detail, record=record)
        details = [f"row {row}: {refusal.detail}" for row, refusal in refused[:ROWS_IN_DETAIL]]
        if malformed is not None:
            details.append(malformed.detail)
        numbered = sorted((*bad, *((row, refusal.reason) for row, refusal in refused)))
        origin, detail = Origin.of(self._raw, record), "; ".join(details)
        return DeadLetter(origin, Reason.BAD_ROWS, detail, tuple(numbered), record=record)

    def _is_block(self, record: int) -> bool:
        """Return whether a record carries several rows; a record of labels is one if it has more than one."""
        if isinstance(self._batch, Instances):
            return record in self._batch.blocks[:, 0]
        return int((self._batch.record == record).sum()) > 1
