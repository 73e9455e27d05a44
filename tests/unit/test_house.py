"""The file map of docs/design.md: every folder and file of the product, as the files themselves say."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import house


def test_the_file_map_is_current() -> None:
    shown = house.PAGE.read_text().split(house.BEGIN)[1].split(house.END)[0].strip()
    assert shown == house.file_map().strip(), "write it anew: python -m tests.house"


def test_rooms_floors_and_arrows_are_counted_by_imports(tmp_path: Path) -> None:
    for name, text in {
        "core/__init__.py": "",
        "core/ground.py": "import os",
        "core/wall.py": "from core import ground",
        "core/roof/__init__.py": "",
        "core/roof/tile.py": "from core.wall import brick\nimport core.ground",
        "core/shed.py": "",
        "core/learners/__init__.py": "",
        "topics/__init__.py": "",
        "streamapp/worker/task/one.py": "from streamapp.worker.task.two import it",
        "streamapp/worker/task/two.py": "from streamapp.worker.task import one",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert list(house.plan(tmp_path)) == [
        ("core", 4, 5, 3, 3),
        ("core/learners", 1, 0, 0, 0),
        ("topics", 1, 0, 0, 0),
        ("streamapp", 0, 1, 1, 0),
        ("streamapp/worker", 0, 1, 1, 0),
        ("streamapp/worker/task", 2, 2, "a circle", 2),
    ]


MOST_LINES = 500
MOST_MODULES = 16
MOST_ROOMS = 11
MOST_SAME_NAMES = 46


def test_no_file_is_longer_than_a_reader_takes_in() -> None:
    """Not of the product, nor of its tests and benchmarks."""
    lengths = {
        path.relative_to(house.ROOT).as_posix(): path.read_text().count("\n")
        for place in (*house.PACKAGES, "tests", "benchmarks")
        for path in house.sources(house.ROOT / place)
    }
    assert {path.split("/")[0] for path in lengths} == {*house.PACKAGES, "tests", "benchmarks"}
    assert len(lengths) > 1000
    long = {path: lines for path, lines in lengths.items() if lines > MOST_LINES}
    assert long == {}, f"at most {MOST_LINES} lines: cut these along their duties"


def test_no_folder_has_more_modules_than_a_reader_keeps_apart() -> None:
    folders = {path.parent for package in house.PACKAGES for path in house.sources(house.ROOT / package)}
    loose = {folder.relative_to(house.ROOT).as_posix(): len([*folder.glob("*.py")]) - 1 for folder in folders}
    crowded = {folder: modules for folder, modules in loose.items() if modules > MOST_MODULES}
    assert crowded == {}, f"at most {MOST_MODULES} modules: give those that belong together a folder"


def test_the_application_has_few_rooms() -> None:
    top = house.ROOT / "streamapp"
    rooms = {path.name for path in top.iterdir() if (path / "__init__.py").exists()}
    rooms |= {path.name for path in top.glob("*.py") if not path.name.startswith("__")}
    assert len(rooms) <= MOST_ROOMS, sorted(rooms)


SAME_NAMES = {
    "the same part of each plug-in family, learner, format or package": """
        __main__ base blocks dataset errors header kernels layout learner memory predictions reader
        resampling soundness writer""",
    "a command, and what it starts": "bridge broker oracle pool prequential replay tree worker",
    "a preset, and its plug-in or formula": "c_tree cgd idbd imac none osm qda random",
    "a model's words in core/layout, and the object that is written in them": "model plan",
    "a term of the field that two packages have": """
        columns entry episode features outline records requests rows run scores shared sources words""",
}
"""Names that modules of several folders have, by the reason."""


def test_a_module_name_leads_to_one_module() -> None:
    """A new module whose name another has takes a name of its own; the list only becomes shorter."""
    names = Counter(
        path.stem
        for package in house.PACKAGES
        for path in house.sources(house.ROOT / package)
        if path.stem != "__init__"
    )
    allowed = {name for reason in SAME_NAMES.values() for name in reason.split()}
    assert len(allowed) <= MOST_SAME_NAMES
    twice = {name for name, modules in names.items() if modules > 1}
    assert twice - allowed == set(), "a search by name leads to several modules: say what each alone holds"


def test_no_module_imports_private_names_of_another_package() -> None:
    strangers = []
    for package in house.PACKAGES:
        for path in house.sources(house.ROOT / package):
            here = path.relative_to(house.ROOT).parent.parts
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.ImportFrom) or node.module is None:
                    continue
                owner = tuple(node.module.split("."))
                names = [alias.name for alias in node.names if alias.name.startswith("_")]
                is_ours = here[: len(owner)] == owner or owner[: len(here)] == here
                if names and owner[0] in house.PACKAGES and not is_ours:
                    strangers.append(f"{path.relative_to(house.ROOT)}: {node.module} {names}")
    assert strangers == []


RIGS = {"tests.unit.streamapp.worker.processing.rig", "tests.unit.streamapp.worker.driver.rig"}
"""Helpers by which tests act on a worker as its driver, its group and its broker do."""
PUT_TOGETHER = {"TaskManager", "Committer", "Assignments", "Partitions", "Consumer"}


def test_only_a_rig_has_how_the_parts_of_a_worker_are_put_together() -> None:
    """Its tests read nothing private either: a redesign of the inside changes the rig alone."""
    strangers, users = [], 0
    for path in house.sources(house.ROOT / "tests" / "unit" / "streamapp"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
        if not any(node.module in RIGS for node in imports):
            continue
        users += 1
        names = {alias.name for node in imports for alias in node.names} & PUT_TOGETHER
        read = {node.attr for node in nodes if isinstance(node, ast.Attribute) and _is_private(node)}
        strangers += [f"{path.relative_to(house.ROOT)}: {name}" for name in sorted(names | read)]
    assert users > 10
    assert strangers == []


def _is_private(node: ast.Attribute) -> bool:
    """Whether an attribute is a private one of another object."""
    is_own = isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr[0] == "_" and node.attr[1:2].islower() and not is_own


MOST_KERNEL_PARAMETERS = 8
MOST_WIDE_KERNELS = 20
KERNELS = {"kernel", "called"}
"""The decorators of compiled functions (core/kernels/jit.py)."""


def _decorator(node: ast.expr) -> str:
    """Return the name of a decorator, with or without arguments."""
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)


def test_a_kernel_of_many_parameters_has_a_reason() -> None:
    """tests/wide_kernels.txt has a line for each: file, kernel, number of parameters, reason."""
    lines = (house.ROOT / "tests" / "wide_kernels.txt").read_text().splitlines()
    listed = {tuple(line.split(" ", 3)[:3]) for line in lines if not line.startswith("#")}
    reasons = [line.split(" ", 3)[3] for line in lines if not line.startswith("#")]
    kernels, wide = 0, set()
    for package in house.PACKAGES:
        for path in house.sources(house.ROOT / package):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef) and KERNELS & set(map(_decorator, node.decorator_list)):
                    kernels += 1
                    parameters = len(node.args.args) + len(node.args.kwonlyargs)
                    if parameters > MOST_KERNEL_PARAMETERS:
                        wide.add((path.relative_to(house.ROOT).as_posix(), node.name, str(parameters)))
    assert kernels > 800
    assert wide == listed
    assert len(wide) <= MOST_WIDE_KERNELS
    assert all(len(reason.split()) > 4 for reason in reasons)


VAGUE = ("found", "each", "wanted", "said", "told")
HALF_VAGUE = ("some", "given", "done", "left", "meant", "one", "known", "made", "taken", "held")
"""Words that are empty as names, and words that nearly are; ``left`` is also a side of a split."""
MOST_VAGUE = {"core": (0, 52), "topics": (53, 24), "streamapp": (14, 24), "benchmarks": (0, 3)}
"""Locals and parameters with such names in each package, at most."""


def _bound(tree: ast.AST) -> Iterator[str]:
    """Yield the names of locals and parameters where they get a value; fields of classes are no locals."""
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    fields = {field.target for node in classes for field in node.body if isinstance(field, ast.AnnAssign)}
    for node in ast.walk(tree):
        if node in fields:
            continue
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                yield name


@pytest.mark.parametrize("package", MOST_VAGUE)
def test_locals_are_named_by_what_they_hold(package: str) -> None:
    names = Counter[str]()
    for path in house.sources(house.ROOT / package):
        names.update(_bound(ast.parse(path.read_text())))
    assert names["row"] > 20
    for words, most in zip((VAGUE, HALF_VAGUE), MOST_VAGUE[package], strict=True):
        counts = {word: names[word] for word in words}
        assert sum(counts.values()) <= most, f"{counts}: name these by what they hold"


def test_locals_are_counted_where_they_get_a_value() -> None:
    text = (
        "class C:\n    held: int = 0\n\n\ndef f(found):\n    for each in found:\n        made = each\n"
        "    return [some for some in made]\n"
    )
    assert sorted(_bound(ast.parse(text))) == ["each", "found", "made", "some"]
