"""Data sets for learners: a file or generator by its address, and a schema that grows with the data."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from core.errors import TooManyClassesError
from core.json_text import read_json
from core.learners.protocol import Learner
from core.schema.schema import MAX_VALUES, Attribute, Schema
from core.streams.base import SCHEME, parse_address
from streamapp.errors import UsageError

if TYPE_CHECKING:
    from core.streams.base import Generator
    from topics.readers import Batch, Dataset, Kind

Format = Literal["arff", "libsvm", "csv", "parquet", "arrow"]


class GeneratedDataset:
    """A synthetic stream as a data set (`topics.readers.Dataset`), with n rows and declared values."""

    classes_open = False

    def __init__(self, generator: Generator, rows: int) -> None:
        self._generator = generator
        self.rows: int = rows

    @property
    def names(self) -> tuple[str, ...]:
        return self._generator.schema.names

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return tuple(attribute.kind for attribute in self._generator.schema.attributes)

    @property
    def values(self) -> tuple[tuple[str, ...], ...]:
        return tuple(attribute.values for attribute in self._generator.schema.attributes)

    @property
    def open(self) -> tuple[bool, ...]:
        return (False,) * len(self.names)

    @property
    def classes(self) -> tuple[str, ...]:
        return self._generator.schema.classes

    def batches(self, size: int = 8192, start: int = 0) -> Iterator[Batch]:
        """Yield (x float64[m, d], y int32[m]) from row `start` on."""
        return self._generator.batches(max(0, self.rows - start), size, start=start)


def open_data(
    address: str,
    rows: int | None = None,
    *,
    form: Format | None = None,
    target: str | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    ignore: Sequence[str] | None = None,
    nominal: Sequence[str] | None = None,
    skip_lines: int | None = None,
    missing: Sequence[str] | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    quotes: bool | None = None,
    zero_based: bool = False,
    bounded_by: str = "",
) -> Dataset:
    """Open `gen:NAME?option=value&n=…`, or files (commas between them); `rows` bounds a generator.

    target, ignore, nominal: columns by name, or by index if no column has that name;
    `topics.readers.open_dataset` documents further options. bounded_by: the option that sets `rows`, for
    the error if it is missing. Raises UsageError for an option of files with a generator, which declares
    its columns itself.
    """
    if address.startswith(SCHEME):
        file_options = {
            "--format": form is not None,
            "--target": target is not None,
            "--header/--no-header": header is not None,
            "--delimiter": delimiter is not None,
            "--ignore": bool(ignore),
            "--nominal": bool(nominal),
            "--skip-lines": skip_lines is not None,
            "--missing": bool(missing),
            "--decimal": decimal is not None,
            "--thousands": thousands is not None,
            "--quotes/--no-quotes": quotes is not None,
            "--zero-based": zero_based,
        }
        if useless := [option for option, is_given in file_options.items() if is_given]:
            message = f"{', '.join(useless)} must be left out with --data {address}: they are for files"
            raise UsageError(message)
        generator, n = parse_address(address)
        count = rows if n is None else min(n, rows or n)
        if count is None:
            joint = "&" if "?" in address else "?"
            or_give = f" or give {bounded_by}" if bounded_by else ""
            message = f"--data {address} never ends; write {address}{joint}n=1000000{or_give}"
            raise UsageError(message)
        return GeneratedDataset(generator, count)
    from topics.readers import open_dataset

    paths = [Path(part) for part in address.split(",")] if not Path(address).exists() else [Path(address)]
    return open_dataset(
        paths,
        format=form,
        target=target,
        header=header,
        delimiter=delimiter,
        ignore=list(ignore or ()),
        nominal=list(nominal or ()),
        skip_lines=skip_lines,
        missing=missing or None,
        decimal=decimal,
        thousands=thousands,
        quotes=quotes,
        zero_based=zero_based,
    )


def check_attributes(dataset: Dataset) -> None:
    """Refuse a data set without columns to learn from."""
    if not dataset.names:
        message = "the data set has no attribute beside the class; name one with at least one"
        raise UsageError(message)


SHOWN: Final = 20
"""Names that a message lists, at most."""
DECLARED: Final = ("range", "cost", "thresholds")
"""Properties of attributes that a data set itself does not declare."""
Declared = Mapping[str, Mapping[str, Any]]
"""These properties, by the names of attributes, in the form of `Attribute`."""


def read_declared(text_or_file: str) -> Declared:
    """Return the properties of attributes from `--schema`; text_or_file: JSON text, or `@FILE` with JSON."""
    try:
        text = (
            Path(text_or_file[1:]).read_text(encoding="utf-8")
            if text_or_file.startswith("@")
            else text_or_file
        )
        body = read_json(text)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        message = (
            f"--schema {text_or_file}: cannot be read ({reason}); give JSON, or @ and the name of a file"
        )
        raise UsageError(message) from None
    attributes = body.get("attributes") if isinstance(body, dict) else None
    if not isinstance(attributes, list) or set(body) != {"attributes"}:
        message = (
            f"--schema {text_or_file} must be an object with 'attributes' alone, a list; "
            'for example {"attributes": [{"name": "age", "range": [0, 120], "cost": 2.5}]}'
        )
        raise UsageError(message)
    declared: dict[str, dict[str, Any]] = {}
    for attribute in attributes:
        name = attribute.get("name") if isinstance(attribute, dict) else None
        if not isinstance(name, str) or name in declared or not set(attribute) <= {"name", *DECLARED}:
            message = (
                f"--schema: attribute {attribute!r} must have its own 'name', and no other members than "
                f"{', '.join(DECLARED)}; the rest follows from the data set"
            )
            raise UsageError(message)
        declared[name] = {
            member: _numbers(name, member, attribute[member]) for member in DECLARED if member in attribute
        }
    return declared


def _numbers(name: str, member: str, value: Any) -> Any:
    """Return a cost as a number, a range or thresholds as numbers; `Attribute` checks the rest."""
    numbers = [value] if member == "cost" else value
    length = 2 if member == "range" else None
    if not isinstance(numbers, list) or any(type(number) not in (int, float) for number in numbers):
        numbers = None
    if numbers is None or (length is not None and len(numbers) != length):
        rules = {"cost": "a number", "range": "a list of two numbers", "thresholds": "a list of numbers"}
        message = f"--schema: {member}={value!r} of attribute {name!r} must be {rules[member]}"
        raise UsageError(message)
    return float(value) if member == "cost" else tuple(map(float, numbers))


class FollowingSchema:
    """The schema of a data set whose values and classes are found while it is read."""

    def __init__(
        self,
        dataset: Dataset,
        max_classes: int,
        declared: Declared | None = None,
        learner: Learner | None = None,
    ) -> None:
        """Begin with the declarations of the data set.

        `declared`: further properties of attributes. `learner`: the learner that uses the schema; its
        SchemaError has the reason if it takes no more classes.
        """
        self._dataset = dataset
        check_attributes(dataset)
        attributes = [
            Attribute(name, kind, () if is_open else values, is_open)
            for name, kind, values, is_open in zip(
                dataset.names, dataset.kinds, dataset.values, dataset.open, strict=True
            )
        ]
        declared = declared or {}
        if unknown := [name for name in declared if name not in dataset.names]:
            message = (
                f"--schema: attribute {unknown[0]!r} must be one of the data set's: "
                f"{', '.join(dataset.names[:SHOWN])}{', …' if len(dataset.names) > SHOWN else ''}"
            )
            raise UsageError(message)
        attributes = [
            dataclasses.replace(attribute, **declared[attribute.name])
            if attribute.name in declared
            else attribute
            for attribute in attributes
        ]
        self._learner = learner
        self.overfull: dict[str, int] = {}
        """For attributes with more values than a schema may have: number of values that were met."""
        self._open = [column for column, is_open in enumerate(dataset.open) if is_open]
        self.current = Schema.of(
            attributes,
            () if dataset.classes_open else dataset.classes,
            max_classes=max(max_classes, 0 if dataset.classes_open else len(dataset.classes)),
            classes_open=dataset.classes_open,
        )

    def follow(self, batch: Batch) -> Schema:
        """Add the values and classes of this batch; values beyond the schema's limit become NaN."""
        x, _ = batch
        schema, values = self.current, self._dataset.values
        schema = schema.with_values(
            (column, value)
            for column in self._open
            for value in values[column][len(schema.attributes[column].values) : MAX_VALUES]
        )
        for column in self._open:
            n_known = len(schema.attributes[column].values)
            if n_known < len(values[column]):
                self.overfull[schema.attributes[column].name] = len(values[column])
                cells = x[:, column]
                cells[cells >= n_known] = np.nan
        for label in self._dataset.classes[schema.n_classes :]:
            try:
                schema = schema.with_class(label)
            except TooManyClassesError:
                if self._learner is not None:
                    # A learner for two classes refuses the third, and a larger max_classes would not help.
                    self._learner.check_schema(Schema.of(schema.attributes, (*schema.classes, label)))
                message = (
                    f"max_classes={schema.max_classes} must be at least the classes of the data "
                    f"set; {label!r} is number {schema.n_classes + 1}: raise it, or choose another --target"
                )
                raise UsageError(message) from None
        self.current = schema
        return schema
