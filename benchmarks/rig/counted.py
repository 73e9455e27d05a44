"""Our worker, which counts what its turns cost: CPU by thread first, then calls in Python.

    python -m benchmarks.rig.counted FILE WARM_SECONDS SECONDS worker …

It counts from WARM_SECONDS after the first round on: the CPU of SECONDS, then the calls of as many. FILE gets
them as JSON. The product contains none of this: two methods are wrapped here.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

from benchmarks.rig.process import threads_of
from streamapp.cli.main import main as run
from streamapp.worker.driver.pace import RoundTime
from streamapp.worker.driver.thread import ConsumerThread

LOOP_TURN = "BaseEventLoop._run_once"
MAIN, CONSUMER = "main", "consumer"
"""The threads whose calls are counted: of rounds and commits, and of requests of records."""


class Calls:
    """The calls of one thread: of each function in Python, and of the built-in functions in it."""

    def __init__(self) -> None:
        self._own: Counter[CodeType] = Counter()
        self._of_builtins: Counter[CodeType] = Counter()  # by the function in Python that calls them

    def begin(self) -> None:
        """Count the calls of this thread from now on."""
        sys.setprofile(self._note)

    def end(self) -> None:
        """Stop counting in this thread."""
        sys.setprofile(None)

    def _note(self, frame: Any, event: str, _called: Any) -> None:
        if event == "call":
            self._own[frame.f_code] += 1
        elif event == "c_call":
            self._of_builtins[frame.f_code] += 1

    def by_function(self) -> Counter[str]:
        """Return the calls of each function in Python and of the built-in functions in it, most first."""
        named: Counter[str] = Counter()
        for code, n in (self._own + self._of_builtins).items():
            named[f"{code.co_qualname} {'/'.join(code.co_filename.split('/')[-2:])}"] += n
        return named

    def of(self, function: str) -> int:
        """Return the calls of a function in Python, without the built-in functions in it."""
        return sum(n for code, n in self._own.items() if code.co_qualname == function)


def _cpu_by_thread() -> dict[str, float]:
    """Return CPU seconds by the name that Python has for a thread, or else the kernel."""
    names = {
        thread.native_id: thread.name for thread in threading.enumerate() if thread.native_id is not None
    }
    return threads_of(os.getpid(), names)


def _wake_ups() -> int:
    """Return how often a thread of this process has waited, and was woken."""
    waits = 0
    for task in Path("/proc/self/task").iterdir():
        lines = (task / "status").read_text().splitlines()
        waits += sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
    return waits


class Counting:
    """The rounds of this worker, and the loop of its consumer's thread."""

    def __init__(self, file: Path, warm_s: float, seconds: float) -> None:
        self._file, self._warm_s, self._seconds = file, warm_s, seconds
        self.rounds = 0
        self.consumer_loop: asyncio.AbstractEventLoop | None = None
        self._measuring: asyncio.Task[None] | None = None

    def note_round(self) -> None:
        """Count a round; the first one begins the measurement."""
        self.rounds += 1
        if self._measuring is None:
            self._measuring = asyncio.get_running_loop().create_task(self._measure())

    async def _measure(self) -> None:
        await asyncio.sleep(self._warm_s)
        cpu = await self._cpu()
        calls = await self._calls()
        written = self._file.with_suffix(".part")
        written.write_text(json.dumps(cpu | {"calls": calls}))
        written.rename(self._file)

    async def _cpu(self) -> dict[str, Any]:
        collections = [generation["collections"] for generation in gc.get_stats()]
        began, rounds, wakes = time.monotonic(), self.rounds, _wake_ups()
        cpu, threads = time.process_time(), _cpu_by_thread()
        await asyncio.sleep(self._seconds)
        spent, n = time.process_time() - cpu, self.rounds - rounds
        threads_after, wakes = _cpu_by_thread(), _wake_ups() - wakes
        of_threads = {
            name: (seconds - threads.get(name, 0.0)) / n * 1e3 for name, seconds in threads_after.items()
        }
        collections_after = [generation["collections"] for generation in gc.get_stats()]
        return {
            "turns_per_second": round(n / (time.monotonic() - began), 1),
            "cpu_ms_per_turn": round(spent / n * 1e3, 3),
            "wake_ups_per_turn": round(wakes / n, 1),
            "cores": round(spent / (time.monotonic() - began), 3),
            "cpu_ms_by_thread": {name: round(ms, 3) for name, ms in sorted(of_threads.items()) if ms > 0.0},
            "garbage_collections": [
                now - before for before, now in zip(collections, collections_after, strict=True)
            ],
        }

    async def _calls(self) -> dict[str, Any]:
        counted = {MAIN: Calls(), CONSUMER: Calls()}
        assert self.consumer_loop is not None
        rounds = self.rounds
        counted[MAIN].begin()
        self.consumer_loop.call_soon_threadsafe(counted[CONSUMER].begin)
        await asyncio.sleep(self._seconds)
        counted[MAIN].end()
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()

        def end() -> None:
            counted[CONSUMER].end()
            loop.call_soon_threadsafe(ended.set)

        n = self.rounds - rounds
        self.consumer_loop.call_soon_threadsafe(end)
        await ended.wait()
        result = {}
        for thread, calls in counted.items():
            names = calls.by_function()
            result[thread] = {
                "per_turn": round(names.total() / n),
                "loop_turns_per_turn": round(calls.of(LOOP_TURN) / n, 1),
                "by_function": {name: round(count / n, 1) for name, count in names.most_common()},
            }
        return result


def install(counting: Counting) -> None:
    """Let a worker's methods report to a counting."""
    note: Callable[..., None] = RoundTime.note
    on_start: Callable[..., Any] = ConsumerThread.on_start

    def counted(self: RoundTime, began: float, ended: float, process_s: float) -> None:
        note(self, began, ended, process_s)
        counting.note_round()

    async def started(self: ConsumerThread) -> None:
        await on_start(self)
        counting.consumer_loop = asyncio.get_running_loop()

    RoundTime.note = counted  # type: ignore[method-assign]
    ConsumerThread.on_start = started  # type: ignore[method-assign]


def main() -> int:
    file, warm_s, seconds = Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    del sys.argv[1:4]
    install(Counting(file, warm_s, seconds))
    return run()


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # as the installed command does
