"""The counter RNG reproduces the printed vectors, compiled and not."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from core.numeric import rng

ROOT = Path(__file__).parents[4]


def test_bits_of_key_zero_are_the_published_splitmix64_outputs():
    words = [int(rng.bits(np.uint64(0), i)) for i in range(3)]
    assert words == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


@pytest.mark.parametrize(
    ("seed", "stream", "key", "uniforms"),
    [
        (42, 0, 0xB29ED950786F5AE3, [0.772056, 0.381651, 0.705846, 0.601633]),
        (42, 1, 0x42361FBC3495A5F2, [0.504308, 0.082444, 0.360572, 0.013948]),
        (0, 0, 0x48218226FF3CD4BF, [0.338052, 0.269130, 0.271567, 0.480170]),
    ],
)
def test_keys_and_uniforms(seed, stream, key, uniforms):
    stream_key = rng.stream_key(seed, stream)
    assert int(stream_key) == key
    assert [rng.uniform(stream_key, i) for i in range(4)] == pytest.approx(uniforms, abs=5e-7)


def test_normal_gamma_and_beta_vectors():
    key = rng.stream_key(42, 0)
    assert rng.normal(key, 0) == pytest.approx(-1.265742, abs=5e-7)
    shapes = (1.0, 2.5, 0.5)
    assert [rng.gamma(key, 0, a) for a in shapes] == pytest.approx([0.075242, 0.786555, 0.041897], abs=5e-7)
    assert [rng.gamma(key, 64, a) for a in shapes] == pytest.approx([0.350781, 1.543538, 0.613840], abs=5e-7)
    assert rng.beta(key, 0, 3.0, 2.0) == pytest.approx(0.490791, abs=5e-7)


def test_integer_covers_its_range_evenly():
    key = rng.stream_key(7, rng.QUERY_DECISION)
    drawn = np.bincount([rng.integer(key, i, 10) for i in range(20_000)], minlength=10)
    assert drawn.size == 10
    assert np.all(np.abs(drawn - 2000) < 4.5 * np.sqrt(20_000 * 0.1 * 0.9))


def test_normal_and_gamma_have_their_moments():
    key = rng.stream_key(11, rng.THETA_SAMPLING)
    n = 20_000
    normals = np.array([rng.normal(key, i) for i in range(n)])
    assert abs(normals.mean()) < 4.5 / np.sqrt(n)
    assert abs(normals.var() - 1.0) < 4.5 * np.sqrt(2.0 / n)
    gammas = np.array([rng.gamma(key, 10**7 + rng.GAMMA_BLOCK * i, 2.5) for i in range(n)])
    assert abs(gammas.mean() - 2.5) < 4.5 * np.sqrt(2.5 / n)


def test_the_rough_normal_variate_is_near():
    key = rng.stream_key(11, rng.RANDOMISED_THRESHOLD)
    errors = np.array([abs(rng.rough_normal(key, i) - rng.normal(key, i)) for i in range(20_000)])
    assert errors.max() < rng.ROUGH_NORMAL_ERROR
    assert np.median(errors) < 1e-6


def test_the_purposes_have_streams_of_their_own():
    streams = [value for name, value in vars(rng).items() if name.isupper() and type(value) is int]
    streams = [s for s in streams if s not in (rng.DRAW_BITS, rng.GAMMA_BLOCK, rng._MASK)]
    assert len(streams) >= 8
    assert len(set(streams)) == len(streams)


def test_the_same_bits_without_the_compiler():
    program = (
        "import numpy as np\n"
        "from core.numeric import rng\n"
        "key = rng.stream_key(2**40 + 3, rng.SPLIT_COIN)\n"
        "print(key, [float(rng.uniform(key, c)) for c in (0, 1, 2**62)], rng.integer(key, 5, 2**31),\n"
        "      float(rng.normal(key, 9)), float(rng.gamma(key, 0, 0.3)))\n"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            env={**os.environ, "NUMBA_DISABLE_JIT": flag},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for flag in ("0", "1")
    ]
    assert printed[0] == printed[1]
