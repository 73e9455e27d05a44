"""The normal distribution function the way MOA's library rounds it (Moshier's Cephes: quotients).

Any good implementation agrees to 15 digits. The last bit decides whether a leaf with fractional inherited
weight has its next attempt at the 200th or the 201st record, and which of two mirror-image tests is better.
"""

import math

SQRT_HALF = 7.07106781186547524401e-1

TAIL_ABOVE = (
    2.46196981473530512524e-10,
    5.64189564831068821977e-1,
    7.46321056442269912687,
    4.86371970985681366614e1,
    1.96520832956077098242e2,
    5.26445194995477358631e2,
    9.34528527171957607540e2,
    1.02755188689515710272e3,
    5.57535335369399327526e2,
)
TAIL_BELOW = (
    1.0,
    1.32281951154744992508e1,
    8.67072140885989742329e1,
    3.54937778887819891062e2,
    9.75708501743205489753e2,
    1.82390916687909736289e3,
    2.24633760818710981792e3,
    1.65666309194161350182e3,
    5.57535340817727675546e2,
)
FAR_ABOVE = (
    5.64189583547755073984e-1,
    1.27536670759978104416,
    5.01905042251180477414,
    6.16021097993053585195,
    7.40974269950448939160,
    2.97886665372100240670,
)
FAR_BELOW = (
    1.0,
    2.26052863220117276590,
    9.39603524938001434673,
    1.20489539808096656605e1,
    1.70814450747565897222e1,
    9.60896809063285878198,
    3.36907645100081516050,
)
NEAR_ABOVE = (
    9.60497373987051638749,
    9.00260197203842689217e1,
    2.23200534594684319226e3,
    7.00332514112805075473e3,
    5.55923013010394962768e4,
)
NEAR_BELOW = (
    1.0,
    3.35617141647503099647e1,
    5.21357949780152679795e2,
    4.59432382970980127987e3,
    2.26290000613890934246e4,
    4.92673942608635921086e4,
)


def polynomial(x, coefficients):
    """Return the polynomial whose coefficients are given from the highest power down."""
    value = coefficients[0]
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


def erf(x):
    """Return the error function for abs(x) <= 1."""
    z = x * x
    return x * polynomial(z, NEAR_ABOVE) / polynomial(z, NEAR_BELOW)


def erfc(x):
    """Return the complement of the error function for x >= 0."""
    if x < 1.0:
        return 1.0 - erf(x)
    scale = math.exp(-x * x)
    if x < 8.0:
        return scale * polynomial(x, TAIL_ABOVE) / polynomial(x, TAIL_BELOW)
    return scale * polynomial(x, FAR_ABOVE) / polynomial(x, FAR_BELOW)


def normal_cdf(z):
    """Return the probability of at most z."""
    x = z * SQRT_HALF
    if abs(x) < SQRT_HALF:
        return 0.5 + 0.5 * erf(x)
    tail = 0.5 * erfc(abs(x))
    return 1.0 - tail if x > 0.0 else tail
