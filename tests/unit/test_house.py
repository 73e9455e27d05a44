"""The file map of docs/design.md: every folder and file of the product, as the files themselves say."""

from __future__ import annotations

from pathlib import Path

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
        "streamapp/task/one.py": "from streamapp.task.two import it",
        "streamapp/task/two.py": "from streamapp.task import one",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert list(house.plan(tmp_path)) == [
        ("core", 4, 4, 3, 3),
        ("streamapp", 0, 1, 1, 0),
        ("streamapp/task", 2, 2, "a circle", 2),
    ]
