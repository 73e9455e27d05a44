"""Results of runs: output records, ready to be sent, and the journal step of each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from streamapp.worker.journal.entry import Step
from streamapp.worker.journal.ledger import Ledger
from streamapp.worker.outputs.outgoing import OutputRecords
from streamapp.worker.outputs.round_outputs import RoundOutputs
from streamapp.worker.task.effects.effects import Effects
from streamapp.worker.transport.runs import Run

if TYPE_CHECKING:
    from streamapp.worker.task.rounds.round_answers import RoundAnswers


class Results:
    """The results of a run."""

    __slots__ = ("effects", "input_bytes", "records", "rest", "run", "step")

    def __init__(
        self,
        run: Run,
        effects: Effects,
        records: list[OutputRecords],
        step: Step,
        input_bytes: int,
        rest: Run | None = None,
    ) -> None:
        """`input_bytes`: of the records of the run; `rest`: its records that were too many for one step."""
        self.run, self.effects, self.records = run, effects, records
        self.step, self.input_bytes, self.rest = step, input_bytes, rest

    together: ResultsTogether | None = None
    """The results of the round of which these are a part; None: of no round."""

    def note_in(self, ledger: Ledger) -> None:
        """Note the run in the ledger of its partition."""
        ledger.note(self.step)

    @property
    def size(self) -> int:
        """Approximate memory in bytes of the run's records and of its outputs."""
        return self.input_bytes + sum(outputs.values.total for outputs in self.records)


class ResultsTogether:
    """The results of the runs of a round that led to nothing but answers, which are sent together."""

    def __init__(self, runs: Sequence[int], answers: RoundAnswers, outputs: RoundOutputs) -> None:
        """`runs`: numbers of the runs in the group that was computed."""
        self.runs, self.answers, self.outputs = runs, answers, outputs
        self.n_runs = len(runs)

    @property
    def answered(self) -> int:
        """Answers to all runs."""
        return len(self.outputs.partitions)

    @property
    def labelled(self) -> int:
        """Labels that came with the records of all runs, and were learned."""
        return sum(self.answers.labelled)


class PartOfResults(Results):
    """The results of one run of a round; its outputs are cut out of those of the round if they are needed."""

    __slots__ = ("at", "together")

    together: ResultsTogether

    def __init__(self, together: ResultsTogether, at: int, run: Run) -> None:
        """`at`: the number of the run in the answers."""
        self.together, self.at = together, at
        self.run, self.rest = run, None
        self.input_bytes = run.raw.spans.value_bytes

    @property
    def step(self) -> Step:  # type: ignore[override]
        """The journal step of the run."""
        return Step("instances", self.run.position, count=len(self.run.raw))

    def note_in(self, ledger: Ledger) -> None:
        """Note the run in the ledger of its partition."""
        ledger.note_plain("instances", self.run.position, self.run.raw.spans.table.shape[1])

    @property
    def effects(self) -> Effects:  # type: ignore[override]
        """The effects of the run, as if it had been processed alone."""
        return self.together.answers.effects(self.at)

    @property
    def records(self) -> list[OutputRecords]:  # type: ignore[override]
        """The output records of the run."""
        return [self.together.outputs.part(self.at)]

    @property
    def size(self) -> int:
        """Approximate memory in bytes of the run's records and of its outputs."""
        return self.input_bytes + self.together.outputs.size(self.at)


def with_whole_rounds(group: Sequence[Results]) -> list[Results | ResultsTogether]:
    """Return the results of a group in order; a round of which all runs are in the group stands once.

    It stands at its first run. Before and after it there may be runs of the same partitions, of other rounds.
    """
    rounds = [results.together for results in group]
    parts = Counter(rounds)
    in_order: dict[Results | ResultsTogether, None] = {}
    for results, together in zip(group, rounds, strict=True):
        if together is not None and parts[together] == together.n_runs:
            in_order[together] = None
        else:
            in_order[results] = None
    return list(in_order)
