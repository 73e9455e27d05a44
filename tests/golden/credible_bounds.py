"""Writes ``credible_bounds.json`` anew: ``python -m tests.golden.credible_bounds`` (mpmath, eighty digits).

Rows of [T, k, δ, s(δ), s(1 - δ), risk], k the labels of the rarer class: s(q) with P(s <= µ <= 1 - s) = q,
and the risk that is exceeded with probability δ, for µ from Beta(k + 1, T - k + 1).
"""

import importlib
import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("credible_bounds.json")
LABELS = (0, 1, 2, 3, 10, 50, 200, 1000, 1024, 1025, 10_000, 100_000, 1_000_000)
SHARES = (0.0, 0.01, 0.1, 0.3, 0.5, 0.49)
MANY = 10_000
DELTAS = (0.001, 0.05, 0.2, 0.45)
TINY = (1e-25, 1e-16, 1e-9)


def cases():
    for labels in LABELS:
        few = labels > MANY  # series of that many terms take minutes
        counts = {int(share * labels) for share in (SHARES[::2] if few else SHARES)}
        for fewer in sorted(counts | ({1} if labels > 1 else set())):
            tiny = TINY if labels <= 1000 and fewer in (0, labels // 10) else ()
            for delta in DELTAS[1:3] if few else (*tiny, *DELTAS):
                yield labels, fewer, delta


def lower_tail(mp: Any, a: int, b: int, x: Any) -> Any:
    """Return I_x(a, b) as a series of positive terms, for whole a and b."""
    if x > mp.mpf(a) / (a + b):
        return 1 - lower_tail(mp, b, a, 1 - x)
    term = mp.exp(
        mp.loggamma(a + b) - mp.loggamma(a + 1) - mp.loggamma(b) + a * mp.log(x) + (b - 1) * mp.log(1 - x)
    )
    total, j, ratio = term, a, x / (1 - x)
    while term > total * mp.mpf(10) ** -70 and j < a + b - 1:
        term *= ratio * (a + b - 1 - j) / (j + 1)
        total += term
        j += 1
    return total


def solve(mp: Any, function: Any, low: Any, high: Any) -> Any:
    """Return where a growing function is 0, to 20 digits: the Illinois method."""
    f_low, f_high, side = function(low), function(high), 0
    for _ in range(300):
        middle = (low * f_high - high * f_low) / (f_high - f_low)
        f = function(middle)
        if f == 0 or abs(high - low) < abs(middle) * mp.mpf(10) ** -22:
            return middle
        if f > 0:
            high, f_high = middle, f
            f_low, side = (f_low / 2, 1) if side == 1 else (f_low, 1)
        else:
            low, f_low = middle, f
            f_high, side = (f_high / 2, -1) if side == -1 else (f_high, -1)
    return middle


def row(labels, fewer, delta):
    mp = importlib.import_module("mpmath").mp
    mp.dps = 80
    a, b, widths = fewer + 1, labels - fewer + 1, []
    d, least, half = mp.mpf(delta), mp.mpf(10) ** -36, mp.mpf(1) / 2

    def lower(s):
        return lower_tail(mp, a, b, s)

    def upper(s):
        return lower_tail(mp, b, a, 1 - s)

    # Logarithms: a chord of what falls from 1 to 1e-25 is no guide.
    widths.append(solve(mp, lambda s: mp.log(d / (upper(s) - upper(1 - s))), least, half - least))
    widths.append(solve(mp, lambda s: mp.log((lower(s) + upper(1 - s)) / d), least, half))
    widths.append(solve(mp, lambda x: mp.log(d / upper(x)), least, 1 - least))
    return [labels, fewer, delta, *map(float, widths)]


if __name__ == "__main__":
    rows = [row(*case) for case in cases()]
    FILE.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n", encoding="utf-8")
