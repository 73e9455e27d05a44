"""IDX files (the format of MNIST): one array of bytes, held whole in memory."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import numpy.typing as npt

from topics.errors import DatasetError

MAGIC = b"\x00\x00\x08"
"""Two zero bytes and the type, unsigned bytes; the number of axes follows."""


def read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """Return the bytes of an IDX file, gzipped or not, in their shape; raise DatasetError for another file.

    The header is the magic number, the number of axes and the size of each, big-endian.
    """
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, gzip.BadGzipFile) as error:
            message = f"must be a whole gzip file: {error}"
            raise DatasetError(message, str(path)) from error
    if data[:3] != MAGIC or len(data) < 4 + 4 * data[3]:
        message = f"must begin with 00 00 08, an IDX file of bytes; it begins with {data[:3].hex(' ')}"
        raise DatasetError(message, str(path))
    start = 4 + 4 * data[3]
    shape = tuple(np.frombuffer(data, ">u4", data[3], 4).tolist())
    if len(data) - start != np.prod(shape, dtype=np.int64):
        sizes = " by ".join(map(str, shape))
        message = f"must hold {sizes} bytes after its header; it holds {len(data) - start}"
        raise DatasetError(message, str(path))
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)
