"""Feature placement: named or positional feature values to the columns of the models' schemas.

A *layout* maps one list of feature names to one schema; it is computed once and kept. Usually a run has one
list of names and one schema, the layout is the identity, and the decoded matrix goes to the kernels as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress, repeat
from typing import Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from core.schema.names import Names as KnownValues
from core.schema.schema import MAX_VALUES, Attribute, Columns
from streamapp.worker.task.models.schema_growth import SchemaGrowth
from streamapp.worker.task.models.schemas.schema_inference import attribute_of
from streamapp.worker.task.models.traits import ModelTraits
from topics.columns.records import Features, Floats, Ints32, Ints64
from topics.errors import Reason

MAX_ATTRIBUTES: Final = 4096
"""The most features that an open schema adds; a record with more names has data in its names."""

FEW: Final = 256
"""Fewer new values than this are sorted faster one by one than as columns."""

_LAYOUTS_KEPT: Final = 4096
_FEATURES_KEPT: Final = 1 << 18  # of all layouts that are kept: 20 MB

Names = tuple[str, ...]
Mask = npt.NDArray[np.bool_]


class FeatureLayout(NamedTuple):
    """The columns of one list of feature names in one schema."""

    target: Ints64  # int64[d] attribute of each feature, -1: not in the schema
    identity: bool  # feature j is attribute j, and all attributes are there
    nominal: tuple[tuple[int, int], ...]  # (feature, attribute) of the nominal features
    unknown: tuple[int, ...]  # features that are not in the schema


class Part(NamedTuple):
    """The rows of a group of features whose models have the same attributes."""

    features: Features
    rows: Ints64  # int64[m] rows of the batch
    slots: Ints64  # int64[m] their models
    of_group: Ints64 | None  # int64[m] rows of the group; None: all of them
    columns: Columns  # of the models' schemas
    layout: FeatureLayout

    def values(self) -> Floats:
        """Return float64[m, d]."""
        return self.features.values if self.of_group is None else self.features.values[self.of_group]

    def within(self, keep: Mask) -> Part | None:
        """Return the part with only the rows in keep (bool[n], of the batch); None: no row is left."""
        mine = keep[self.rows]
        if mine.all():
            return self
        if not mine.any():
            return None
        of_group = np.flatnonzero(mine) if self.of_group is None else self.of_group[mine]
        return self._replace(rows=self.rows[mine], slots=self.slots[mine], of_group=of_group)

    def strings(self, feature: int) -> list[str | None] | None:
        """Return the m string cells of a feature, or None if it has none."""
        cells = self.features.strings.get(feature)
        if cells is None or self.of_group is None:
            return cells
        return [cells[row] for row in self.of_group.tolist()]

    def given(self, features: Sequence[int]) -> Mask:
        """Return bool[m, len(features)]: whether the row has a value for each of some features."""
        has_value: Mask = ~np.isnan(self.values()[:, features])
        for at, feature in enumerate(features):
            if feature in self.features.strings:
                has_value[:, at] |= np.array([cell is not None for cell in self.strings(feature) or ()])
        return has_value

    def name(self, feature: int) -> str:
        """Return the name of a feature."""
        assert self.features.names is not None
        return self.features.names[feature]

    def attribute(self, feature: int, at: int) -> Attribute:
        """Return the attribute for the value of a feature in row `at` of the part."""
        return attribute_of(self.features, feature, at if self.of_group is None else int(self.of_group[at]))


class NewValues(NamedTuple):
    """Cells of a nominal attribute whose values have no code."""

    attribute: int
    rows: Ints64  # int64[k], ascending
    values: list[str]  # k

    def within(self, keep: Mask) -> NewValues:
        """Return the cells at which keep (bool[k]) is true."""
        if keep.all():
            return self
        return NewValues(self.attribute, self.rows[keep], list(compress(self.values, keep.tolist())))


class NewAttribute(NamedTuple):
    """An attribute that a model would add to its schema."""

    row: int  # of the batch, from which on the model has it
    attribute: Attribute


class _Begin(NamedTuple):
    """The first value of an unknown feature, for a model and in a part."""

    row: int  # of the batch
    place: int  # among the unknown features of the part
    part: Part
    of_part: int  # the row, counted in the part


@dataclass(slots=True)
class Placed:
    """Features in the models' columns."""

    x: Floats  # float64[n, D]; NaN where missing, codes where nominal
    flaws: dict[int, tuple[Reason, str]] = field(default_factory=dict)  # row -> its flaw
    new_values: list[NewValues] = field(default_factory=list)


