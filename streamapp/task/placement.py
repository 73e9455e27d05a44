"""From named or positional feature values to the columns of the models' schemas.

A *layout* is how one list of feature names lies in one schema; it is found once and kept. Usually a run has
one list of names and one schema, the layout is the identity, and the decoded matrix goes to the kernels as
it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from core.features import MAX_VALUES, Attribute, Schema
from streamapp.task.model_store import ModelStore
from topics.errors import Reason
from topics.records import Features, Floats, Ints64

MAX_ATTRIBUTES: Final = 4096
"""Features that an open schema takes in; more names than that are no features but data."""

_LAYOUTS_KEPT: Final = 4096

Names = tuple[str, ...]


class Layout(NamedTuple):
    """How features of one list of names lie in one schema."""

    target: Ints64  # int64[d] attribute of each feature, -1: the schema does not know it
    identity: bool  # feature j is attribute j, and all attributes are there
    nominal: tuple[tuple[int, int], ...]  # (feature, attribute) of the nominal ones
    unknown: tuple[int, ...]  # features the schema does not know


class Part(NamedTuple):
    """The rows of a group of features whose models have the same attributes."""

    features: Features
    rows: Ints64  # int64[m] rows of the batch
    slots: Ints64  # int64[m] their models
    of_group: Ints64 | None  # int64[m] rows of the group; None: all of them
    schema: Schema  # the models' but for the classes
    layout: Layout

    def values(self) -> Floats:
        """Return float64[m, d]."""
        return self.features.values if self.of_group is None else self.features.values[self.of_group]

    def strings(self, feature: int) -> list[str | None] | None:
        """Return the m string cells of a feature, or None if it has none."""
        cells = self.features.strings.get(feature)
        if cells is None or self.of_group is None:
            return cells
        return [cells[row] for row in self.of_group.tolist()]

    def given(self, feature: int) -> npt.NDArray[np.bool_]:
        """Return bool[m]: whether the row has a value for the feature."""
        given = ~np.isnan(self.values()[:, feature])
        cells = self.strings(feature)
        return given if cells is None else given | np.array([cell is not None for cell in cells])

    def attribute(self, feature: int, at: int) -> Attribute:
        """Return the attribute that the value of a feature in row `at` of the part makes."""
        return attribute_of(self.features, feature, at if self.of_group is None else int(self.of_group[at]))


@dataclass(slots=True)
class Placed:
    """Features in the models' columns."""

    x: Floats  # float64[n, D]; NaN where missing, codes where nominal
    flaws: dict[int, tuple[Reason, str]] = field(default_factory=dict)  # row -> what is wrong with it
    new_values: list[tuple[int, int, str]] = field(
        default_factory=list
    )  # row, attribute, value without a code


class Grown(NamedTuple):
    """What became of new values of nominal attributes."""

    ignored: int  # values that stay without a code
    full: list[tuple[int, str]]  # attributes that have taken in their last value: row and name


