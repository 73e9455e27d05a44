"""Which changes `make mutants` makes of a module, and that they are changes of what runs."""

import ast
import itertools
from types import ModuleType

import pytest

from tests.mutants.closest import closest_tests
from tests.mutants.mutation import mutants_of
from tests.mutants.swap import LoadedFunctions

SOURCE = '''"""1 + 1 in a docstring."""
LIMIT: Final = 0.5
FIRST: Final = 3


@kernel("void(float64[::1], 7)")
def least(x: "1 < 2", n: int = 4) -> int:
    """Return 5 < 6."""
    best = 0
    for i in range(1, n):
        if x[i] < x[best] and not (
            x[i] == LIMIT
        ):
            best = i
    if n // 2 >= FIRST:
        raise ValueError(f"{n + 1} must be below {8}")
    return min(best, n) * 2
'''
EXPECTED = [
    (2, "0.5", "1.0"),
    (9, "0", "1"),
    (10, "1", "2"),
    (11, "<", "<="),
    (11, "and", "or"),
    (11, "not ", ""),
    (12, "==", "!="),
    (15, "//", "*"),
    (15, "2", "3"),
    (15, ">=", ">"),
    (17, "min", "max"),
    (17, "*", "/"),
    (17, "2", "3"),
]


def test_operators_bounds_and_constants_of_what_runs_are_changed():
    assert [(m.line, m.before, m.after) for m in mutants_of("least.py", SOURCE)] == EXPECTED


@pytest.mark.parametrize("number", range(len(EXPECTED)))
def test_a_mutant_is_another_program(number):
    mutant = mutants_of("least.py", SOURCE)[number]
    changed = ast.parse(mutant.apply(SOURCE))
    assert ast.dump(changed) != ast.dump(ast.parse(SOURCE))


def test_the_order_of_a_sample_is_always_the_same():
    ranks = [mutant.rank for mutant in mutants_of("least.py", SOURCE)]
    assert ranks == [mutant.rank for mutant in mutants_of("least.py", SOURCE)]
    assert len(set(ranks)) == len(ranks)
    assert ranks != sorted(ranks)


STATEMENTS = """
class Sender:
    async def commit(self, n: int) -> None:
        logger.info("begins")
        self.n = n
        if n < 1:
            return
        await self.flush()
        self.sent[n] += 1
        total = n
        self.note(
            total,
        )
"""


def test_statements_with_an_effect_are_left_out_where_that_is_asked_for():
    left_out = [m for m in mutants_of("sender.py", STATEMENTS, statements=True) if m.after == "pass"]
    assert [m.before for m in left_out] == ["self.n = n", "return", "await self.flush()", "self.sent[n] += 1"]
    for mutant in left_out:
        ast.parse(mutant.apply(STATEMENTS))
    assert not [m for m in mutants_of("sender.py", STATEMENTS) if m.after == "pass"]
    assert ("<", "<=") in [(m.before, m.after) for m in mutants_of("sender.py", STATEMENTS)], "async ones too"


@pytest.mark.parametrize(
    ("module", "stages"),
    [
        (
            "topics/clients/sender.py",
            ["tests/unit/topics/clients/test_sender.py", "tests/unit/topics/test_clients.py"],
        ),
        ("topics/readers/arff/data_lines.py", ["tests/unit/topics/readers/test_arff.py"]),
        ("streamapp/worker/task/labels.py", ["tests/topology/test_labels.py"]),
        ("topics/codecs/packed/compiled/packed_forms.py", ["tests/property/test_packed_forms.py"]),
        (
            "streamapp/worker/processing/commit_schedule.py",
            [
                "tests/unit/streamapp/worker/processing/test_commit_schedule.py",
                "tests/unit/streamapp/worker/processing/test_held_outputs.py",
            ],
        ),
        (
            "streamapp/worker/processing/committer.py",
            ["tests/unit/streamapp/worker/processing/test_commits.py"],
        ),
    ],
)
def test_the_tests_of_a_modules_name_come_before_those_that_mention_it(module, stages):
    tests = closest_tests(module)
    assert len(tests) == len(stages)
    assert all(test in stage for test, stage in zip(stages, tests, strict=True)), tests


LOADED = """
LIMIT = 2

def below(n):
    return n < LIMIT

class Sum:
    first = 3

    @property
    def next(self):
        return self.first + 1

    def each(self):
        return [i * 2 for i in range(self.first)]
"""


@pytest.fixture
def loaded(tmp_path):
    """Return a module that is imported, and a function that applies those of its mutants with some text."""
    path = tmp_path / "loaded.py"
    path.write_text(LOADED)
    module = ModuleType("loaded")
    exec(compile(LOADED, str(path), "exec"), module.__dict__)

    def change(before):
        mutants = [m for m in mutants_of("loaded.py", LOADED) if m.before == before]
        changes = [LoadedFunctions().changes(str(path), LOADED, mutant) for mutant in mutants]
        for function, code in itertools.chain(*changes):
            function.__code__ = code
        return sum(map(bool, changes))

    return module, change


def test_an_imported_function_receives_the_code_of_a_mutant(loaded):
    module, change = loaded
    below = module.below  # as another module has imported it
    assert not below(2)
    assert change("<") == 1
    assert below(2)


def test_properties_and_what_a_function_contains_are_changed(loaded):
    module, change = loaded
    sum_ = module.Sum()
    assert change("+") == 1
    assert sum_.next == 2
    assert change("*") == 1
    assert sum_.each() == [0.0, 0.5, 1.0]


def test_a_change_that_only_an_import_makes_is_left_to_one(loaded):
    _, change = loaded
    assert change("3") == 0
