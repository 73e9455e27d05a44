"""Plan: the part that all models of one spec and one schema share.

A plan is not state. It holds counts, kinds, parameters and the positions of attributes and sections in one
buffer of words (core/plan_words.py); models point to it, so that ten thousand of them read the same cache
lines.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any, ClassVar, TypeAlias

from core.class_weights import by_code
from core.errors import SchemaError
from core.layout.curve import CURVE_WORDS
from core.layout.measures import measure_words
from core.layout.model import WORD, Floats, Ints, ModelHeader, evaluation_words
from core.layout.plan import PlanRecord
from core.plan_words import NAMES_SHARE, PlanWords, calibration_words
from core.schema import shared
from core.schema.dimensions import Dimensions, dimensions, grown_dimensions
from core.schema.names import name_bytes
from core.schema.schema import Schema
from core.spec import Spec

_sharing = threading.RLock()  # without it two threads could create two objects for one key
_plans: weakref.WeakValueDictionary[tuple[Spec, Schema], Plan] = weakref.WeakValueDictionary()
_Key: TypeAlias = tuple[Spec, Dimensions, bool, tuple[float, ...]]
_words: weakref.WeakValueDictionary[_Key, PlanWords] = weakref.WeakValueDictionary()


class Plan:
    """The shared part of the models of a spec and a schema; ``Plan.of`` returns equal plans as one object."""

    __slots__ = ("__weakref__", "address", "blocks", "floats", "ints", "record", "schema", "spec", "words")

    _bytes: ClassVar[int] = shared.INTERNED + 150
    _tally: ClassVar[shared.Tally] = shared.TALLY

    def __init__(self, spec: Spec, schema: Schema, words: PlanWords | None = None) -> None:
        """Combine words with a schema; `words`: shared by its dimensions (None: make new words)."""
        words = words or PlanWords(spec, dimensions(schema), is_roomy(spec, schema))
        self.spec = spec
        self.schema = schema
        self.words = words
        self.ints: Ints = words.ints
        self.floats: Floats = words.floats
        self.address: int = words.address
        self.record: PlanRecord = words.record
        """The words by name."""
        self.blocks: Any = words.blocks
        """The layout of the models' blocks; its class is the learner's kind of BlockLayout."""
        self._tally.hold(self._bytes)

    def __del__(self) -> None:
        """Subtract the plan's size from the tally: the last model that used it is freed."""
        self._tally.give_up(self._bytes)

    @staticmethod
    def of(spec: Spec, schema: Schema, before: Plan | None = None) -> Plan:
        """Return the plan of a spec and a schema; `before`: the plan of the schema before it grew."""
        with _sharing:
            plan = _plans.get((spec, schema))
            if plan is None:
                spec.learner.check_schema(schema)
                dims = (
                    dimensions(schema)
                    if before is None
                    else grown_dimensions(schema, before.schema, before.words.dims)
                )
                weights = by_code(spec.class_weights, schema.classes, dims.classes)
                key = spec, dims, is_roomy(spec, schema), weights
                words = _words.get(key)
                if words is None:
                    words = _words[key] = PlanWords(*key)
                plan = _plans[spec, schema] = Plan(spec, schema, words)
            return plan

    @property
    def values_index(self) -> dict[int, tuple[int, int]]:
        """By column of a nominal attribute: its first position on the value axis and its room there."""
        return self.words.dims.value_places

    def check_room(self) -> None:
        """Raise SchemaError if an empty model of this schema is larger than ``max_bytes``.

        All attributes have a place in every block and leaf, however sparse the records: 40,000 numeric
        attributes and two classes take 3.2 MB, so that 1 GiB (the default) is enough for 335 leaves, and
        growth stops there [D1].
        """
        classes = max(self.schema.declared_classes, 1)
        least, blocks = self.blocks.least_words(classes) * WORD, self.spec.most_blocks
        needed = self.section_bytes(classes) + blocks * least
        if needed > self.spec.learner.max_bytes:
            msg = (
                f"max_bytes={self.spec.learner.max_bytes:.0f} must be at least {needed}, a model of "
                f"{blocks} leaf of {self.schema.n_attributes} attributes and {classes} classes; "
                f"raise it or leave attributes out{self._without_measures()}"
            )
            raise SchemaError(msg)

    def _without_measures(self) -> str:
        """Return the remedies of a model with a learning curve or measures per class, for an error text."""
        remedies = ""
        if self.spec.evaluation.worth > 0.0:
            remedies += f", or set evaluation.worth to 0, which saves {CURVE_WORDS * WORD}"
        if self.spec.evaluation.per_class:
            measures = measure_words(max(self.schema.declared_classes, 1)) * WORD
            remedies += f", or set evaluation.per_class to false, which saves {measures}"
        if self.record.input_words:
            inputs = int(self.record.input_words) * WORD
            remedies += f", or leave 'input' out of drift, which saves {inputs}, or lower its features"
        return remedies

    def block_bytes(self, classes: int) -> float:
        """Return the bytes that a block may use: an equal part of ``max_bytes`` without the sections.

        Each block has its part, whether a second block exists now or not: a background tree must be able to
        grow beside a main tree that is full, because it is to replace it.
        """
        return (self.spec.learner.max_bytes - self.section_bytes(classes)) / self.spec.most_blocks

    def learned_bytes(self, ints: Ints, least: int = 0) -> float:
        """Return the bytes that a block may use, by the classes and values that the model has learned.

        ints: the model's words; least: the number of classes that the block has room for in any case.

        Names that the model has not learned are left out. The row at which the schema took them in depends on
        where a run was cut, and no model may depend on that.
        """
        model = ModelHeader.over(ints)
        learned, seen = int(model.classes), model.values_seen(self.record)
        names = list(self.schema.classes[learned:])
        for j, attribute in enumerate(self.values_index):
            names += self.schema.attributes[attribute].values[seen.item(j) :]
        return self.block_bytes(max(learned, least)) + sum(map(name_bytes, names)) / self.spec.most_blocks

    def section_bytes(self, classes: int) -> int:
        """Return the bytes of a model outside its blocks, its schema's names included.

        The whole schema counts for each model, shared or not: the limit of a model must not depend on other
        models.
        """
        window, room = self.spec.evaluation.window, self.schema.n_classes
        spare = evaluation_words(room, window) - evaluation_words(classes, window)
        if self.spec.evaluation.per_class:
            spare += measure_words(room) - measure_words(classes)
        spare += calibration_words(self.spec, room) - calibration_words(self.spec, classes)
        return (int(self.record.blocks) - spare) * WORD + self.schema.content_bytes


def is_roomy(spec: Spec, schema: Schema) -> bool:
    """Return whether a schema's names take so little of ``max_bytes`` that words need not count them."""
    return schema.content_bytes <= NAMES_SHARE * spec.learner.max_bytes
