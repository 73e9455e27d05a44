"""Controls: commands to the model of a key, carried out one by one in their order.

    create     spec?, schema?    make the model; without schema the first instance gives it
    configure  spec              change parameters, keep the model: query, budget, drift, evaluation, seed
    freeze     frozen?           answer, but neither request nor learn labels (frozen: false ends this)
    reset      spec?, schema?    start over with the same key; what was pending is forgotten
    delete                       forget the model and what was pending
    import     parts of a file   put an exported model under this key, once its last part is here
    challenge  spec, terms       let a second model answer and learn beside the model of the key
    promote                      make the challenger the model of the key
    drop                         forget the challenger

A command that cannot be carried out changes nothing and becomes a dead letter `bad-control`, whose text lists
the possibilities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

import numpy as np

from core.errors import GroveError
from core.model.model import Model
from core.schema.schema import Schema
from core.spec import Spec, is_deep, too_deep
from core.state_version import STATE_VERSION, check_words
from streamapp.worker.task import counters
from streamapp.worker.task.challenges.outcomes import By, Outcome, challenge_of, end
from streamapp.worker.task.challenges.terms import MEMBERS as CHALLENGE_MEMBERS
from streamapp.worker.task.challenges.terms import check_features, terms_of
from streamapp.worker.task.effects.effects import DeadLetter, Effects, Notice, Origin
from streamapp.worker.task.effects.model_happenings import happened, parts_of
from streamapp.worker.task.model_creation import no_room
from streamapp.worker.task.models.files.exported import close_open_requests, read_exported
from streamapp.worker.task.models.files.importing import ModelPart, RefusedPartError
from streamapp.worker.task.models.model_keys import NO_MODEL
from streamapp.worker.task.models.schemas.control_schema import control_schema
from streamapp.worker.task.partition_state import PartitionState
from streamapp.worker.task.pending.event_time import RunTime
from streamapp.worker.task.task_config import TaskConfig
from topics.columns.records import Control, Controls, Ints64, LifeEvent, RawRecords
from topics.errors import Reason

MEMBERS: Final[dict[str, tuple[str, ...]]] = {
    "create": ("spec", "schema"),
    "configure": ("spec",),
    "freeze": ("frozen",),
    "reset": ("spec", "schema"),
    "delete": (),
    "import": ("id", "part", "parts", "crc", "data", "replace"),
    "challenge": CHALLENGE_MEMBERS,
    "promote": (),
    "drop": (),
}
CHALLENGES: Final = ("challenge", "promote", "drop")
CHALLENGES_SINCE: Final = 9
"""State version of the first release with these commands: journals of older releases hold them as refused."""
MAX_DETAIL: Final = 1000
"""Characters of a detail: it quotes the command, which may be as long as a record."""


class RefusedCommandError(Exception):
    """Why a command is not carried out."""

    def __init__(self, detail: str, reason: Reason = Reason.BAD_CONTROL) -> None:
        super().__init__(detail)
        self.reason = reason


class ControlsRun:
    """One run of controls."""

    def __init__(
        self, state: PartitionState, raw: RawRecords, batch: Controls, time: RunTime, effects: Effects
    ) -> None:
        self.state, self.store = state, state.store
        self.raw, self.batch, self.effects = raw, batch, effects
        self.clocks: list[int] = time.clocks().tolist()

    def process(self) -> None:
        """Carry out the commands in order; those that cannot be carried out become dead letters."""
        letters = {malformed.record: DeadLetter.of(self.raw, malformed) for malformed in self.batch.malformed}
        for control in self.batch.items:
            try:
                text = self._command(control)
            except (RefusedCommandError, RefusedPartError, GroveError) as error:
                reason = error.reason if isinstance(error, RefusedCommandError) else Reason.BAD_CONTROL
                detail = _sendable(f"{control.command}: {error}")
                origin = Origin.of(self.raw, control.record)
                letters[control.record] = DeadLetter(origin, reason, detail, record=control.record)
            else:
                offset = self.raw.offsets[control.record]
                self.effects.notices.append(Notice("info", text, control.key, offset))
                self.effects.count(counters.APPLIED)
        self.effects.count(counters.CONTROLS_DEAD, len(letters))
        self.effects.dead_letters += [letters[record] for record in sorted(letters)]

    def _command(self, control: Control) -> str:
        """Carry out a command and return a description of the result."""
        self._check_members(control)
        self.state.pending.expire(self.clocks[control.record])
        return self._carry_out[control.command](self, control)

    def _check_members(self, control: Control) -> None:
        members = MEMBERS[control.command]
        if control.command in CHALLENGES and self.state.config.state_version < CHALLENGES_SINCE:
            message = f"state version {CHALLENGES_SINCE} has this command first"
            raise RefusedCommandError(message)
        unknown = sorted(control.body.keys() - set(members))
        if unknown:
            message = f"member {unknown[0]!r} is unknown; known: {', '.join(members) or 'none'}"
            raise RefusedCommandError(message)
        for name, value in control.body.items():
            if is_deep(value):
                raise RefusedCommandError(too_deep(name))

    # -- commands -------------------------------------------------------------------------------------------

    def _create(self, control: Control) -> str:
        key, store = control.key, self.store
        if store.keys.slot(key) != NO_MODEL or key in self.state.awaited:
            message = f"model {key!r} exists; configure, reset or delete it"
            raise RefusedCommandError(message)
        spec = self._spec(control, self.state.default_spec)
        if "schema" not in control.body:
            self.state.awaited.put(key, spec)
            return "created; its first instance will give the schema"
        slot = store.create(key, spec, _schema(control, spec, self.state.config))
        if slot == NO_MODEL:
            raise RefusedCommandError(self._no_room(control), Reason.TOO_MANY_MODELS)
        self.effects.count(counters.MODELS_CREATED)
        self._say("created", control, slot)
        return "created"

    def _configure(self, control: Control) -> str:
        slot = self._slot(control)
        if slot == NO_MODEL:
            spec = self._changed(control, self.state.awaited[control.key])
            self.state.awaited.put(control.key, spec)
        else:
            former = self.store.cache.plan(slot).spec
            spec = self._changed(control, former)
            if challenge_of(self.state, slot) is not None:
                check_features(spec)
            self.store.configure(slot, spec)
            if spec.acquire.name != former.acquire.name:
                self._begin_episodes(control.key, slot, spec)
            self._say("configured", control, slot)
        return f"configured: {spec.to_json()}"

    def _begin_episodes(self, key: str, slot: int, spec: Spec) -> None:
        """Give the open episodes of a model words of its new acquirer, which cannot read the former ones."""
        acquirer, is_frozen = spec.acquirer, bool(self.store.traits.frozen[slot])
        width = int(self.store.traits.width[slot])
        for episode in self.state.episodes.of_model(key):
            words: Ints64 = np.zeros(0, dtype=np.int64)
            if acquirer is not None:
                episode = episode.widened(width)
                self.store.cache.use(np.array([slot]))
                model = self.store.cache.model(slot)
                if acquirer.writes and not is_frozen:
                    self.state.will_change(np.array([slot]))
                words = acquirer.open(model, episode.x, episode.unknown, episode.serial, is_frozen)
            self.state.episodes.put(episode._replace(words=words))

    def _freeze(self, control: Control) -> str:
        frozen = control.body.get("frozen", True)
        if not isinstance(frozen, bool):
            message = f"frozen={frozen!r} must be true or false"
            raise RefusedCommandError(message)
        slot = self._slot(control)
        if slot == NO_MODEL:
            message = f"model {control.key!r} has no schema yet; freeze it after its first instance"
            raise RefusedCommandError(message)
        self.store.freeze(slot, frozen)
        self._say("frozen" if frozen else "unfrozen", control, slot)
        return "frozen: answers, but neither requests labels nor learns" if frozen else "no longer frozen"

    def _reset(self, control: Control) -> str:
        slot = self._slot(control)
        if slot == NO_MODEL:
            spec = self._spec(control, self.state.awaited[control.key])
            schema = _schema(control, spec, self.state.config) if "schema" in control.body else None
        else:
            spec = self._spec(control, self.store.cache.plan(slot).spec)
            schema = (
                _schema(control, spec, self.state.config)
                if "schema" in control.body
                else self.store.traits.schema(slot)
            )
        if schema is None:
            self.state.awaited.put(control.key, spec)
        elif slot == NO_MODEL:
            slot = self.store.create(control.key, spec, schema)
            if slot == NO_MODEL:
                raise RefusedCommandError(self._no_room(control), Reason.TOO_MANY_MODELS)
            self.state.awaited.discard(control.key)
        else:
            model = Model.create(spec, schema)
            self._end_challenge(slot, "reset", control)
            self.store.replace(slot, model)
            self.state.pending.forget_model(slot)
            self.state.episodes.forget_model(control.key)
        if slot != NO_MODEL:
            self._say("reset", control, slot)
        return "reset: learns again from the beginning"

    def _delete(self, control: Control) -> str:
        slot = self._slot(control)
        if slot == NO_MODEL:
            self.state.awaited.discard(control.key)
        else:
            self._end_challenge(slot, "deletion", control)
            self._say("deleted", control, slot)
            self.store.delete(slot)
            self.state.pending.forget_model(slot)
            self.state.episodes.forget_model(control.key)
        self.effects.count(counters.MODELS_DELETED)
        return "deleted"

    def _import(self, control: Control) -> str:
        key = control.key
        part, whole = self._part(control)
        if whole is None:
            return f"import {part.id}: part {part.number} of {part.parts} is here"
        exported = read_exported(whole, self.state.config.state_version)
        close_open_requests(exported.model)
        old = self.store.keys.slot(key)
        self._end_challenge(old, "import", control)
        slot = self.store.put(key, exported)
        if slot == NO_MODEL:
            raise RefusedCommandError(self._no_room(control), Reason.TOO_MANY_MODELS)
        if old == NO_MODEL:
            self.state.awaited.discard(key)
            self.effects.count(counters.MODELS_CREATED)
        else:
            self.state.pending.forget_model(slot)
            self.state.episodes.forget_model(control.key)
        self.effects.count(counters.MODELS_IMPORTED)
        self._say("imported", control, slot)
        return f"imported: the model of {exported.key!r}, {exported.model.summary().labels} labels learned"

    def _part(self, control: Control) -> tuple[ModelPart, bytes | None]:
        """Add a part to its import; return it, and the whole file if it was the last part."""
        key, imports = control.key, self.state.imports
        part = ModelPart.of(control.body)
        is_there = self.store.keys.slot(key) != NO_MODEL or key in self.state.awaited
        if is_there and not part.replace:
            imports.give_up(key)
            message = f"model {key!r} exists; delete it, or import with replace"
            raise RefusedCommandError(message)
        return part, imports.take(key, part)

    def _challenge(self, control: Control) -> str:
        slot = self._model(control)
        if challenge_of(self.state, slot) is not None:
            message = f"model {control.key!r} has a challenger already; promote or drop it first"
            raise RefusedCommandError(message)
        if self.store.traits.frozen[slot]:
            message = f"model {control.key!r} is frozen: it learns nothing; end that first ('frozen': false)"
            raise RefusedCommandError(message)
        if "spec" not in control.body:
            message = "spec is missing: the spec of the challenger, as in 'create'"
            raise RefusedCommandError(message)
        champion, schema = self.store.cache.plan(slot).spec, self.store.traits.schema(slot)
        terms = terms_of(control.body, self._spec(control, champion), champion, schema)
        if self.store.challenge(slot, terms, self.state.pending.next_serial) == NO_MODEL:
            raise RefusedCommandError(self._no_room(control), Reason.TOO_MANY_MODELS)
        self.effects.count(counters.MODELS_CREATED)
        more = {"challenger": parts_of(terms.spec)}
        self.effects.happened.append(
            happened("challenged", self.store, slot, self.raw, control.record, more=more)
        )
        return f"challenged: {terms.spec.to_json()} answers and learns beside it"

    def _promote(self, control: Control) -> str:
        return self._end(control, "promoted")

    def _drop(self, control: Control) -> str:
        return self._end(control, "dropped")

    def _end(self, control: Control, outcome: Outcome) -> str:
        """End the challenge of a key by a person's decision."""
        slot = self._model(control)
        if challenge_of(self.state, slot) is None:
            message = f"model {control.key!r} has no challenger; make one by 'challenge'"
            raise RefusedCommandError(message)
        return end(self.state, slot, outcome, "person", self.raw, control.record, self.effects)

    def _end_challenge(self, slot: int, by: By, control: Control) -> None:
        """End the challenge of a model that is replaced or deleted, if there is one."""
        if challenge_of(self.state, slot) is not None:
            end(self.state, slot, "dropped", by, self.raw, control.record, self.effects)

    def _say(self, what: LifeEvent, control: Control, slot: int) -> None:
        """Add a model event. A key with only a spec has no model yet: its first instance makes the model."""
        self.effects.happened.append(happened(what, self.store, slot, self.raw, control.record))

    # -- members --------------------------------------------------------------------------------------------

    def _slot(self, control: Control) -> int:
        """Return the slot of the model, NO_MODEL if it only has a spec yet."""
        slot = self.store.keys.slot(control.key)
        if slot == NO_MODEL and control.key not in self.state.awaited:
            message = f"model {control.key!r} is unknown; create it"
            raise RefusedCommandError(message)
        return slot

    def _model(self, control: Control) -> int:
        """Return the slot of the model, which must exist."""
        slot = self._slot(control)
        if slot == NO_MODEL:
            message = f"model {control.key!r} has no schema yet; send this after its first instance"
            raise RefusedCommandError(message)
        return slot

    def _no_room(self, control: Control) -> str:
        return no_room(self.state, control.key, self.raw.offsets[control.record], self.effects)

    def _spec(self, control: Control, default: Spec) -> Spec:
        if "spec" not in control.body:
            return default
        spec = self.state.config.spec(control.body["spec"])
        self._check_together(spec)
        self.state.note_words(control.body["spec"])
        return spec

    def _check_together(self, spec: Spec) -> None:
        """Refuse a detector that cannot do its work; the journal of an older release may create one."""
        if self.state.config.state_version == STATE_VERSION:
            spec.check_together()

    def _changed(self, control: Control, spec: Spec) -> Spec:
        """Return a spec with the changes of a `configure` command."""
        changes = control.body.get("spec")
        if not isinstance(changes, dict):
            message = f"spec={changes!r} must be an object with the parts to change"
            raise RefusedCommandError(message)
        body: dict[str, Any] = spec.to_dict()
        version = self.state.config.state_version
        for part, value in changes.items():
            old = body.get(part)
            if part == "drift" and isinstance(old, list) and not isinstance(value, list | None):
                check_words({part: value}, version)
                body[part] = with_detector(old, value)
                continue
            if not (isinstance(value, dict) and isinstance(old, dict)):
                body[part] = value
                check_words({part: value}, version)
                continue
            name = old.get("name")
            # The members of class weights are classes: one called "name" names no plug-in.
            same = part == "class_weights" or value.get("name", name) == name
            body[part] = {**old, **value} if same else value
            check_words({part: {**value, "name": name} if same else value}, version)
        changed = self.state.config.checked(Spec.parse(body, version))
        if not changes.keys().isdisjoint(("drift", "learner")):
            self._check_together(changed)
        self.state.note_words(changes)
        return changed

    # A run that held its own methods would be a cycle: memory that only a collection of Python frees.
    _carry_out: ClassVar[Mapping[str, Callable[[ControlsRun, Control], str]]] = {
        "create": _create,
        "configure": _configure,
        "freeze": _freeze,
        "reset": _reset,
        "delete": _delete,
        "import": _import,
        "challenge": _challenge,
        "promote": _promote,
        "drop": _drop,
    }


