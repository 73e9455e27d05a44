"""Fuzz the door through which models come in: ``python -m tests.fuzz --seconds 3600``.

Each execution mutates the snapshot of a small model, gives it the right checksum, and restores it; what is
accepted answers, learns, grows, drifts, explains and is exported, on kernels without a compiler whose words
refuse every index outside of them (tests/fuzz/guarded.py). What leaves them, hangs, or breaks where it was
found to be valid, is written to the corpus: it is mended in core/model/soundness.py or a plug-in's
``problem``, and tests/contract/test_fuzz_corpus.py holds it for good.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

os.environ["NUMBA_DISABLE_JIT"] = "1"

import numpy as np

CORPUS = Path(__file__).parent / "corpus.jsonl"
PATIENCE_S = 20.0
"""Of the processor: a hundred times what an execution takes."""


class Hang(Exception):
    """An execution that does not end."""


def main() -> int:
    """Run for so many seconds of the processor, which others may share; return 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="combinations whose name contains this")
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="where finds are written")
    parser.add_argument("--replay", action="store_true", help="run what the corpus holds, and nothing else")
    parser.add_argument("--unchecked", action="store_true", help="without the check: what it is there for")
    options = parser.parse_args()
    from core.model import soundness
    from tests.fuzz import guarded, models, mutate
    from tests.fuzz.exercise import exercise

    guarded.guard()
    if options.unchecked:
        soundness.check = lambda plan, ints: None
    if options.replay:
        return replay(options.corpus)
    names = [name for name in models.specs() if options.only in name]
    built = {name: models.make(name) for name in names}
    words = {name: mutate.words_of(model) for name, model in built.items()}
    for name, model in built.items():
        outcome = exercise(model.snapshot())
        assert outcome == "used", (name, outcome)
    print(f"{len(names)} combinations, {sum(map(len, words.values()))} words", flush=True)
    draw = np.random.default_rng(options.seed)
    signal.signal(signal.SIGVTALRM, _ring)
    counts: collections.Counter[str] = collections.Counter()
    signatures: set[str] = set()
    start = last = time.process_time()
    while time.process_time() - start < options.seconds:
        name = names[int(draw.integers(len(names)))]
        other = words[names[int(draw.integers(len(names)))]]
        changes = mutate.draw_changes(draw, built[name], words[name], other)
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE_S)
            outcome = exercise(mutate.wrapped(built[name], mutate.apply(words[name], changes)))
        except Exception as error:  # noqa: BLE001 - any is a find
            outcome = "found"
            signature = signature_of(error)
            if signature not in signatures:
                signatures.add(signature)
                find = {"model": name, "changes": changes, "why": f"{signature}: {error.__cause__ or error}"}
                print(f"FOUND {name} {find['why']}", flush=True)
                with options.corpus.open("a") as file:
                    file.write(json.dumps(find) + "\n")
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        counts[outcome] += 1
        if time.process_time() - last > 60.0:
            last = time.process_time()
            print(f"{last - start:.0f} s: {dict(counts)}, {len(signatures)} kinds of finds", flush=True)
    print(f"{time.process_time() - start:.0f} s: {dict(counts)}, {len(signatures)} kinds of finds")
    return 1 if signatures else 0


def replay(corpus: Path) -> int:
    """Run every find of a corpus; print what became of it, and return how many still lead outside."""
    from tests.fuzz import models, mutate
    from tests.fuzz.exercise import exercise

    left = 0
    for line in corpus.read_text().splitlines():
        find = json.loads(line)
        model = models.make(find["model"])
        words = mutate.words_of(model)
        changes = [(word % len(words), value) for word, value in find["changes"]]
        try:
            outcome = exercise(mutate.wrapped(model, mutate.apply(words, changes)))
        except Exception as error:  # noqa: BLE001 - any is a find
            left, outcome = left + 1, f"still there: {signature_of(error)}"
        print(outcome, find["model"], find["why"])
    return left


def signature_of(error: BaseException) -> str:
    """Return what finds of one kind have in common: the error and the functions it came out of."""
    cause = error.__cause__ or error
    frames = traceback.extract_tb(cause.__traceback__)
    inside = [f for f in frames if Path(f.filename).name not in ("guarded.py", "__main__.py")][-2:]
    return f"{type(cause).__name__} {' '.join(f'{Path(f.filename).name}:{f.name}' for f in inside)}"


def _ring(_number: int, _frame: object) -> None:
    raise Hang


if __name__ == "__main__":
    sys.exit(main())
