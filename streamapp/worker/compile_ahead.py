"""Compile ahead: all kernels compiled, or loaded from the cache, before the first record."""

import importlib
import time

MAIN_KERNEL = "run.run"  # of core/run.py: most of the time of compiling is its
TAKES = "a minute or two"
"""How long compiling takes, where it is said to somebody who waits: 73 to 146 s on a quiet machine."""


def kernels_are_cold() -> bool:
    """Tell whether no process has compiled these kernels into the cache yet: then warming takes a while."""
    from core import jit

    if jit.DISABLED:
        return False
    directory = jit.cache_directory()
    return directory is None or next(directory.rglob(f"{MAIN_KERNEL}-*.nbi"), None) is None


def warm_kernels() -> float:
    """Import every module that has kernels and compile them; seconds it took."""
    began = time.perf_counter()
    from core import jit, registry

    importlib.import_module("core.model_table")
    registry.modules("streams")
    jit.warm()
    return time.perf_counter() - began