class Placement:
    """Places features; keeps the layouts."""

    def __init__(self, store: ModelStore) -> None:
        self._store = store
        self._layouts: dict[tuple[Names | int, int], Layout | None] = {}

    def parts(
        self, features: Sequence[Features], model: Ints64
    ) -> tuple[list[Part], dict[int, tuple[Reason, str]]]:
        """Return the parts of a batch, and the rows whose arrays have a wrong length.

        model: int64[n] slot of each row; rows with NO_MODEL are left out.
        """
        parts: list[Part] = []
        flaws: dict[int, tuple[Reason, str]] = {}
        for group in features:
            slots = model[group.rows]
            for of_group in self._by_shape(slots):
                rows, of_rows = (
                    (group.rows, slots) if of_group is None else (group.rows[of_group], slots[of_group])
                )
                shape = self._store.shape(int(of_rows[0]))
                layout = self._layout(group, shape)
                if layout is None:
                    flaw = _wrong_length(group.values.shape[1], shape)
                    flaws.update(dict.fromkeys(rows.tolist(), flaw))
                else:
                    parts.append(Part(group, rows, of_rows, of_group, shape, layout))
        return parts, flaws

    def place(self, parts: Sequence[Part], n: int, width: int) -> Placed:
        """Return the features of the parts as a matrix of n rows and at least `width` columns."""
        if len(parts) == 1 and parts[0].layout.identity and len(parts[0].rows) == n:
            only = parts[0]
            if not only.layout.nominal and not only.features.strings:
                return Placed(only.values())
        placed = Placed(np.full((n, width), np.nan))
        for part in parts:
            self._place_numbers(part, placed)
            for feature in part.features.strings:
                self._refuse_strings(part, feature, placed)
            for feature, attribute in part.layout.nominal:
                self._place_codes(part, feature, attribute, placed)
        placed.new_values.sort(key=lambda each: each[:2])
        return placed

    def new_attributes(self, parts: Sequence[Part]) -> dict[int, list[Attribute]]:
        """Return row → features its model does not know but would take in; rows ascending."""
        found: dict[int, list[Attribute]] = {}
        for part in parts:
            if part.layout.unknown and part.schema.open_attributes:
                store, slots = self._store, part.slots
                takes_in = store.open[slots] & ~store.frozen[slots] & (store.width[slots] < MAX_ATTRIBUTES)
                for feature in part.layout.unknown:
                    for at in np.flatnonzero(part.given(feature) & takes_in).tolist():
                        found.setdefault(int(part.rows[at]), []).append(part.attribute(feature, at))
        return dict(sorted(found.items()))

    def ignored(self, parts: Sequence[Part]) -> Iterator[tuple[str, Ints64, Ints64]]:
        """Yield (feature, rows, their models) where values are given of features the model does not know."""
        for part in parts:
            for feature in part.layout.unknown:
                given = part.given(feature)
                if given.any():
                    assert part.features.names is not None
                    yield part.features.names[feature], part.rows[given], part.slots[given]

    def grow_values(self, placed: Placed, model: Ints64) -> Grown:
        """Give codes to new values of open attributes, in input order; return what did not fit, or hardly.

        model: int64[n] slot of each row. Rows with flaws teach no values.
        """
        store, ignored, full = self._store, 0, []
        for row, attribute, value in placed.new_values:
            if row in placed.flaws:
                continue
            slot = int(model[row])
            schema = store.schema(slot)
            code = schema.value_code(attribute, value)
            if code < 0 and schema.attributes[attribute].open and not store.frozen[slot]:
                schema = schema.with_value(attribute, value)
                code = schema.value_code(attribute, value)
                store.grow(slot, schema)
                if code == MAX_VALUES - 1:
                    full.append((row, schema.attributes[attribute].name))
            if code >= 0:
                placed.x[row, attribute] = code
            else:
                ignored += 1
        return Grown(ignored, full)

    # -- inside ---------------------------------------------------------------------------------------------

    def _by_shape(self, slots: Ints64) -> Iterator[Ints64 | None]:
        """Yield the rows of a group whose models have the same attributes, shape by shape; None: all."""
        if not len(slots):
            return
        uids = self._store.shape_uid[slots]
        if slots.min() >= 0 and (uids == uids[0]).all():
            yield None
            return
        known = np.flatnonzero(slots >= 0)
        order = known[np.argsort(uids[known], kind="stable")]
        for of_group in np.split(order, np.flatnonzero(np.diff(uids[order])) + 1):
            if len(of_group):
                yield of_group

    def _layout(self, group: Features, schema: Schema) -> Layout | None:
        shape = group.values.shape[1] if group.names is None else group.names
        key = (shape, schema.uid)
        if key not in self._layouts:
            if len(self._layouts) >= _LAYOUTS_KEPT:
                self._layouts.clear()
            self._layouts[key] = _layout(shape, schema)
        return self._layouts[key]

    def _place_numbers(self, part: Part, placed: Placed) -> None:
        target = part.layout.target
        if part.layout.unknown:
            known = np.flatnonzero(target >= 0)
            placed.x[part.rows[:, np.newaxis], target[known]] = part.values()[:, known]
        else:
            placed.x[part.rows[:, np.newaxis], target] = part.values()

    def _refuse_strings(self, part: Part, feature: int, placed: Placed) -> None:
        """Note the rows that have a string where the schema has a number."""
        attribute = int(part.layout.target[feature])
        if attribute < 0 or part.schema.attributes[attribute].kind == "nominal":
            return
        name = part.schema.attributes[attribute].name
        for row, cell in zip(part.rows.tolist(), part.strings(feature) or (), strict=True):
            if cell is not None:
                detail = f"feature {name!r} must be a number; got the string {cell[:40]!r}"
                placed.flaws.setdefault(row, (Reason.WRONG_SCHEMA, detail))

    def _place_codes(self, part: Part, feature: int, attribute: int, placed: Placed) -> None:
        """Put codes in the place of the values of a nominal attribute; a number is named by its digits."""
        cells = named(part.values()[:, feature], part.strings(feature))
        codes: dict[str | None, float] = {None: np.nan}
        for cell in set(cells) - {None}:
            assert cell is not None
            code = part.schema.value_code(attribute, cell)
            codes[cell] = code if code >= 0 else np.nan
        column = np.array([codes[cell] for cell in cells])
        placed.x[part.rows, attribute] = column
        unknown = {cell for cell, code in codes.items() if cell is not None and np.isnan(code)}
        if unknown:
            for at in np.flatnonzero(np.isnan(column)).tolist():
                value = cells[at]
                if value is not None:
                    placed.new_values.append((int(part.rows[at]), attribute, value))