def with_detector(detectors: list[dict[str, Any]], change: Any) -> list[Any]:
    """Return a spec's two detectors after the change of one of them; the other stays.

    The change replaces parameters of the detector that it names, or of the detector of errors. Another name
    takes the place of that detector.
    """
    errors, inputs = detectors
    value = {"name": change} if isinstance(change, str) else change
    if not isinstance(value, dict):
        return [change]  # refused by the spec
    if value.get("name") == inputs["name"]:
        return [errors, {**inputs, **value}]
    same = value.get("name", errors["name"]) == errors["name"]
    return [{**errors, **value} if same else value, inputs]


class RefusedControlsRun(ControlsRun):
    """Controls of a journal that were refused when they were first processed.

    The rules of this release may accept them, the state must not: only an import changes by a refusal, whose
    parts are given up or, after the last one, used up.
    """

    def _command(self, control: Control) -> str:
        self._check_members(control)
        if control.command == "import":
            self._part(control)
        message = "it was refused when it was first processed"
        raise RefusedCommandError(message)


def _schema(control: Control, spec: Spec, config: TaskConfig) -> Schema:
    declared = control.body["schema"]
    return control_schema(declared, spec.max_classes, config.models_max_attributes, config.limits)


def _sendable(detail: str) -> str:
    """Return a detail cut to MAX_DETAIL characters, and valid UTF-8: JSON can escape lone surrogates."""
    detail = detail if len(detail) <= MAX_DETAIL else f"{detail[:MAX_DETAIL]}…"
    return detail.encode("utf-8", "backslashreplace").decode()
