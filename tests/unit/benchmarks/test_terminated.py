"""A program that gets SIGTERM leaves its blocks, in which its processes are ended."""

import signal
import subprocess
import sys

PROGRAM = """
import signal
from benchmarks.rig.terminated import unwound_by_terminate
with unwound_by_terminate():
    try:
        print("begun", flush=True)
        while True:
            signal.pause()
    finally:
        print("left", flush=True)
"""


def test_a_terminated_program_leaves_its_blocks() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "begun\n"
        program.send_signal(signal.SIGTERM)
        assert program.stdout.read() == "left\n"
    assert program.returncode == 128 + signal.SIGTERM
