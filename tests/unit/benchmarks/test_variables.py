import argparse
from pathlib import Path

from benchmarks.restart import Trial
from benchmarks.restore import NO_SNAPSHOTS
from benchmarks.rig.member import Member
from benchmarks.rig.systems import Options, worker_environment
from streamapp.settings.settings_model import Settings
from streamapp.settings.spellings import env_name
from topics.definitions import TopicNames


def test_what_workers_are_told_is_a_setting(tmp_path: Path) -> None:
    """A worker warns of others and goes on without them: nobody reads the warnings of a benchmark."""
    names, options = TopicNames("x."), Options("localhost:1", settings=NO_SNAPSHOTS)
    given = argparse.Namespace(session_ms=6000, commit_ms=100)
    trial = Trial(given, "localhost:1", names, "exactly_once", tmp_path)
    told = worker_environment(options, names, 4, "g", tmp_path)
    told |= worker_environment(trial._options, names, 4, "g", tmp_path)
    told |= Member("bench-0", options, names, 4, "g", tmp_path)._environment
    assert told.keys() <= {env_name(name) for name in Settings.model_fields}
    assert told["GROVE_KAFKA_SESSION_TIMEOUT_MS"] == "6000"
    assert told["GROVE_PROCESSING_GUARANTEE"] == "at_least_once"
