"""Inner kernels: compiled where entry kernels take them in, and nowhere else.

numba optimises whatever it compiles, and translates it to machine code, before it links it into those that
call it, where both are done again: a kernel five calls down is optimised five times. An inner kernel needs
none of that. So it stays as it was lowered, and the entry kernel that takes it in is optimised once, as a
whole. Called from Python, as tests do, an inner kernel is compiled for itself.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, Final

# numba is typed in part only, and wrongly in places: here it counts as untyped.
numba: Any = importlib.import_module("numba")
codegen: Any = importlib.import_module("numba.core.codegen")
compiler: Any = importlib.import_module("numba.core.compiler")
passes: Any = importlib.import_module("numba.core.compiler_machinery")
typed_passes: Any = importlib.import_module("numba.core.typed_passes")

OPTIONS: Final[dict[str, Any]] = {"nogil": True, "error_model": "numpy"}
"""Of all kernels. No fastmath, no parallel: the same input gives the same bytes."""


class Raw(codegen.JITCodeLibrary):  # type: ignore[misc]
    """The code of an inner kernel and of what it calls, as it was lowered."""

    def finalize(self) -> None:
        """Link what the kernel calls, and leave out what the base class does then."""
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)  # noqa: SLF001
            code = library._get_module_for_linking()  # noqa: SLF001
            self._final_module.link_in(code, preserve=True)
        self._finalized = True


@passes.register_pass(mutates_CFG=False, analysis_only=False)
class Declare(passes.LoweringPass):  # type: ignore[misc]
    """Tell numba of a kernel that has no machine code: what calls it links its library."""

    _name = "streamgrove_declare"

    def __init__(self) -> None:
        passes.LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Put in a name for the kernel where its machine code would be: something that nothing else is."""
        lowered, name = state["cr"], object().__reduce__
        state.targetctx.insert_user_function(name, lowered.fndesc, [state.library])
        state.reload_init.extend(state.library._reload_init)  # noqa: SLF001
        state["cr"] = lowered._replace(cfunc=name)
        return True


class Compiler(compiler.CompilerBase):  # type: ignore[misc]
    """numba's pipeline up to the lowered code."""

    def define_pipelines(self) -> list[Any]:
        """Return the passes."""
        state = self.state
        state.flags.no_compile = True
        state.library = Raw(state.targetctx.codegen(), state.func_id.func_qualname)
        pipeline = compiler.DefaultPassBuilder.define_nopython_pipeline(state)
        pipeline.add_pass_after(Declare, typed_passes.NativeLowering)
        pipeline.finalize()
        return [pipeline]


class InnerKernel:
    """A function that kernels call; ``is_inlined``: always taken in whole."""

    def __init__(self, function: Callable[..., Any], is_inlined: bool) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        options = OPTIONS | {"forceinline": is_inlined}
        self._taken_in = numba.njit(
            pipeline_class=Compiler, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options
        )(function)
        self._alone = numba.njit(**options)(function)

    @property
    def _numba_type_(self) -> Any:
        """What numba takes it for in a kernel."""
        return numba.types.Dispatcher(self._taken_in)

    def __call__(self, *arguments: Any) -> Any:
        return self._alone(*arguments)
