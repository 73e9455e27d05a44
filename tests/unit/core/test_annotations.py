"""Annotations of core: all that mypy can check; words and arrays of kernels are numba's to infer."""

import ast
from pathlib import Path

import pytest

import core

FILES = sorted(Path(core.__file__).parent.rglob("*.py"))


def is_compiled(node):
    decorators = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return any(ast.unparse(each).rpartition(".")[2] in ("kernel", "called") for each in decorators)


def missing(node):
    """Return what of a function has no annotation and should have one."""
    given = node.args
    first = given.args[:1] if given.args and given.args[0].arg in ("self", "cls") else []
    parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    bare = [each.arg for each in parameters if each is not None and each.annotation is None]
    bare = [] if is_compiled(node) else [name for name in bare if name not in {each.arg for each in first}]
    return bare + ["return"] * (node.returns is None)


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(FILES[0].parent)) for path in FILES])
def test_every_function_is_annotated(path):
    functions = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef))
    assert {node.name: missing(node) for node in functions if missing(node)} == {}
