"""Stagger as bits: the objects of the public files of its family, and three concepts (AFA section 6.3)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from core.layout.model import Floats
from core.numeric import rng
from core.schema.schema import Attribute, Schema

CONCEPTS: Final = (1, 2, 3)
BITS: Final = Schema.of(
    [Attribute(name, "nominal", ("no", "yes")) for name in ("medium", "large", "green", "circle")],
    ("false", "true"),
)
"""Three sizes, two colours and two shapes: one-hot, without one bit of each [D50]."""
PART: Final = 1 << 20
"""Records of a concept and a part, at most."""


def stagger(concept: int, n: int, seed: int, part: int) -> tuple[Floats, Any]:
    """Return x float64[n, 4] and y int32[n] of a concept: small and red; green or circle; medium or large."""
    key = rng.stream_key(seed, rng.GENERATOR_RECORD)
    x, y = np.zeros((n, 4)), np.zeros(n, dtype=np.int32)
    for row in range(n):
        draw = ((2 * concept + part) * PART + row) << rng.DRAW_BITS
        size, green, circle = (
            int(rng.integer(key, draw, 3)),
            int(rng.integer(key, draw + 1, 2)),
            int(rng.integer(key, draw + 2, 2)),
        )
        x[row] = size == 1, size == 2, green, circle
        holds = {1: size == 0 and not green, 2: bool(green or circle), 3: size > 0}[concept]
        y[row] = int(holds)
    return x, y
