"""Helm for the tests: built once from the Go module that `tests/helm/go.sum` locks, kept in a cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.deployment.manifests import KUBERNETES, ROOT

MODULE = ROOT / "tests" / "helm"
PACKAGE = "helm.sh/helm/v3/cmd/helm"
CHART = KUBERNETES / "chart"
EXAMPLES = sorted(CHART.glob("examples/*.yaml"))
RELEASE = "streamgrove"
VERSION = "1.37.0"


def binary() -> Path:
    """The place of helm in the cache; another lock has another place."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    lock = hashlib.sha256((MODULE / "go.sum").read_bytes()).hexdigest()
    return root / "streamgrove" / "helm" / lock[:16] / "helm"


def helm(config: pytest.Config) -> Path:
    """Return helm. Only the tier `all` builds it, because that takes minutes; other tiers skip without it."""
    program = binary()
    if program.is_file():
        return program
    if config.getoption("--tier") != "all":
        pytest.skip("helm is not built: --tier all builds it")
    if shutil.which("go") is None:
        pytest.skip("go is not here")
    program.parent.mkdir(parents=True, exist_ok=True)
    scratch = program.with_name(f"helm.{os.getpid()}")
    build = ["go", "build", "-mod=readonly", "-trimpath", "-o", str(scratch), PACKAGE]
    subprocess.run(build, cwd=MODULE, check=True, env={**os.environ, "CGO_ENABLED": "0"})
    scratch.replace(program)
    return program


def template(program: Path, *options: str | Path, release: str = RELEASE) -> subprocess.CompletedProcess[str]:
    """Run `helm template`; options are those of helm, such as `--set=a=b`."""
    place = ["--namespace", RELEASE, "--kube-version", VERSION]
    command = [str(program), "template", release, str(CHART), *place, *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def objects(program: Path, *options: str | Path, release: str = RELEASE) -> list[dict[str, Any]]:
    """Return the rendered objects."""
    rendered = template(program, *options, release=release)
    assert rendered.returncode == 0, rendered.stderr
    return [document for document in yaml.safe_load_all(rendered.stdout) if document]
