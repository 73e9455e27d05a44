"""Templates: models that begin alike are copies of one model (2 instead of 40 µs)."""

from __future__ import annotations

from typing import Final

from core.model.model import Model
from core.schema.schema import Schema
from core.spec import Spec

MAX_BYTES: Final = 4 << 20
"""Bytes of the templates that are kept, their schemas included."""


class Templates:
    """New models by spec and schema."""

    def __init__(self) -> None:
        self.latest_words = 0  # of the model that was made last: a hint for the next
        self._models: dict[tuple[Spec, int], Model] = {}  # by spec and uid of the schema
        self._bytes = 0

    def new_model(self, spec: Spec, schema: Schema) -> Model:
        """Return a model that has processed nothing."""
        model = self._copy(spec, schema)
        self.latest_words = len(model.ints)
        return model

    def _copy(self, spec: Spec, schema: Schema) -> Model:
        key = (spec, schema.uid)
        template = self._models.get(key)
        if template is None:
            template = Model.create(spec, schema)
            if template.nbytes > MAX_BYTES // 16:  # a copy would cost as much as a new model
                return template
            self._bytes += template.nbytes + schema.content_bytes
            if self._bytes > MAX_BYTES:
                self._models.clear()
                self._bytes = template.nbytes + schema.content_bytes
            self._models[key] = template
        return Model(template.plan, template.ints.copy())
