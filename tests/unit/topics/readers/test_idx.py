"""IDX files: their shape, and what is said about files that are none."""

import gzip
from pathlib import Path

import pytest

from topics.errors import DatasetError
from topics.readers.idx import read_idx

IMAGES = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255])


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_two_images_of_one_row(tmp_path: Path, pack) -> None:
    (tmp_path / "images").write_bytes(pack(IMAGES))
    assert read_idx(tmp_path / "images").tolist() == [[[1, 2, 3]], [[4, 5, 255]]]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "must begin with 00 00 08, an IDX file of bytes; it begins with "),
        (b"\x00\x00\x0d" + IMAGES[3:], "it begins with 00 00 0d"),
        (IMAGES[:9], "must begin with 00 00 08"),
        (IMAGES[:-1], "must hold 2 by 1 by 3 bytes after its header; it holds 5"),
        (IMAGES + b"\x00", "it holds 7"),
        (gzip.compress(IMAGES, mtime=0)[:-9], "must be a whole gzip file"),
    ],
)
def test_a_file_that_is_none_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "labels").write_bytes(content)
    with pytest.raises(DatasetError, match=said) as refused:
        read_idx(tmp_path / "labels")
    assert str(tmp_path / "labels") in str(refused.value)
