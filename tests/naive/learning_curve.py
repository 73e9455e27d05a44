"""The learning curve and its forecast by dense linear algebra, without a filter."""

import itertools

import numpy as np
import numpy.typing as npt
from scipy import integrate, stats

from core.learning_curve.fit import (
    DROP,
    EXPONENTS,
    LEVEL,
    MORE,
    STEP_PRIORS,
    STEPS,
    WALK_PRIORS,
    WALKS,
)

Array = npt.NDArray[np.float64]


def mean_power(first: float, end: float, exponent: float) -> float:
    """Return the mean of (n + 1)^-exponent by quadrature."""
    return float(integrate.quad(lambda n: (n + 1.0) ** -exponent, first, end)[0] / (end - first))


def shared(a: Array, b: Array, step: float, walk: float) -> Array:
    """Return the covariances of the random walk between numbers of labels; it begins at ``a[0]``."""

    def since(n: Array) -> Array:
        walked: Array = step**2 * np.log((n + 1) / (a[0] + 1)) + walk**2 * (n - a[0]) / MORE
        return walked

    covariances: Array = since(np.minimum(a[:, None], b[None, :]))
    return covariances


def forecast(intervals: Array, labels: float) -> tuple[list[float], list[float], list[float]]:
    """Return mean and standard deviation of the accuracy to come, the gain, and the last interval."""
    share, n = intervals[:, 2], intervals[:, 3]
    level = (n @ share + 1) / (n.sum() + 2)
    variance = level * (1 - level) / n
    for again in range(2):
        filters = [
            _filter(intervals, variance, labels, level, exponent, step, walk)
            for exponent, step, walk in itertools.product(EXPONENTS, range(len(STEPS)), range(len(WALKS)))
        ]
        weights = _weights([found["likelihood"] for found in filters])
        if again == 0:
            law = sum(w * found["law"] for w, found in zip(weights, filters, strict=True))
            fitted = np.clip(law, 0.02, 0.98)
            variance = fitted * (1 - fitted) / n
    earlier = _weights([found["earlier"] for found in filters])
    return (
        _mixture(weights, [found["accuracy"] for found in filters]),
        _mixture(weights, [found["gain"] for found in filters]),
        _mixture(earlier, [found["last"] for found in filters]),
    )


def _filter(
    intervals: Array, variance: Array, labels: float, level: float, exponent: float, step: int, walk: int
) -> dict[str, object]:
    """Return posterior moments under one exponent and one pair of variances."""
    first, end, share, _ = intervals.T
    powers = np.array([mean_power(a, b, exponent) for a, b in zip(first, end, strict=True)])
    x, middle = powers / powers[0], (first + end) / 2
    design = np.stack((np.ones_like(x), -x), axis=1)
    prior_mean, prior = np.array([level, 0.0]), np.diag([LEVEL**2, DROP**2])
    walked = shared(middle, middle, STEPS[step], WALKS[walk])
    mean, covariance = design @ prior_mean, design @ prior @ design.T + walked + np.diag(variance)
    m = len(x)
    log_prior = np.log(STEP_PRIORS[step] * WALK_PRIORS[walk])

    def likelihood(size: int) -> float:
        normal = stats.multivariate_normal(mean[:size], covariance[:size, :size])
        return float(normal.logpdf(share[:size]) + size / 2 * np.log(2 * np.pi)) if size else 0.0

    # The last interval, given the earlier ones
    gains = np.linalg.solve(covariance[:-1, :-1], covariance[:-1, -1])
    last = mean[-1] + gains @ (share[:-1] - mean[:-1])
    last_variance = covariance[-1, -1] - gains @ covariance[:-1, -1]
    # The law, and the accuracy to come with b given
    cross = prior @ design.T
    gain = np.linalg.solve(covariance, cross.T).T
    law, law_covariance = prior_mean + gain @ (share - mean), prior - gain @ cross.T
    walk_cross = shared(middle, middle[-1:], STEPS[step], WALKS[walk])[:, 0]
    ahead = np.array([middle[0], labels + MORE])
    then = (labels + MORE + 1.0) ** -exponent / powers[0]
    now = (labels + 1.0) ** -exponent / powers[0]
    to_come = np.array([1.0, -then])
    target_cross = design @ prior @ to_come + walk_cross
    target_variance = to_come @ prior @ to_come
    target_variance += shared(ahead, ahead, STEPS[step], WALKS[walk])[1, 1]
    solved = np.linalg.solve(covariance, target_cross)
    target = to_come @ prior_mean + solved @ (share - mean)
    target_variance -= solved @ target_cross
    slope_cross = (cross[1] @ np.linalg.solve(covariance, target_cross)) * -1.0 + (prior @ to_come)[1]
    b, spread = law[1], np.sqrt(law_covariance[1, 1])
    cut = stats.truncnorm(-b / spread, np.inf, loc=b, scale=spread)
    slope = slope_cross / spread**2
    accuracy = target + slope * (cut.mean() - b)
    accuracy_variance = target_variance - slope * slope_cross + slope**2 * cut.var()
    walked_at_end = walked[-1] @ np.linalg.solve(covariance, share - mean)
    return {
        "likelihood": likelihood(m) + log_prior + stats.norm.logsf(-b / spread),
        "earlier": likelihood(m - 1) + log_prior,
        "last": (last, last_variance),
        "law": law[0] + walked_at_end - law[1] * x,
        "accuracy": (accuracy, accuracy_variance),
        "gain": ((now - then) * cut.mean(), (now - then) ** 2 * cut.var()),
    }


def _weights(likelihoods: list[object]) -> Array:
    logs = np.array(likelihoods, dtype=np.float64)
    likely = np.exp(logs - logs.max())
    weights: Array = likely / likely.sum()
    return weights


def _mixture(weights: Array, moments: list[object]) -> list[float]:
    means, variances = np.array(moments, dtype=np.float64).T
    mean = weights @ means
    return [float(mean), float(np.sqrt(weights @ (variances + means**2) - mean**2))]
