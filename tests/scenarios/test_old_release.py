"""The last release goes on with state that this tree has written, and stops at what it cannot read.

The old release runs from the sources of its tag, in a process without compiler.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.versions.installed import ROOT, NoReleaseError, newest_release, revision
from core.state_version import ALIKE_SINCE, NEW_WORDS
from streamapp.worker.journal.entry import encode
from streamapp.worker.task.task import Task
from tests.golden import units as golden
from tests.topology.logged import Logged
from tests.topology.partition import PARTITION

OLD = """
import json, sys
from pathlib import Path

import core
from core.state_version import STATE_VERSION
from streamapp.errors import StreamappError
from streamapp.worker.journal.entry import decode
from streamapp.worker.task.task import Task
from tests.golden import units as golden
from tests.topology.partition import PARTITION
from tests.unit.streamapp.worker.restore.test_tail import Journal

given = Path(sys.argv[1])


def outcome(name):
    journal = Journal()
    for value in json.loads((given / f"{name}.json").read_text()):
        journal.add(decode(bytes.fromhex(value)))
    try:
        journal.reader().newest()
    except StreamappError as error:
        return str(error)
    return "read"


task = Task.from_units(PARTITION, golden.CONFIG, None, golden.read(given / "units.bin"))
report = {"core": core.__file__, "version": STATE_VERSION, "digest": task.digest().hex()}
report["then"] = golden.goes_on(task, json.loads((given / "offsets.json").read_text()))
report["journals"] = {name: outcome(name) for name in ("plain", "newest")}
print(json.dumps(report))
"""


def newest_spec() -> dict[str, Any] | None:
    """Return a spec with a plug-in that came after version ALIKE_SINCE; None: there is none yet."""
    later = frozenset[str]().union(*(words for since, words in NEW_WORDS.items() if since > ALIKE_SINCE))
    words = [word for word in sorted(later) if re.fullmatch(r"(learner|query|drift)\.\w+", word)]
    return {words[0].partition(".")[0]: words[0].partition(".")[2]} if words else None


def write_journal(path: Path, spec: dict[str, Any] | None) -> None:
    """Write the journal of a partition, one of whose models has a spec."""
    live = Logged(golden.CONFIG)
    live.instances({"features": {"x": 1}, "label": "a"})
    schema = {"attributes": [{"name": "x"}]}
    live.control("create", key="k", schema=schema, spec=spec or {"learner": "h-tree"})
    assert live.dead_letters == []
    entries = live.ledger.cut(live.task.state_version)
    path.write_text(json.dumps([encode(entry).hex() for entry in entries]))


def old_sources(directory: Path) -> Path:
    """Return a directory with the sources of the newest release."""
    try:
        commit = revision(newest_release())
    except NoReleaseError as error:
        pytest.skip(str(error))
    command = ["git", "archive", "--format=tar", commit, "core", "topics", "streamapp", "tests", "benchmarks"]
    archive = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    directory.mkdir()
    subprocess.run(["tar", "-x"], cwd=directory, input=archive, check=True)
    return directory


@pytest.mark.timeout(600)
def test_the_old_release_goes_on_with_what_this_tree_has_written(tmp_path: Path) -> None:
    sources = old_sources(tmp_path / "old")
    partition = golden.played()
    units = list(partition.task.cut().units())
    golden.write(tmp_path / "units.bin", units)
    (tmp_path / "offsets.json").write_text(json.dumps(partition._offsets))
    write_journal(tmp_path / "plain.json", None)
    write_journal(tmp_path / "newest.json", newest_spec())
    environment = {**os.environ, "PYTHONPATH": str(sources), "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-c", OLD, str(tmp_path)]
    done = subprocess.run(command, cwd=sources, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["core"].startswith(str(sources))
    restored = Task.from_units(PARTITION, golden.CONFIG, None, units)
    assert report["digest"] == restored.digest().hex()
    assert report["then"] == json.loads(json.dumps(golden.goes_on(restored, partition._offsets)))
    assert report["journals"]["plain"] == "read"
    if newest_spec() is not None:
        assert re.search(
            r"its journal has state version 1\d, this release reads 4, ", report["journals"]["newest"]
        )
