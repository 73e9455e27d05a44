"""File source: blocks of whole lines, unpacked while reading.

Blocks of about a megabyte keep memory constant for files of any size, and are large enough for the parsers to
be efficient. Each block has the number of its first line, so that an error can name file and line.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from topics.errors import DatasetError

BLOCK_BYTES = 1 << 20
LONGEST_LINE = 64 << 20

NEVER_CLOSED = (
    'a quote " is opened and never closed; close it, write """" for a quote alone in a cell, or read quotes '
    "as ordinary characters (--no-quotes)"
)

_GZIP = b"\x1f\x8b"
_TAR, _TAR_AT = b"ustar", 257
_UTF8_MARK = b"\xef\xbb\xbf"
_OTHERS = {
    b"PK\x03\x04": "a zip archive; unpack it (gzip is read as it is)",
    b"BZh": "a bzip2 file; unpack it (gzip is read as it is)",
    b"\xfd7zXZ": "an xz file; unpack it (gzip is read as it is)",
    b"\x28\xb5\x2f\xfd": "a zstd file; unpack it (gzip is read as it is)",
    b"Rar!": "a rar archive; unpack it (gzip is read as it is)",
    b"PAR1": "a Parquet file; name it alone and not packed",
    b"\xff\xfe": "UTF-16 text; write it as UTF-8",
    b"\xfe\xff": "UTF-16 text; write it as UTF-8",
}


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole lines of a file; the last line of a file may lack its line end."""

    text: bytes
    line: int  # number of the first line, counted from 1


class Ends(Protocol):
    """Takes the pieces of a file in order, and cuts them at the ends of lines or records."""

    def add(self, piece: bytes) -> bytes:
        """Return the complete lines or records that were not returned before."""

    def __len__(self) -> int:
        """Return the length of the rest."""

    @property
    def rest(self) -> bytes:
        """Return the text after the last whole line or record."""

    @property
    def opened(self) -> int | None:
        """Return the place in the rest of a quote that is not closed, or None."""


class LineEnds:
    """Cuts a text where its lines end."""

    opened = None

    def __init__(self) -> None:
        self._text = bytearray()

    def add(self, piece: bytes) -> bytes:
        """Return the lines that end in the piece, from their beginnings on."""
        cut = piece.rfind(b"\n") + 1
        if not cut:
            self._text += piece
            return b""
        lines = bytes(self._text) + piece[:cut]
        self._text = bytearray(piece[cut:])
        return lines

    def __len__(self) -> int:
        return len(self._text)

    @property
    def rest(self) -> bytes:
        """Return the line that has no end yet."""
        return bytes(self._text)


def blocks(path: Path, size: int = BLOCK_BYTES, ends: Ends | None = None) -> Iterator[LineBlock]:
    """Yield the unpacked content of a file in blocks of whole lines, or of units that `ends` cuts."""
    ends = LineEnds() if ends is None else ends
    line = 1
    for piece in _pieces(path, size):
        text = ends.add(piece)
        if text:
            yield LineBlock(text, line)
            line += text.count(b"\n")
        elif len(ends) > LONGEST_LINE:
            raise _too_long(path, line, ends)
    rest = ends.rest
    if ends.opened is not None:
        raise DatasetError(NEVER_CLOSED, str(path), line + rest.count(b"\n", 0, ends.opened))
    if rest:
        yield LineBlock(rest, line)


def _too_long(path: Path, line: int, ends: Ends) -> DatasetError:
    if ends.opened is not None:
        line += ends.rest.count(b"\n", 0, ends.opened)
        rule = (
            "the quote that is opened here must be closed, or quotes read as other characters (--no-quotes)"
        )
    else:
        rule = "a line must have an end"
    return DatasetError(f"no line end within {LONGEST_LINE >> 20} MiB; {rule}", str(path), line)


def beginning(path: Path, size: int = BLOCK_BYTES, lines: int = 3) -> tuple[bytes, bool]:
    """Return the first whole lines of a file, and whether these are the whole file."""
    text = b""
    for piece in _pieces(path, size):
        if text.count(b"\n") >= lines or len(text) > LONGEST_LINE:
            return text[: text.rfind(b"\n") + 1], False
        text += piece
    return text, True


def _pieces(path: Path, size: int) -> Iterator[bytes]:
    """Yield the unpacked bytes of a file without a byte-order mark.

    Lines that end with a carriage return alone, as on the first Macintosh, get line feeds.
    """
    try:
        with path.open("rb") as raw, _unpacked(path, raw) as stream:
            piece = stream.read(size)
            if stream is not raw:
                _check_unpacked(path, piece)
            piece = piece.removeprefix(_UTF8_MARK)
            has_returns = b"\r" in piece[:-1] and b"\n" not in piece
            while piece:
                yield piece.replace(b"\r", b"\n") if has_returns else piece
                piece = stream.read(size)
    except (EOFError, zlib.error, gzip.BadGzipFile) as failure:
        message = f"the gzip file is damaged: {failure}; fetch or pack it again"
        raise DatasetError(message, str(path)) from None
    except OSError as failure:
        message = f"cannot be read: {failure.strerror or failure}"
        raise DatasetError(message, str(path)) from None


def _unpacked(path: Path, raw: IO[bytes]) -> IO[bytes]:
    """Return the stream to read; the content decides about unpacking, not the name."""
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


def _check_unpacked(path: Path, start: bytes) -> None:
    """Refuse a gzip file whose content is packed again, or no text."""
    inside = {**_OTHERS, _GZIP: "a gzip file; unpack it once"}
    kinds = [what for magic, what in inside.items() if start.startswith(magic)]
    if start[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        kinds.append("a tar archive; unpack it and name its files")
    if kinds:
        message = f"is packed with gzip, and its content is {kinds[0]}"
        raise DatasetError(message, str(path))


def head(path: Path, size: int = BLOCK_BYTES) -> LineBlock:
    """Return the first block of a file."""
    for block in blocks(path, size):
        return block
    message = "is empty"
    raise DatasetError(message, str(path))
