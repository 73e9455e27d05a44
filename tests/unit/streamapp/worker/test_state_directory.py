"""A worker's directory: made, locked by one process at a time, and a message that names the holder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streamapp.errors import SettingsError, StateDirectoryError
from streamapp.worker.state_directory import StateDirectory, default_instance
from tests.disks import fill, read_only, small_disk

HOLD = """
import sys
from pathlib import Path
from streamapp.worker.state_directory import StateDirectory
with StateDirectory(Path(sys.argv[1]), "worker-1"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_directory_is_made_and_can_be_opened_again_after_it_was_closed(tmp_path: Path) -> None:
    for _ in range(2):
        with StateDirectory(tmp_path / "state", "worker-1") as directory:
            assert directory.path == tmp_path / "state" / "worker-1"
            assert (directory.path / "lock").read_text() == str(os.getpid())


def test_two_workers_have_their_own(tmp_path: Path) -> None:
    with StateDirectory(tmp_path, "worker-1"), StateDirectory(tmp_path, "worker-2"):
        assert {path.name for path in tmp_path.iterdir()} == {"worker-1", "worker-2"}


def test_a_second_process_is_refused_and_told_who_holds_it_until_that_one_dies(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(SettingsError, match=f"process {holder.pid} holds .*worker-1") as refused:
            StateDirectory(tmp_path, "worker-1").__enter__()
        assert refused.value.exit_code == 78
        assert "group.instance.id=worker-1 must be used by one process at a time" in str(refused.value)
        holder.kill()
        holder.wait(10)
    with StateDirectory(tmp_path, "worker-1"):
        pass  # the lock died with its holder


def test_a_directory_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="state.dir=.*file must be a directory that can be written"):
        StateDirectory(tmp_path / "file", "worker-1").__enter__()


def test_the_default_name_of_a_worker_can_be_a_group_instance_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "Rechner der Küche")
    assert default_instance(3) == "Rechner-der-K-che-3"


def test_a_disk_that_takes_nothing_may_be_mended_while_a_worker_is_started_again(tmp_path: Path) -> None:
    """After an error of the settings (exit code 78) a parent would stop all of its workers."""
    with small_disk(tmp_path / "disk", "64k") as place:
        with StateDirectory(place, "w"):
            pass
        (place / "w" / "lock").write_text("")
        ballast = fill(place)
        with pytest.raises(StateDirectoryError, match="No space left on device; make room there") as full:
            StateDirectory(place, "w").__enter__()
        assert full.value.exit_code == 1
        ballast.unlink()
        with (
            read_only(place),
            pytest.raises(StateDirectoryError, match="Read-only file system; make room there or let it be"),
        ):
            StateDirectory(place, "w").__enter__()
        with StateDirectory(place, "w") as directory:
            assert (directory.path / "lock").read_text() == str(os.getpid())


def test_a_directory_that_was_deleted_is_made_again_and_locked(tmp_path: Path) -> None:
    with StateDirectory(tmp_path / "state", "worker-1") as directory:
        assert directory.failure() == ""
        shutil.rmtree(tmp_path / "state")
        assert directory.failure().startswith(f"{directory.path} is gone; it is made again")
        assert directory.failure() == ""
        with pytest.raises(SettingsError, match=f"process {os.getpid()} holds"):
            StateDirectory(tmp_path / "state", "worker-1").__enter__()


def test_a_directory_that_another_process_has_taken_meanwhile_is_left_alone(tmp_path: Path) -> None:
    with StateDirectory(tmp_path / "state", "worker-1") as directory:
        shutil.rmtree(tmp_path / "state")
        with StateDirectory(tmp_path / "state", "worker-1"):
            assert "is gone: group.instance.id=worker-1 must be used by one" in directory.failure()
        assert "it is made again" in directory.failure()


def test_a_directory_is_not_made_again_below_a_disk_that_is_not_mounted(tmp_path: Path) -> None:
    place = tmp_path / "state"
    with small_disk(tmp_path / "disk", "1m") as disk:
        place.mkdir()
        subprocess.run(["mount", "--bind", disk, place], check=True)
        with StateDirectory(place, "worker-1") as directory:
            subprocess.run(["umount", "-l", place], check=True)
            for _ in range(2):
                assert f"is gone, and {place} is on another disk than before" in directory.failure()
            assert [*place.iterdir()] == []
            subprocess.run(["mount", "--bind", disk, place], check=True)
            try:
                assert directory.failure() == ""
            finally:
                subprocess.run(["umount", "-l", place], check=True)
