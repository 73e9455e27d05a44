"""Workers of the last release and of this tree in one group: upgrade, rollback, a word that is new."""

from pathlib import Path

import pytest

from benchmarks.versions.__main__ import broken, parse, releases, run
from benchmarks.versions.installed import NoReleaseError, newest_release
from streamapp.embedded import EmbeddedBroker

pytestmark = [pytest.mark.broker, pytest.mark.nightly, pytest.mark.timeout(7200)]


def test_a_mixed_group_loses_nothing_and_stops_what_the_old_release_cannot_read(
    private_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    try:
        release = newest_release()
    except NoReleaseError as error:
        pytest.skip(str(error))
    old, new = releases(release, tmp_path)
    report = run(parse(["--seconds", "3", "--rate", "150"]), tmp_path, private_broker, old, new)
    assert broken(report) == {}, report
    assert report["rows"] > 1000, report
    assert set(report["pauses"]) >= {"upgrade", "rollback", "new leaves and returns"}, report
