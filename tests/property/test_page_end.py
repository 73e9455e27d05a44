"""Kernels never read beyond the end of a buffer: behind these lies a page that kills whoever does."""

import signal
import subprocess
import sys

import pytest

from core.kernels import jit

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="pages are protected by mprotect"),
    pytest.mark.skipif(jit.DISABLED, reason="arrays know their end"),
]


def run(program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.property.page_end", program]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("program", ["records", "checksum", "json", "packed"])
def test_kernels_end_with_their_buffer(program: str) -> None:
    done = run(program)
    assert (done.returncode, done.stdout) == (0, "survived\n"), done.stderr


def test_the_page_behind_the_buffer_kills() -> None:
    assert run("beyond").returncode in (-signal.SIGSEGV, -signal.SIGBUS)
