"""The normal distribution function with the rounding of MOA's library (Moshier's Cephes: quotients).

``special.normal_cdf`` is as exact and faster. With ``compat="moa"`` the last bit counts: a leaf inherits
masses computed with it, and the record of the next attempt depends on whether the weight since the last
attempt is 200 or 199.9999999999998.
"""

from __future__ import annotations

import math
from typing import Final

from core.kernels.jit import kernel

_SQRT_HALF: Final = 7.07106781186547524401e-1


@kernel
def normal_cdf(z: float) -> float:
    """Return Φ(z)."""
    x = z * _SQRT_HALF
    if abs(x) < _SQRT_HALF:
        return 0.5 + 0.5 * _erf(x)
    tail = 0.5 * _erfc(abs(x))
    return 1.0 - tail if x > 0.0 else tail


@kernel
def _erf(x: float) -> float:
    """Return the error function for |x| <= 1."""
    z = x * x
    above = 9.60497373987051638749 * z + 9.00260197203842689217e1
    above = above * z + 2.23200534594684319226e3
    above = above * z + 7.00332514112805075473e3
    above = above * z + 5.55923013010394962768e4
    below = z + 3.35617141647503099647e1
    below = below * z + 5.21357949780152679795e2
    below = below * z + 4.59432382970980127987e3
    below = below * z + 2.26290000613890934246e4
    below = below * z + 4.92673942608635921086e4
    return x * above / below


@kernel
def _erfc(x: float) -> float:
    """Return the complement of the error function for x >= 0."""
    if x < 1.0:
        return 1.0 - _erf(x)
    scale = math.exp(-x * x)
    if x >= 8.0:
        above = 5.64189583547755073984e-1 * x + 1.27536670759978104416
        above = above * x + 5.01905042251180477414
        above = above * x + 6.16021097993053585195
        above = above * x + 7.40974269950448939160
        above = above * x + 2.97886665372100240670
        below = x + 2.26052863220117276590
        below = below * x + 9.39603524938001434673
        below = below * x + 1.20489539808096656605e1
        below = below * x + 1.70814450747565897222e1
        below = below * x + 9.60896809063285878198
        below = below * x + 3.36907645100081516050
        return scale * above / below
    above = 2.46196981473530512524e-10 * x + 5.64189564831068821977e-1
    above = above * x + 7.46321056442269912687
    above = above * x + 4.86371970985681366614e1
    above = above * x + 1.96520832956077098242e2
    above = above * x + 5.26445194995477358631e2
    above = above * x + 9.34528527171957607540e2
    above = above * x + 1.02755188689515710272e3
    above = above * x + 5.57535335369399327526e2
    below = x + 1.32281951154744992508e1
    below = below * x + 8.67072140885989742329e1
    below = below * x + 3.54937778887819891062e2
    below = below * x + 9.75708501743205489753e2
    below = below * x + 1.82390916687909736289e3
    below = below * x + 2.24633760818710981792e3
    below = below * x + 1.65666309194161350182e3
    below = below * x + 5.57535340817727675546e2
    return scale * above / below
