"""Compile, or load from the cache, everything that is compiled: so that no worker meets a cold kernel."""

import importlib
import time


def warm_kernels() -> float:
    """Import every module that has kernels and compile them; seconds it took."""
    began = time.perf_counter()
    from core import jit, registry

    importlib.import_module("core.model_table")
    registry.modules("streams")
    jit.warm()
    return time.perf_counter() - began
