"""Changes an imported module in place: its functions receive the code of a mutant."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterator
from types import CodeType, FunctionType

from tests.mutants.mutation import Mutant

Place = tuple[str, int]


class LoadedFunctions:
    """The functions of all imported modules by their file, also those of classes, wrapped and nested ones."""

    def __init__(self) -> None:
        self._of: defaultdict[str, list[FunctionType]] = defaultdict(list)
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType):
                self._of[thing.__code__.co_filename].append(thing)

    def changes(self, path: str, text: str, mutant: Mutant) -> list[tuple[FunctionType, CodeType]]:
        """Return the functions that hold a mutant's line, with their changed code.

        None if the change takes effect only when the module is imported: it lies outside of functions, or in
        one that has the name and the line of another (two lambdas).
        """
        before = _codes(compile(text, path, "exec"))
        after = _codes(compile(mutant.apply(text), path, "exec"))
        changed = {place for place, codes in before.items() if codes != after.get(place)}
        if any(len(before[place]) > 1 or place not in after for place in changed):
            return []
        pairs = []
        for function in self._of[path]:
            place = (function.__code__.co_qualname, function.__code__.co_firstlineno)
            if place in changed:
                pairs.append((function, after[place][0]))
        if any(code.co_freevars != function.__code__.co_freevars for function, code in pairs):
            return []
        return pairs


def _codes(module: CodeType) -> dict[Place, list[CodeType]]:
    """Return the codes of a module's functions by name and first line, without the bodies of classes."""
    places: defaultdict[Place, list[CodeType]] = defaultdict(list)
    for code in _inside(module):
        if code.co_flags & 0x2:  # CO_NEWLOCALS: a function, and no class's body
            places[code.co_qualname, code.co_firstlineno].append(code)
    return dict(places)


def _inside(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inside(constant)
