"""Mutants of a module: places where one operator, bound, constant or word is changed, as text.

With `statements` also places where a statement that has an effect is left out: a call, an assignment to an
attribute, an early return.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

OPERATORS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
NAMES = {"min": "max", "max": "min"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, order=True)
class Mutant:
    """One change of one line: ``before`` at a column (in bytes) becomes ``after``."""

    file: str
    line: int
    column: int
    before: str
    after: str

    @property
    def key(self) -> str:
        """A name that stays as long as the place does."""
        return f"{self.file}:{self.line}:{self.column}:{self.before}:{self.after}"

    @property
    def rank(self) -> str:
        """Where it comes in a sample: an order without any sense, the same every time."""
        return hashlib.sha256(self.key.encode()).hexdigest()

    def apply(self, source: str) -> str:
        """Return the module's text with the change."""
        lines = source.splitlines(keepends=True)
        text = lines[self.line - 1].encode()
        end = self.column + len(self.before.encode())
        assert text[self.column : end].decode() == self.before, self
        lines[self.line - 1] = (text[: self.column] + self.after.encode() + text[end:]).decode()
        return "".join(lines)


def mutants_of(file: str, source: str, *, statements: bool = False) -> list[Mutant]:
    """Return all mutants of a module's text, in their order."""
    lines = [line.encode() for line in source.splitlines()]
    tree = ast.parse(source)
    mutants = set(_found(file, lines, tree, False))
    if statements:
        mutants.update(_without_statements(file, lines, tree))
    return sorted(mutants)


def _without_statements(file: str, lines: list[bytes], tree: ast.Module) -> Iterator[Mutant]:
    """Find the statements inside of functions that stand on one line and can be left out."""
    for function in ast.walk(tree):
        if isinstance(function, _FUNCTIONS):
            for node in ast.walk(function):
                if isinstance(node, ast.stmt) and node.lineno == node.end_lineno and _has_effect(node):
                    before = lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode()
                    yield Mutant(file, node.lineno, node.col_offset, before, "pass")


def _has_effect(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        value = node.value.value if isinstance(node.value, ast.Await) else node.value
        is_echo = isinstance(value, ast.Call) and ast.unparse(value.func) == "typer.echo"
        return isinstance(value, ast.Call) and not _is_log(value) and not is_echo
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
    return isinstance(node, ast.AugAssign | ast.Continue) or (
        isinstance(node, ast.Return) and node.value is None
    )


def _is_log(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).startswith("logger.")


def _found(file: str, lines: list[bytes], node: ast.AST, inside: bool) -> Iterator[Mutant]:
    for child in _children(node, inside):
        within = inside or isinstance(child, _FUNCTIONS)
        if inside:
            yield from _of_operator(file, lines, child)
        if inside or isinstance(
            node, ast.Assign | ast.AnnAssign
        ):  # tunables of a module; no positions, names
            yield from _of_constant(file, lines, child, inside)
        yield from _found(file, lines, child, within)


def _children(node: ast.AST, inside: bool) -> Iterator[ast.AST]:
    """Yield what is executed below a node: no annotations, decorators, docstrings, messages."""
    if isinstance(node, ast.JoinedStr | ast.Raise) or _is_log(node):
        return
    if isinstance(node, ast.keyword) and node.arg == "strict":  # zip(…, strict=True) only asserts
        return
    if isinstance(node, _FUNCTIONS):
        yield from node.body
    elif isinstance(node, ast.AnnAssign):
        if node.value is not None:
            yield node.value
    elif not (isinstance(node, ast.Call) and not inside):  # count(…), number(…): declarations
        yield from ast.iter_child_nodes(node)


def _of_operator(file: str, lines: list[bytes], node: ast.AST) -> Iterator[Mutant]:
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
            yield from _between(file, lines, left, right, operator)
    elif isinstance(node, ast.BinOp):
        yield from _between(file, lines, node.left, node.right, node.op)
    elif isinstance(node, ast.AugAssign):
        yield from _between(file, lines, node.target, node.value, node.op)
    elif isinstance(node, ast.BoolOp):
        for left, right in zip(node.values, node.values[1:], strict=False):
            yield from _between(file, lines, left, right, node.op)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield Mutant(file, node.lineno, node.col_offset, "not ", "")
    elif isinstance(node, ast.Name) and node.id in NAMES and isinstance(node.ctx, ast.Load):
        yield Mutant(file, node.lineno, node.col_offset, node.id, NAMES[node.id])


def _between(
    file: str, lines: list[bytes], left: ast.expr, right: ast.expr, operator: ast.AST
) -> Iterator[Mutant]:
    """Find an operator between its two sides, on whichever line it stands."""
    if type(operator) not in OPERATORS:
        return
    before, after = OPERATORS[type(operator)]
    line, start = left.end_lineno or left.lineno, left.end_col_offset or 0
    while line <= right.lineno:
        end = right.col_offset if line == right.lineno else len(lines[line - 1])
        at = lines[line - 1].find(before.encode(), start, end)
        if at >= 0:
            yield Mutant(file, line, at, before, after)
            return
        line, start = line + 1, 0


def _of_constant(file: str, lines: list[bytes], node: ast.AST, inside: bool) -> Iterator[Mutant]:
    if not isinstance(node, ast.Constant):
        return
    text = lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode()
    value = node.value
    if isinstance(value, bool):
        yield Mutant(file, node.lineno, node.col_offset, text, str(not value))
    elif isinstance(value, int) and inside:
        yield Mutant(file, node.lineno, node.col_offset, text, str(value + 1))
    elif isinstance(value, float):
        yield Mutant(file, node.lineno, node.col_offset, text, repr(value * 2.0 if value else 1.0))
