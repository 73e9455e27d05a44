"""Shares of a core: quotas of the kernel, and errors where they cannot be set."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.rig.core_share import Hierarchy, NoCoreShares, core_share, find_hierarchy, quota_of

SPINS = "print(flush=True)\nwhile True: pass"
MOST_CHECKS = 1_000_000


@pytest.fixture
def spinning() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", SPINS], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_a_held_process_is_throttled_and_free_afterwards(spinning: subprocess.Popen[bytes]) -> None:
    try:
        with core_share(spinning.pid, 0.1) as group:
            assert (group / "cgroup.procs").read_text().split() == [str(spinning.pid)]
            for _ in range(MOST_CHECKS):
                figures = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
                if int(figures["nr_throttled"]) > 2:
                    break
            else:
                pytest.fail(f"the kernel did not throttle it: {figures}")
    except NoCoreShares:
        pytest.skip("the cgroups of CPU cannot be written here")
    assert not group.exists()
    assert spinning.poll() is None


@pytest.mark.parametrize(
    ("version", "files"),
    [
        (1, {"cpu.cfs_quota_us": "2000", "cpu.cfs_period_us": "20000", "cpu.shares": "262144"}),
        (2, {"cpu.max": "2000 20000", "cpu.weight": "10000"}),
    ],
)
def test_each_version_has_its_files(version: int, files: dict[str, str], tmp_path: Path) -> None:
    written: dict[str, str] = {}
    with (
        pytest.raises(OSError, match="not empty"),
        core_share(77, 0.1, Hierarchy(tmp_path, version)) as group,
    ):
        written = {path.name: path.read_text() for path in group.iterdir()}
    assert written == files | {"cgroup.procs": "77"}


def test_a_small_share_has_a_longer_period() -> None:
    assert quota_of(0.5) == (10_000, 20_000)
    assert quota_of(0.01) == (1_000, 100_000)


@pytest.mark.parametrize("share", [0.0, -1.0, 1e6, float("nan")])
def test_a_share_is_a_part_of_the_machine(share: float) -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        quota_of(share)


def test_the_hierarchy_is_found_by_mounts(tmp_path: Path) -> None:
    mounts, own = tmp_path / "mounts", tmp_path / "cgroup"
    (tmp_path / "v1" / "a").mkdir(parents=True)
    own.write_text("2:cpu,cpuacct:/a\n0::/\n")
    mounts.write_text(f"cgroup {tmp_path}/v1 cgroup rw,cpu,cpuacct 0 0\n")
    assert find_hierarchy(mounts, own) == Hierarchy(tmp_path / "v1" / "a", 1)
    own.write_text("2:cpu,cpuacct:/hidden\n")
    assert find_hierarchy(mounts, own) == Hierarchy(tmp_path / "v1", 1)
    root = tmp_path / "v2"
    root.mkdir()
    (root / "cgroup.controllers").write_text("cpuset cpu io\n")
    (root / "cgroup.subtree_control").write_text("")
    mounts.write_text(f"cgroup2 {root} cgroup2 rw 0 0\n")
    assert find_hierarchy(mounts, own) == Hierarchy(root, 2)
    assert (root / "cgroup.subtree_control").read_text() == "+cpu"


def test_without_quotas_the_error_names_the_remedy(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("tmpfs /run tmpfs rw 0 0\n")
    with pytest.raises(NoCoreShares, match="controller cpu: mount one"):
        find_hierarchy(mounts)
    missing = tmp_path / "missing"
    with (
        pytest.raises(NoCoreShares, match=r"cannot be written .*run this program as root"),
        core_share(1, 0.5, Hierarchy(missing, 2)),
    ):
        pass