class Grown(NamedTuple):
    """The results of coding new values of nominal attributes."""

    ignored: int  # values that stay without a code
    full: list[tuple[int, str]]  # attributes that have received their last value: row and name


class Placement:
    """Places features; keeps the layouts."""

    def __init__(
        self, traits: ModelTraits, growth: SchemaGrowth, max_attributes: int = MAX_ATTRIBUTES
    ) -> None:
        """`max_attributes`: limit for a model that adds new features to its schema."""
        self._traits, self._growth = traits, growth
        self.max_attributes = max_attributes
        self._layouts: dict[tuple[Names | int, int], FeatureLayout | None] = {}
        self._layouts_width = 0  # features of all of them

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
            for of_group in self._by_columns(slots):
                rows, of_rows = (
                    (group.rows, slots) if of_group is None else (group.rows[of_group], slots[of_group])
                )
                columns = self._traits.schema(int(of_rows[0])).columns
                layout = self._layout(group, columns)
                if layout is None:
                    flaw = _wrong_length(group.values.shape[1], columns)
                    flaws.update(dict.fromkeys(rows.tolist(), flaw))
                else:
                    parts.append(Part(group, rows, of_rows, of_group, columns, layout))
        return parts, flaws

    def is_in_place(self, features: Features, columns: Columns) -> bool:
        """Return whether a group's values can be used unchanged: one number for each column, in order."""
        if features.strings:
            return False
        layout = self._layout(features, columns)
        return layout is not None and layout.identity and not layout.nominal

    def has_layout(self, features: Features, columns_uid: int) -> bool:
        """Return whether the layout of a group's names in a schema's columns is kept."""
        shape = features.values.shape[1] if features.names is None else features.names
        return (shape, columns_uid) in self._layouts

    def place(self, parts: Sequence[Part], n: int, width: int) -> Placed:
        """Return the features of the parts as a matrix of n rows and at least `width` columns.

        Rows that belong to no part have arbitrary values.
        """
        if len(parts) == 1 and parts[0].layout.identity and len(parts[0].rows) == n:
            only = parts[0]
            if not only.layout.nominal and not only.features.strings:
                return Placed(only.values())
        # If the batch has many rows and only a few are placed, the memory of the remaining rows is never
        # touched.
        placed = Placed(np.empty((n, width)))
        for part in parts:
            placed.x[part.rows] = np.nan
            self._place_numbers(part, placed)
            for feature in part.features.strings:
                self._refuse_strings(part, feature, placed)
            for feature, attribute in part.layout.nominal:
                self._place_codes(part, feature, attribute, placed)
        return placed

    def new_attributes(self, parts: Sequence[Part], record: Ints32) -> dict[int, list[NewAttribute]]:
        """Return slot → the features that its model lacks but would add to its schema, in their order.

        The new features of all rows of a record come together, at the first row that has one, up to the free
        room. record: int32[n] of each row; a record's rows are of one part, because they share key and
        layout.
        """
        traits, begins_of = self._traits, dict[int, list[_Begin]]()
        for part in parts:
            if not part.layout.unknown or not part.columns.open:
                continue
            slots = part.slots
            takes_in = (
                traits.open[slots] & ~traits.frozen[slots] & (traits.width[slots] < self.max_attributes)
            )
            if np.count_nonzero(takes_in):
                has_value = part.given(part.layout.unknown) & takes_in[:, np.newaxis]
                for slot, begins in _begins(part, has_value):
                    begins_of.setdefault(slot, []).extend(begins)
        return {
            slot: _taken(begins, record, self.max_attributes - int(traits.width[slot]))
            for slot, begins in begins_of.items()
        }

    def ignored(self, parts: Sequence[Part]) -> Iterator[tuple[Part, Mask]]:
        """Yield parts with unknown features, and bool[m, u]: where values of these are given."""
        for part in parts:
            if part.layout.unknown:
                has_value = part.given(part.layout.unknown)
                if has_value.any():
                    yield part, has_value

    def grow_values(self, placed: Placed, model: Ints64) -> Grown:
        """Give codes to new values of open attributes, in input order; return failures and full attributes.

        model: int64[n] slot of each row. Values in rows with flaws get no codes.
        """
        traits, flawed = self._traits, [*placed.flaws]
        cells = [new_values.within(~np.isin(new_values.rows, flawed)) for new_values in placed.new_values]
        first = _first_rows(cells, model)
        new = {slot: self._taken_in(slot, rows_of) for slot, rows_of in first.items()}
        ordered = {slot: _ordered(rows_of) for slot, rows_of in new.items() if rows_of}
        full: list[tuple[int, int, str]] = []
        for slot, cells_of in sorted(
            ordered.items(), key=lambda item: item[1][0]
        ):  # in the order of their first rows
            before = traits.schema(slot)
            after = before.with_values((attribute, value) for _, attribute, value in cells_of)
            if after is before:
                continue
            self._growth.grow(slot, after)
            for attribute, rows in new[slot].items():
                old, now = before.attributes[attribute], after.attributes[attribute]
                if len(old.values) < len(now.values) == MAX_VALUES:
                    full.append((rows[now.values[-1]], attribute, now.name))
        ignored = sum(self._place_new(new_values, model, placed.x) for new_values in cells)
        return Grown(ignored, [(row, name) for row, _, name in sorted(full)])

    # -- inside ---------------------------------------------------------------------------------------------

    def _taken_in(self, slot: int, rows_of: dict[int, dict[str, int]]) -> dict[int, dict[str, int]]:
        """Return the new values (attribute → value → row) for which a model may have room."""
        if self._traits.frozen[slot]:
            return {}
        attributes = self._traits.schema(slot).attributes
        return {
            attribute: rows
            for attribute, rows in rows_of.items()
            if attributes[attribute].open and len(attributes[attribute].values) < MAX_VALUES
        }

    def _place_new(self, cells: NewValues, model: Ints64, x: Floats) -> int:
        """Put codes where values have a code by now, else -1; return the number of values without code.

        For a model -1 is a missing value; an input detector counts it as an unseen value.
        """
        attribute, rows, values = cells
        slots = model[rows].tolist()
        known_of = {
            slot: self._traits.schema(slot).attributes[attribute].codes for slot in dict.fromkeys(slots)
        }
        if len(known_of) == 1:
            (codes_of_names,) = known_of.values()
            codes = np.array(_codes_of(codes_of_names, values), dtype=np.float64)
        else:
            found_codes = (known_of[slot].code(value) for slot, value in zip(slots, values, strict=True))
            codes = np.fromiter(found_codes, np.float64, len(values))
        x[rows, attribute] = codes
        return len(codes) - int(np.count_nonzero(codes >= 0))

    def _by_columns(self, slots: Ints64) -> Iterator[Ints64 | None]:
        """Yield the rows of a group whose models have the same columns, set after set; None: all rows."""
        if not len(slots):
            return
        uids = self._traits.columns_uid[slots]
        if slots.min() >= 0 and np.count_nonzero(uids == uids[0]) == len(uids):
            yield None
            return
        with_model = np.flatnonzero(slots >= 0)
        order = with_model[np.argsort(uids[with_model], kind="stable")]
        for of_group in np.split(order, np.flatnonzero(np.diff(uids[order])) + 1):
            if len(of_group):
                yield of_group

    def _layout(self, group: Features, columns: Columns) -> FeatureLayout | None:
        shape = group.values.shape[1] if group.names is None else group.names
        key = (shape, columns.uid)
        if key not in self._layouts:
            width = group.values.shape[1]
            if len(self._layouts) >= _LAYOUTS_KEPT or self._layouts_width + width > _FEATURES_KEPT:
                self._layouts.clear()
                self._layouts_width = 0
            self._layouts[key] = _layout(shape, columns)
            self._layouts_width += width
        return self._layouts[key]

    def _place_numbers(self, part: Part, placed: Placed) -> None:
        target = part.layout.target
        if part.layout.unknown:
            placed_features = np.flatnonzero(target >= 0)
            placed.x[part.rows[:, np.newaxis], target[placed_features]] = part.values()[:, placed_features]
        else:
            placed.x[part.rows[:, np.newaxis], target] = part.values()

    def _refuse_strings(self, part: Part, feature: int, placed: Placed) -> None:
        """Note the rows that have a string where the schema has a number."""
        attribute = int(part.layout.target[feature])
        if attribute < 0 or part.columns.attributes[attribute].kind == "nominal":
            return
        name = part.columns.attributes[attribute].name
        for row, cell in zip(part.rows.tolist(), part.strings(feature) or (), strict=True):
            if cell is not None:
                detail = f"feature {name!r} must be a number; got the string {cell[:40]!r}"
                placed.flaws.setdefault(row, (Reason.WRONG_SCHEMA, detail))

    def _place_codes(self, part: Part, feature: int, attribute: int, placed: Placed) -> None:
        """Put codes in the place of the values of a nominal attribute; a number's digits are its name."""
        cells = named(part.values()[:, feature], part.strings(feature))
        distinct = dict.fromkeys(cells)
        distinct.pop(None, None)
        texts = cast(list[str], [*distinct])
        codes: dict[str | None, float] = {None: np.nan}
        codes.update(zip(texts, _codes_of(part.columns.attributes[attribute].codes, texts), strict=True))
        column = np.fromiter(map(codes.__getitem__, cells), np.float64, len(cells))
        unknown = np.flatnonzero(column < 0)
        if len(unknown):
            column[unknown] = np.nan
            values = cast(list[str], [cells[at] for at in unknown.tolist()])
            placed.new_values.append(NewValues(attribute, part.rows[unknown], values))
        placed.x[part.rows, attribute] = column


