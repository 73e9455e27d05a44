"""Rows as text: CSV, ARFF, LIBSVM. Numbers are written so that reading gives the same float64 again."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from core.schema.schema import Schema

Floats = npt.NDArray[np.float64]
Classes = npt.NDArray[np.int32]
Lines = Callable[["Schema", Floats, Classes], Iterator[str]]

CLASS = "class"

_ARFF_ESCAPES = str.maketrans({"\\": r"\\", "'": r"\'", "\n": r"\n", "\r": r"\r"})


def csv_header(schema: "Schema") -> str:
    """Names of attributes and class, in one line."""
    return ",".join(map(_csv_quoted, [*schema.names, CLASS])) + "\n"


def csv_lines(schema: "Schema", x: Floats, y: Classes) -> Iterator[str]:
    """One line for each row; the class is the last column, a missing value is empty."""
    classes = [_csv_quoted(name) for name in schema.classes]
    columns = [_cells(schema, x, column, "", _csv_quoted) for column in range(x.shape[1])]
    for row in zip(*columns, (classes[code] for code in y.tolist()), strict=True):
        yield ",".join(row) + "\n"


def arff_header(schema: "Schema", relation: str) -> str:
    """`@relation`, an `@attribute` for each column, `@data`."""
    lines = [f"@relation {_arff_quoted(relation)}", ""]
    for attribute in schema.attributes:
        kind = "numeric" if attribute.kind == "numeric" else _arff_values(attribute.values)
        lines.append(f"@attribute {_arff_quoted(attribute.name)} {kind}")
    lines += [f"@attribute {CLASS} {_arff_values(schema.classes)}", "", "@data", ""]
    return "\n".join(lines)


def arff_lines(schema: "Schema", x: Floats, y: Classes) -> Iterator[str]:
    """One line for each row; a missing value is `?`."""
    classes = [_arff_quoted(name) for name in schema.classes]
    columns = [_cells(schema, x, column, "?", _arff_quoted) for column in range(x.shape[1])]
    for row in zip(*columns, (classes[code] for code in y.tolist()), strict=True):
        yield ",".join(row) + "\n"


def libsvm_lines(schema: "Schema", x: Floats, y: Classes) -> Iterator[str]:
    """`label index:value …`, indices from 1, without zeros; texts of values and classes are codes."""
    named = all(re.fullmatch(r"[+-]?\d+(\.\d+)?", name) for name in schema.classes)
    classes = list(schema.classes) if named else [str(code) for code in range(schema.n_classes)]
    columns = [_numbers(x[:, column]) for column in range(x.shape[1])]
    for row, code in zip(zip(*columns, strict=True), y.tolist(), strict=True):
        cells = [f"{index}:{cell}" for index, cell in enumerate(row, 1) if cell not in ("0", "0.0")]
        yield " ".join([classes[code], *cells]) + "\n"


def _cells(schema: "Schema", x: Floats, column: int, missing: str, quoted: Callable[[str], str]) -> list[str]:
    attribute = schema.attributes[column]
    if attribute.kind == "nominal":
        values = [quoted(value) for value in attribute.values]
        return [values[int(code)] if code >= 0 else missing for code in x[:, column].tolist()]
    cells = _numbers(x[:, column])
    return [missing if cell == "nan" else cell for cell in cells]


def _numbers(column: Floats) -> list[str]:
    """Shortest text of each value; without a decimal point if all values of the column are whole numbers."""
    if np.all(column == np.trunc(column)) and np.all(np.abs(column) < 2**53):
        return list(map(str, column.astype(np.int64).tolist()))
    return list(map(repr, column.tolist()))


def _csv_quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if re.search(r'[",\r\n]|^\s|\s$|^$', text) else text


def _arff_quoted(text: str) -> str:
    """Return a name or value in Weka's quotes, which must be closed on the same line."""
    if re.fullmatch(r"[^\x00-\x20\s,{}'\"%\\?]+", text):
        return text
    return "'" + text.translate(_ARFF_ESCAPES) + "'"


def _arff_values(values: Sequence[str]) -> str:
    return "{" + ",".join(map(_arff_quoted, values)) + "}"
