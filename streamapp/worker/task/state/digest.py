"""Digest: a task's state as one number, to compare a restored task with one that never stopped.

It does not depend on the layout of the state in memory or in units, nor on data of the process (counters).
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from core.active.disagreement import NOT_DRAWN
from core.model import snapshot
from streamapp.worker.task.partition_state import PartitionState
from streamapp.worker.task.pending.entries import NOT_CHALLENGED
from streamapp.worker.task.state.cut import lists_of
from streamapp.worker.task.state.list_unit import (
    AWAITED,
    CLOSINGS,
    EARLY,
    EPISODES,
    IMPORT,
    write_awaited,
    write_closings,
    write_early,
    write_episodes,
    write_imports,
)


def digest(next_: dict[Any, int], state: PartitionState) -> bytes:
    """Return the SHA-256 of the whole state of a task."""
    hashed = hashlib.sha256()
    store, image, lists = state.store, state.pending.image(), lists_of(state)
    _add(hashed, next_, state.time.state()._replace(jumps=0), store.lives.begun, image.borders)
    for key, slot in (*store.keys.names(), *store.keys.challengers()):
        model = store.record(slot)
        _add(hashed, key, model.incarnation, model.known_classes, model.open, model.frozen, model.warned)
        if model.since or model.challenge is not None:
            _add(hashed, model.since, model.challenge and model.challenge.to_facts())
        hashed.update(snapshot.write(model.plan, model.ints))
    for unit in (
        *write_awaited(lists[AWAITED]),
        *write_closings(lists[CLOSINGS]),
        *write_early(lists[EARLY]),
        *write_episodes(lists[EPISODES]),
        *write_imports(lists[IMPORT]),
    ):
        hashed.update(unit.data)
    marks = (image.settled.tolist(), image.struck.tolist(), image.holds.tolist())
    for row, (name, settled, struck, holds) in enumerate(zip(image.names, *marks, strict=True)):
        entry = image.rows[row]
        columns = ("born", "width", "prediction", "requested", "sampled", "importance")
        facts = [entry[name].item() for name in columns]
        if entry["scale"].item() != 1.0:
            facts.append(entry["scale"].item())
        if entry["shares"].item():
            facts.append({"shares": entry["shares"].item()})
        if entry["challenger"].item() != NOT_CHALLENGED or entry["octave"].item() != NOT_DRAWN:
            facts.append({"challenger": [entry["challenger"].item(), entry["octave"].item()]})
        if entry["episode"].item():
            facts.append({"episode": entry["episode"].item()})
        _add(hashed, name, *facts, settled, struck, holds)
        if holds:
            hashed.update(image.words[entry["start"] : entry["start"] + entry["width"]].tobytes())
    return hashed.digest()


def _add(hashed: Any, *facts: Any) -> None:
    hashed.update(json.dumps(facts, sort_keys=True).encode())