def named(values: Floats, strings: list[str | None] | None) -> list[str | None]:
    """Return the cells of a feature as names of nominal values: strings as they are, 1.0 as "1", NaN as None.

    >>> named(np.array([1.0, 0.5, np.nan, np.nan]), [None, None, "red", None])
    ['1', '0.5', 'red', None]
    """
    distinct, code = np.unique(values, return_inverse=True)
    texts = [
        None if np.isnan(v) else str(int(v)) if v.is_integer() else repr(v) for v in map(float, distinct)
    ]
    if strings is None:
        return [texts[i] for i in code.tolist()]
    return [texts[i] if cell is None else cell for i, cell in zip(code.tolist(), strings, strict=True)]


def attribute_of(features: Features, feature: int, row: int) -> Attribute:
    """Return the attribute that a value makes: a number a numeric one, a string an open nominal one.

    row: of the group.
    """
    name = f"f{feature}" if features.names is None else features.names[feature]
    cells = features.strings.get(feature)
    if cells is not None and cells[row] is not None:
        return Attribute(name, "nominal", open=True)
    return Attribute(name)


def infer_schema(features: Features, row: int, max_classes: int) -> Schema:
    """Return the schema of a model's first record (`row` of the group).

    A feature without a value says nothing about its kind: it joins the schema with its first value, if that
    comes before the first split. In arrays the position has to be kept: such a feature is numeric.
    """
    attributes = [attribute_of(features, feature, row) for feature in range(features.values.shape[1])]
    if features.names is not None:
        given = [
            a.kind == "nominal" or not np.isnan(v)
            for a, v in zip(attributes, features.values[row], strict=True)
        ]
        attributes = [a for a, has_value in zip(attributes, given, strict=True) if has_value] or attributes
    return Schema.of(attributes, max_classes=max_classes, open_attributes=True)


def _layout(shape: Names | int, schema: Schema) -> Layout | None:
    if isinstance(shape, int):
        if shape != schema.n_attributes:
            return None
        target = np.arange(shape)
    else:
        place = {name: attribute for attribute, name in enumerate(schema.names)}
        target = np.array([place.get(name, -1) for name in shape], dtype=np.int64)
    kinds = [attribute.kind for attribute in schema.attributes]
    return Layout(
        target,
        identity=len(target) == schema.n_attributes and bool((target == np.arange(len(target))).all()),
        nominal=tuple((f, a) for f, a in enumerate(target.tolist()) if a >= 0 and kinds[a] == "nominal"),
        unknown=tuple(np.flatnonzero(target < 0).tolist()),
    )


def _wrong_length(given: int, schema: Schema) -> tuple[Reason, str]:
    return Reason.WRONG_SCHEMA, (
        f"features has {given} values; it must have {schema.n_attributes}, one per attribute of the model"
    )