def _first_rows(cells: Sequence[NewValues], model: Ints64) -> dict[int, dict[int, dict[str, int]]]:
    """Return slot → attribute → value → the first row that has it."""
    first: dict[int, dict[int, dict[str, int]]] = {}
    for attribute, rows, values in cells:
        slots = model[rows]
        if len(slots) and (slots == slots[0]).all():
            of_slot = first.setdefault(int(slots[0]), {})
            if attribute not in of_slot:  # else another part has added some
                # Reversed, so that the first row of a value overwrites later rows.
                of_slot[attribute] = dict(zip(reversed(values), reversed(rows.tolist()), strict=True))
                continue
        for slot, row, value in zip(slots.tolist(), rows.tolist(), values, strict=True):
            first_rows = first.setdefault(slot, {}).setdefault(attribute, {})
            if first_rows.setdefault(value, row) > row:
                first_rows[value] = row
    return first


def _ordered(new: dict[int, dict[str, int]]) -> list[tuple[int, int, str]]:
    """Return row, attribute and value of new values (attribute → value → first row) as they came."""
    cells = [(row, attribute, value) for attribute, rows in new.items() for value, row in rows.items()]
    if len(cells) < FEW:
        return sorted(cells)
    order = np.lexsort(([attribute for _, attribute, _ in cells], [row for row, _, _ in cells]))
    return [cells[at] for at in order.tolist()]


