"""Tests of pages leave the modules of the process as they were."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

PACKAGES = ("core", "topics", "streamapp", "tests")


@pytest.fixture(autouse=True)
def modules_stay() -> Iterator[None]:
    """Bring back modules that NiceGUI's testing tools remove together with all their parents.

    A package that is imported a second time lacks the attributes of its submodules, and later tests of the
    process that name one by its path do not find it.
    """
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in PACKAGES}
    yield
    sys.modules.update(before)
