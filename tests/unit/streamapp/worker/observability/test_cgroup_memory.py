"""The memory limit of a cgroup, of both versions, its own and one above."""

import asyncio
from pathlib import Path

import pytest

from streamapp.worker.observability.cgroup_memory import MIB, MemoryLimit, MemoryUse, process_memory
from streamapp.worker.observability.health import Health

NO_LIMIT_V1 = str(2**63 - 4096)


class Tree:
    """Files as the kernel has them, for a process in the cgroup /pods/worker."""

    def __init__(self, place: Path, version: int) -> None:
        self.version, self.root = version, place / "memory"
        self.own = self.root / "pods" / "worker"
        self.own.mkdir(parents=True)
        kind = "cgroup rw,relatime,memory" if version == 1 else "cgroup2 rw,relatime"
        (place / "mounts").write_text(f"proc /proc proc rw 0 0\ncgroup {self.root} {kind} 0 0\n")
        names = "7:cpu,cpuacct:/other\n4:memory:/pods/worker\n" if version == 1 else "0::/pods/worker\n"
        (place / "own").write_text(names)
        self.limit = MemoryLimit(place / "mounts", place / "own")

    def write(
        self, folder: Path, limit: int | None, used: int, *, unused: int = 0, read: int = 0, shared: int = 0
    ) -> None:
        """Let a cgroup have a limit, and use so many bytes: `unused` and `read` are pages of files that were
        read once and often, `shared` those of files in memory (tmpfs), which no disk has.
        """
        names = {1: ("limit_in_bytes", "usage_in_bytes", "total_"), 2: ("max", "current", "")}
        of_limit, of_use, whole = names[self.version]
        none = NO_LIMIT_V1 if self.version == 1 else "max"
        (folder / f"memory.{of_limit}").write_text(f"{none if limit is None else limit}\n")
        (folder / f"memory.{of_use}").write_text(f"{used}\n")
        fields = {"active_anon": 1, "shmem": shared, "file": unused + read + shared}
        fields |= {"inactive_file": unused, "active_file": read}
        text = "".join(f"{whole}{name} {value}\n" for name, value in fields.items())
        own = "inactive_file 1\nactive_file 1\n" if whole else ""  # without the cgroups below
        (folder / "memory.stat").write_text(own + text)


@pytest.fixture(params=[1, 2])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Tree:
    return Tree(tmp_path, request.param)


def test_pages_of_files_do_not_count(tree: Tree) -> None:
    tree.write(tree.own, 100 * MIB, 95 * MIB, unused=20 * MIB)
    assert tree.limit.tightest() == MemoryUse(75 * MIB, 100 * MIB)
    assert tree.limit.failure() == ""


def test_pages_of_files_that_are_read_often_do_not_count_either(tree: Tree) -> None:
    """The kernel takes both kinds back before it ends a process."""
    tree.write(tree.own, 100 * MIB, 95 * MIB, unused=5 * MIB, read=20 * MIB)
    assert tree.limit.tightest() == MemoryUse(70 * MIB, 100 * MIB)
    assert tree.limit.failure() == ""


def test_files_in_memory_count(tree: Tree) -> None:
    tree.write(tree.own, 100 * MIB, 95 * MIB, read=2 * MIB, shared=50 * MIB)
    assert tree.limit.tightest() == MemoryUse(93 * MIB, 100 * MIB)
    assert tree.limit.failure()


def test_the_line_names_use_limit_and_remedy(tree: Tree) -> None:
    tree.write(tree.own, 100 * MIB, 90 * MIB)
    assert tree.limit.failure() == (
        "the memory limit is near: 90 of 100 MiB of this worker's cgroup are used, and at the limit the "
        "kernel ends the worker; set models.max.bytes (models beyond it wait in state.dir), or raise the "
        "limit"
    )


def test_a_limit_that_was_near_stays_so_until_it_is_clearly_far(tree: Tree) -> None:
    near = []
    for percent in (89, 90, 86, 84, 86):
        tree.write(tree.own, 100 * MIB, percent * MIB)
        near.append(bool(tree.limit.failure()))
    assert near == [False, True, True, False, False]


def test_a_limit_above_counts(tree: Tree) -> None:
    tree.write(tree.own, 1000 * MIB, 50 * MIB)
    tree.write(tree.own.parent, 100 * MIB, 99 * MIB)
    assert tree.limit.tightest() == MemoryUse(99 * MIB, 100 * MIB)
    assert tree.limit.smallest() == 100 * MIB


def test_without_a_limit_nothing_is_near(tree: Tree) -> None:
    tree.write(tree.own, None, 95 * MIB)
    assert tree.limit.tightest() is None and tree.limit.failure() == ""
    assert tree.limit.smallest() is None


def test_the_smallest_limit_need_not_be_the_nearest(tree: Tree) -> None:
    tree.write(tree.own, 100 * MIB, 50 * MIB)
    tree.write(tree.own.parent, 1000 * MIB, 990 * MIB)
    assert tree.limit.smallest() == 100 * MIB
    assert tree.limit.tightest() == MemoryUse(990 * MIB, 1000 * MIB)


def test_a_container_that_sees_only_its_own_cgroup(tree: Tree) -> None:
    tree.write(tree.root, 100 * MIB, 95 * MIB)
    for folder in (tree.own, tree.own.parent):
        folder.rmdir()
    assert tree.limit.tightest() == MemoryUse(95 * MIB, 100 * MIB)


def test_a_system_without_cgroups(tmp_path: Path) -> None:
    assert MemoryLimit(tmp_path / "mounts", tmp_path / "own").tightest() is None


def test_a_process_can_have_no_more_than_the_machine_has() -> None:
    pages = int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    assert 0 < process_memory() <= pages


def test_readyz_is_red_and_the_log_has_each_change_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("streamapp.worker.observability.health.LOOK_SECONDS", 0)
    answers = iter(["", "the limit is near", "the limit is near", "", ""])
    health, red = Health(), []

    def look() -> str:
        red.append([check.detail for check in health.readiness() if check.name == "memory"])
        if (answer := next(answers, None)) is None:
            raise asyncio.CancelledError
        return answer

    health.memory = look
    with caplog.at_level("INFO"), pytest.raises(asyncio.CancelledError):
        asyncio.run(health.keep_watching_memory())
    assert red == [[], [], ["the limit is near"], ["the limit is near"], [], []]
    assert [r.message for r in caplog.records if "limit" in r.message] == [
        "the limit is near",
        "the memory limit is not near any more",
    ]