def _codes_of(names: KnownValues, texts: Sequence[str]) -> list[int]:
    """Return the code of each text, -1 where it is unknown; in one call if there are many."""
    if 4 * len(texts) < len(names):
        return list(map(names.code, texts))
    codes = dict(zip(names.texts, range(len(names)), strict=True))
    return list(map(codes.get, texts, repeat(-1)))


def named(values: Floats, strings: list[str | None] | None) -> list[str | None]:
    """Return the cells of a feature as names of nominal values: strings as they are, 1.0 as "1", NaN as None.

    >>> named(np.array([1.0, 0.5, np.nan, np.nan]), [None, None, "red", None])
    ['1', '0.5', 'red', None]
    """
    if strings is not None and np.isnan(values).all():
        return strings
    distinct, code = np.unique(values, return_inverse=True)
    texts = [
        None if np.isnan(v) else str(int(v)) if v.is_integer() else repr(v) for v in map(float, distinct)
    ]
    if strings is None:
        return [texts[i] for i in code.tolist()]
    return [texts[i] if cell is None else cell for i, cell in zip(code.tolist(), strings, strict=True)]


def _begins(part: Part, has_value: Mask) -> Iterator[tuple[int, list[_Begin]]]:
    """Yield each model of a part with values of unknown features, and where each feature begins.

    has_value: bool[m, u], where the rows of the part have values of its u unknown features.
    """
    rows = np.flatnonzero(has_value.any(axis=1))
    rows = rows[np.argsort(part.slots[rows], kind="stable")]
    for mine in np.split(rows, np.flatnonzero(np.diff(part.slots[rows])) + 1) if len(rows) > 1 else [rows]:
        if not len(mine):
            continue
        cells = has_value[mine]
        first = mine[np.argmax(cells, axis=0)].tolist()
        places = np.flatnonzero(cells.any(axis=0)).tolist()
        of_batch = part.rows
        begins = [_Begin(int(of_batch[first[place]]), place, part, first[place]) for place in places]
        yield int(part.slots[mine[0]]), begins


