"""Outcomes: how challenges end, by the rule or by a person."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from core.active.label_account import DECLINED
from core.layout.challenge_counts import DROPPED, PROMOTED, UNDECIDED
from streamapp.worker.task.challenges.decision_steps import step_of
from streamapp.worker.task.effects.effects import Effects, Notice
from streamapp.worker.task.effects.model_happenings import happened
from streamapp.worker.task.models.challenge import REPORTED, Challenge
from streamapp.worker.task.models.model_keys import NO_MODEL
from streamapp.worker.task.partition_state import PartitionState
from topics.columns.records import RawRecords

Outcome = Literal["promoted", "dropped", "undecided"]
By = Literal["rule", "person", "reset", "import", "deletion"]

OUTCOMES: Final[dict[int, Outcome]] = {PROMOTED: "promoted", DROPPED: "dropped", UNDECIDED: "undecided"}
TEXTS: Final[dict[Outcome, str]] = {
    "promoted": "the challenger is the model of the key now",
    "dropped": "the challenger was dropped",
    "undecided": "the challenge ended undecided, and the challenger was dropped",
}


def challenge_of(state: PartitionState, slot: int) -> Challenge | None:
    """Return the challenge of a model, None: it has no challenger."""
    challenger = state.store.keys.challenger(state.store.keys[slot]) if slot != NO_MODEL else NO_MODEL
    return None if challenger == NO_MODEL else state.store.traits.challenges[challenger]


def settle(state: PartitionState, clock: int, raw: RawRecords, effects: Effects) -> None:
    """Carry out the decisions of the rule that were made in an earlier step of event time than `clock`."""
    keys, traits = state.store.keys, state.store.traits
    for key, challenger in sorted((keys[slot], slot) for slot in traits.decided):
        challenge = traits.challenges[challenger]
        if challenge.decided_at == step_of(clock):
            continue
        if challenge.terms.decide == "person":
            report(state, keys.slot(key), challenger, raw, effects)
            continue
        end(state, keys.slot(key), OUTCOMES[int(challenge.counts.decision)], "rule", raw, 0, effects)


def report(state: PartitionState, slot: int, challenger: int, raw: RawRecords, effects: Effects) -> None:
    """Report the decision of the rule to the person who decides, once."""
    store, challenge = state.store, state.store.traits.challenges[challenger]
    state.will_change(np.array([slot]))
    store.set_challenge(challenger, challenge._replace(decided_at=REPORTED))
    detail = {"challenge": challenge.summary()}
    event = happened("decided", store, slot, raw, 0, more=detail)
    effects.happened.append(event._replace(key=store.keys[slot].encode()))
    decision = OUTCOMES[int(challenge.counts.decision)]
    text = f"the rule has decided: {decision}; send promote or drop"
    effects.notices.append(Notice("info", text, store.keys[slot], raw.offsets[0]))


def end(
    state: PartitionState, slot: int, outcome: Outcome, by: By, raw: RawRecords, record: int, effects: Effects
) -> str:
    """End the challenge of a model; return a description. record: index in raw of what led to it."""
    store = state.store
    key, challenge = store.keys[slot], challenge_of(state, slot)
    assert challenge is not None
    for _ in range(challenge.credits):
        state.pending.close(slot, DECLINED)
    if outcome == "promoted":
        store.promote(slot, state.pending.next_serial)
    else:
        store.drop(slot)
    detail = {"by": by, "challenge": challenge.summary()}
    event = happened(outcome, store, slot, raw, record, more=detail)
    effects.happened.append(event._replace(key=key.encode()))
    compared = challenge.compared()
    text = f"{TEXTS[outcome]} (by {by}): {compared.labels} labels compared"
    if compared.labels:
        text += f", difference {compared.difference:+.4f} ({compared.low:+.4f} to {compared.high:+.4f})"
    if by == "rule":
        effects.notices.append(Notice("info", text, key, raw.offsets[record]))
    return text
