"""Needs: packages of an extra, checked before a command starts anything, and the command to install them."""

import importlib.util
import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

from streamapp.errors import StreamappError

EXTRAS: Final = {
    "web": ("nicegui", "argon2"),
    "bridge": ("starlette", "uvicorn", "h11"),
    "experiments": ("matplotlib",),
    "protobuf": ("google.protobuf", "grpc_tools"),
    "otel": ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
}
"""The packages of each extra in pyproject.toml that a command imports."""


def missing(extra: str) -> list[str]:
    """Return the packages of an extra that are not installed; nothing is imported."""
    return [name for name in EXTRAS[extra] if not _is_installed(name)]


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the package around it
        return False


def require(extra: str, command: str) -> None:
    """Raise StreamappError, with the command that installs them, if packages of an extra are missing."""
    if absent := missing(extra):
        message = f"{command} needs {' and '.join(absent)}; install with: {install_line(extra)}"
        raise StreamappError(message)


def install_line(extra: str) -> str:
    """Return the command that installs an extra for this installation.

    A checkout installs itself again; a release comes from the package index; any other installation (a
    wheel, a deleted folder) is on no index, so that the command names the requirements of the extra.
    """
    checkout = _checkout()
    if checkout is not None:
        place = "." if checkout == Path.cwd() else str(checkout)
        return f"{_pip()} install -e {shlex.quote(f'{place}[{extra}]')}"
    if _origin() is not None:
        return f"{_pip()} install {' '.join(map(shlex.quote, _requirements(extra)))}"
    return f"{_pip()} install {shlex.quote(f'streamgrove[{extra}]')}"


def _checkout() -> Path | None:
    """Return the source tree from which this package runs; None: it is installed."""
    root = Path(__file__).resolve().parents[2]
    return root if (root / "pyproject.toml").is_file() and (root / "streamapp").is_dir() else None


def _origin() -> str | None:
    """Return the record of an installation (PEP 610); None: the package came from an index."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return distribution("streamgrove").read_text("direct_url.json")
    except PackageNotFoundError:
        return None


def _requirements(extra: str) -> list[str]:
    """Return the requirements of an extra in the package's metadata."""
    from importlib.metadata import requires

    pairs = (requirement.partition(";") for requirement in requires("streamgrove") or ())
    return [
        name.strip() for name, _, marker in pairs if marker.replace("'", '"').strip() == f'extra == "{extra}"'
    ]


def _pip() -> str:
    """Return the command for this interpreter's pip: its name alone if a shell would run the same pip."""
    beside = Path(sys.executable).parent / "pip"
    on_path = shutil.which("pip")
    if on_path is not None and beside.exists() and Path(on_path).resolve() == beside.resolve():
        return "pip"
    python = Path(sys.executable)
    if python.is_relative_to(Path.cwd()):
        python = python.relative_to(Path.cwd())
    return f"{shlex.quote(str(python))} -m pip"
