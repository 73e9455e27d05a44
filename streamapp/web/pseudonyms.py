"""Pseudonyms: names that topics and pages get in the place of the users' own names.

A pseudonym is an HMAC of the name with a key in a file, so that it is the same after a restart, and nobody
without the file can find the name. Without the file the topics have no persons any more.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path
from typing import Final

from streamapp.errors import UsageError

PREFIX: Final = "person-"
KEY_BYTES: Final = 32
DIGITS: Final = 10


class Pseudonyms:
    """The pseudonym of each name."""

    def __init__(self, path: Path) -> None:
        """Read the key, or make the file with a new one; UsageError if it has no key."""
        try:
            if not path.exists():
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(handle, "w", encoding="ascii") as file:
                    file.write(secrets.token_hex(KEY_BYTES) + "\n")
            self._key = bytes.fromhex(path.read_text(encoding="ascii"))
        except (OSError, ValueError) as error:
            message = f"--pseudonyms {path} cannot be used: {error}; name a new file, which gets a key"
            raise UsageError(message) from None
        if len(self._key) < KEY_BYTES:
            message = f"--pseudonyms {path} must have a key of {KEY_BYTES} bytes; name a new file"
            raise UsageError(message)

    def __call__(self, name: str) -> str:
        """Return the pseudonym of a name."""
        digest = hmac.digest(self._key, name.encode("utf-8", "surrogatepass"), hashlib.sha256)
        return PREFIX + digest.hex()[:DIGITS]
