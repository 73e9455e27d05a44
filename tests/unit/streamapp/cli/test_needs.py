"""What a command needs beside the package: looked at first, and installed by the line that is shown."""

import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from streamapp.cli.main import main
from streamapp.lab.experiments import base

ROOT = Path(__file__).parents[4]
ASKS = "from streamapp.settings.needs import install_line; print(install_line('web'))"
METADATA = """Metadata-Version: 2.4
Name: streamgrove
Version: 0.1.0
Requires-Dist: numpy<3,>=2.4
Requires-Dist: pytest==9.2.0; extra == "dev"
Requires-Dist: nicegui<3.19,>=3.18; extra == "web"
Requires-Dist: argon2-cffi<26,>=25.1; extra == "web"
"""


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Packages that this environment is not to have."""
    names: set[str] = set()
    real = importlib.util.find_spec

    def find_spec(name: str, package: str | None = None) -> Any:
        return None if name in names else real(name, package)

    monkeypatch.setattr("importlib.util.find_spec", find_spec)
    return names


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which a demo would begin its work."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (["web"], "grove web"),
        (["web", "--users", "users.txt", "--add-user", "ann"], "grove web"),
        (["demo", "--web"], "grove demo --web"),
        (["demo", "--web", "--data", "none.csv"], "grove demo --web"),
    ],
)
def test_the_pages_are_looked_for_before_anything_is_started(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    absent: set[str],
    temporary: Path,
    line: list[str],
    command: str,
) -> None:
    monkeypatch.chdir(ROOT)
    absent |= {"nicegui"}
    assert main(line) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"grove: {command} needs nicegui; install with: ")
    assert err.endswith("pip install -e '.[web]'\n")
    assert list(temporary.iterdir()) == []


def test_charts_are_looked_for_before_an_experiment_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, absent: set[str], tmp_path: Path
) -> None:
    def interrupted(name: str, cell: dict[str, Any]) -> dict[str, Any]:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("streamapp.lab.experiments.conduct.run_cell", interrupted)
    absent |= {"matplotlib"}
    assert main(["experiment", base.names()[-1], "--quick"]) == 130
    err = capsys.readouterr().err
    assert "grove: no chart is drawn: matplotlib is not installed" in err
    assert f"pip install -e '{ROOT}[experiments]'" in err, "elsewhere the checkout is named"


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (None, "pip install 'streamgrove[web]'"),
        (
            {"url": "file:///tmp/streamgrove-0.1.0-py3-none-any.whl", "archive_info": {}},
            "pip install 'nicegui<3.19,>=3.18' 'argon2-cffi<26,>=25.1'",
        ),
        (
            {"url": "file:///gone", "dir_info": {}},
            "pip install 'nicegui<3.19,>=3.18' 'argon2-cffi<26,>=25.1'",
        ),
    ],
    ids=["from an index", "from a wheel", "from a folder"],
)
def test_the_line_is_one_that_works_where_it_is_installed(
    tmp_path: Path, origin: dict[str, Any] | None, expected: str
) -> None:
    site = tmp_path / "site-packages"
    (site / "streamapp").mkdir(parents=True)
    for name in ("__init__.py", "errors.py"):
        shutil.copy(ROOT / "streamapp" / name, site / "streamapp" / name)
    shutil.copytree(ROOT / "streamapp" / "settings", site / "streamapp" / "settings")
    info = site / "streamgrove-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    if origin is not None:
        (info / "direct_url.json").write_text(json.dumps(origin))
    program = f"import sys; sys.path.insert(0, {str(site)!r}); {ASKS}"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.strip().endswith(expected)
