from pathlib import Path

from core.kernels.native.sources import reached_from


def write(root: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = root.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_imports_are_followed_within_the_packages(tmp_path: Path) -> None:
    write(
        tmp_path,
        ours__start="import json\nfrom ours.inner import one\nimport others.module\n",
        ours__inner__one="from . import two\nfrom ..last import NAME\n",
        ours__inner__two="import ours.start\n",
        ours__last="NAME = 1\n",
        ours__apart="NAME = 2\n",
        others__module="NAME = 3\n",
    )
    (tmp_path / "ours/inner/__init__.py").write_text("from ours.package import NAME\n")
    (tmp_path / "ours/package.py").write_text("NAME = 4\n")
    found = reached_from(tmp_path / "ours/start.py", tmp_path, ["ours"])
    assert [path.relative_to(tmp_path).as_posix() for path in found] == [
        "ours/inner/__init__.py",
        "ours/inner/one.py",
        "ours/inner/two.py",
        "ours/last.py",
        "ours/package.py",
        "ours/start.py",
    ]
