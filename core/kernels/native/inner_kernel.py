"""Inner kernels: compiled only as parts of the entry kernels that call them.

numba optimises every function that it compiles and translates it to machine code. Then it links the function
into its callers, where both steps are repeated: a kernel five calls down is optimised five times. For an
inner kernel these steps are left out: it stays as lowered code, and the entry kernel that includes it is
optimised once, as a whole. If an inner kernel is called from Python, as in tests, it is compiled separately.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, Final

# numba has partial and sometimes wrong types, so it counts as untyped.
numba: Any = importlib.import_module("numba")
codegen: Any = importlib.import_module("numba.core.codegen")
compiler: Any = importlib.import_module("numba.core.compiler")
passes: Any = importlib.import_module("numba.core.compiler_machinery")
typed_passes: Any = importlib.import_module("numba.core.typed_passes")

OPTIONS: Final[dict[str, Any]] = {"nogil": True, "error_model": "numpy"}
"""Options of all kernels. No fastmath, no parallel: the same input gives the same bytes."""


class Raw(codegen.JITCodeLibrary):  # type: ignore[misc]
    """The lowered code of an inner kernel and of its callees."""

    def finalize(self) -> None:
        """Link the callees, and leave out the further steps of the base class."""
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)  # noqa: SLF001
            code = library._get_module_for_linking()  # noqa: SLF001
            self._final_module.link_in(code, preserve=True)
        self._finalized = True


@passes.register_pass(mutates_CFG=False, analysis_only=False)
class Declare(passes.LoweringPass):  # type: ignore[misc]
    """Declare a kernel without machine code to numba: callers link its library."""

    _name = "streamgrove_declare"

    def __init__(self) -> None:
        passes.LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Insert a unique object as the kernel's name, in the place of its machine code."""
        lowered, name = state["cr"], object().__reduce__
        state.targetctx.insert_user_function(name, lowered.fndesc, [state.library])
        state.reload_init.extend(state.library._reload_init)  # noqa: SLF001
        state["cr"] = lowered._replace(cfunc=name)
        return True


class Compiler(compiler.CompilerBase):  # type: ignore[misc]
    """numba's pipeline up to the lowered code."""

    def define_pipelines(self) -> list[Any]:
        state = self.state
        state.flags.no_compile = True
        state.library = Raw(state.targetctx.codegen(), state.func_id.func_qualname)
        pipeline = compiler.DefaultPassBuilder.define_nopython_pipeline(state)
        pipeline.add_pass_after(Declare, typed_passes.NativeLowering)
        pipeline.finalize()
        return [pipeline]


class InnerKernel:
    """A function that kernels call; ``is_inlined``: always inlined completely."""

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
        """The numba type of this object in a kernel."""
        return numba.types.Dispatcher(self._taken_in)

    def __call__(self, *arguments: Any) -> Any:
        return self._alone(*arguments)