def _taken(begins: list[_Begin], record: Ints32, room: int) -> list[NewAttribute]:
    """Return the attributes that a model adds, in the order in which their first values come."""
    added: dict[str, NewAttribute] = {}
    of_record, row = -1, -1
    for begin in sorted(begins, key=lambda item: item[:2]):
        if len(added) == room:
            break
        feature = begin.part.layout.unknown[begin.place]
        name = begin.part.name(feature)
        if name not in added:
            if record[begin.row] != of_record:
                of_record, row = int(record[begin.row]), begin.row
            added[name] = NewAttribute(row, begin.part.attribute(feature, begin.of_part))
    return [*added.values()]


def _layout(shape: Names | int, columns: Columns) -> FeatureLayout | None:
    width = len(columns.attributes)
    if isinstance(shape, int):
        if shape != width:
            return None
        target = np.arange(shape)
    else:
        target = np.array(_codes_of(columns.name_codes, shape), dtype=np.int64)
    places = list(enumerate(target.tolist())) if columns.nominal else []
    kinds = columns.attributes
    return FeatureLayout(
        target,
        identity=len(target) == width and bool((target == np.arange(width)).all()),
        nominal=tuple((f, a) for f, a in places if a >= 0 and kinds[a].kind == "nominal"),
        unknown=tuple(np.flatnonzero(target < 0).tolist()),
    )


def _wrong_length(n_values: int, columns: Columns) -> tuple[Reason, str]:
    return Reason.WRONG_SCHEMA, (
        f"features has {n_values} values; it must have {len(columns.attributes)}, "
        "one per attribute of the model"
    )
