"""File source: blocks of whole lines, unpacked while reading.

Blocks of about a megabyte keep memory constant whatever the size of the file, and give the parsers enough
to work on at once. Each knows the number of its first line, so that an error can name file and line.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from topics.errors import DatasetError

BLOCK_BYTES = 1 << 20
LONGEST_LINE = 64 << 20

_GZIP = b"\x1f\x8b"
_UTF8_MARK = b"\xef\xbb\xbf"
_OTHERS = {
    b"PK\x03\x04": "a zip archive; unpack it (gzip is read as it is)",
    b"BZh": "a bzip2 file; unpack it (gzip is read as it is)",
    b"\xfd7zXZ": "an xz file; unpack it (gzip is read as it is)",
    b"\x28\xb5\x2f\xfd": "a zstd file; unpack it (gzip is read as it is)",
    b"Rar!": "a rar archive; unpack it (gzip is read as it is)",
    b"PAR1": "a Parquet file; write it as CSV",
    b"\xff\xfe": "UTF-16 text; write it as UTF-8",
    b"\xfe\xff": "UTF-16 text; write it as UTF-8",
}


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole lines of a file; the last line of a file may lack its line end."""

    text: bytes
    line: int  # number of the first line, counted from 1


def blocks(path: Path, size: int = BLOCK_BYTES, quote: bytes | None = None) -> Iterator[LineBlock]:
    """Yield the unpacked content of a file in blocks of whole lines.

    With `quote` a line end inside quotes does not end a line: a block is cut where the quotes before it are
    even.
    """
    line = 1
    rest = b""
    for piece in _pieces(path, size):
        rest += piece
        cut = _last_line_end(rest, quote)
        if cut:
            yield LineBlock(rest[:cut], line)
            line += rest.count(b"\n", 0, cut)
            rest = rest[cut:]
        elif len(rest) > LONGEST_LINE:
            rule = "no quote may stay open" if quote and quote in rest else "a line must have an end"
            message = f"no line end within {LONGEST_LINE >> 20} MiB; {rule}"
            raise DatasetError(message, str(path), line)
    if rest:
        if quote and rest.count(quote) % 2:
            message = f"a quote {quote.decode()} is opened and never closed"
            raise DatasetError(message, str(path), line + rest[: rest.rfind(quote)].count(b"\n"))
        yield LineBlock(rest, line)


def _last_line_end(text: bytes, quote: bytes | None) -> int:
    """Return the length of the whole lines at the beginning of `text`; 0 if there is none."""
    cut = text.rfind(b"\n") + 1
    if quote and quote in text:
        while cut and text.count(quote, 0, cut) % 2:
            cut = text.rfind(b"\n", 0, cut - 1) + 1
    return cut


def _pieces(path: Path, size: int) -> Iterator[bytes]:
    """Yield the unpacked bytes of a file without a byte-order mark."""
    try:
        with path.open("rb") as raw, _unpacked(path, raw) as stream:
            piece = stream.read(size).removeprefix(_UTF8_MARK)
            while piece:
                yield piece
                piece = stream.read(size)
    except (EOFError, zlib.error, gzip.BadGzipFile) as failure:
        message = f"the gzip file is damaged: {failure}; fetch or pack it again"
        raise DatasetError(message, str(path)) from None
    except OSError as failure:
        message = f"cannot be read: {failure.strerror or failure}"
        raise DatasetError(message, str(path)) from None


def _unpacked(path: Path, raw: IO[bytes]) -> IO[bytes]:
    """Return the stream to read: the content decides, not the name."""
    start = raw.read(8)
    raw.seek(0)
    if not start:
        message = "is empty"
        raise DatasetError(message, str(path))
    if start.startswith(_GZIP):
        return gzip.GzipFile(fileobj=raw, mode="rb")  # type: ignore[return-value]
    for magic, what in _OTHERS.items():
        if start.startswith(magic):
            message = f"is {what}"
            raise DatasetError(message, str(path))
    return raw


def head(path: Path, size: int = BLOCK_BYTES, quote: bytes | None = None) -> LineBlock:
    """Return the first block of a file."""
    for block in blocks(path, size, quote):
        return block
    message = "is empty"
    raise DatasetError(message, str(path))
