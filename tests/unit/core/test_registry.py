"""The registry: kernels of plug-ins are called by kind."""

from __future__ import annotations

from types import ModuleType

import pytest

from core import registry
from core.errors import GroveError
from core.kernels.jit import kernel


def test_a_kernel_with_other_parameters_is_refused_by_name_and_rule() -> None:
    @kernel
    def update(params, at, floats, state, error):
        return 0

    member = ModuleType("made.detector")
    member.update = update  # type: ignore[attr-defined]
    with pytest.raises(GroveError) as refused:
        registry.dispatch_to([(0, member)], "made.update", "p, state, error")
    assert str(refused.value) == (
        "made.detector.update(params, at, floats, state, error) must have the parameters (p, state, error); "
        "the base of its family describes them"
    )
