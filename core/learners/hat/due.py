"""Marks of due changes at the nodes of an adaptive tree while a record is being learned (``Subtree.due``)."""

from __future__ import annotations

from typing import Final

STARTS: Final = 1
"""An alternate tree starts beside the node."""
TAKES_OVER: Final = 2
"""The alternate tree takes the node's place."""
GOES: Final = 3
"""The alternate tree is removed."""
SPLITS: Final = 4
"""The leaf makes an attempt; ORDER times its rank is added: attempts are made in order."""
ORDER: Final = 8
LAST: Final = 1 << 40
"""The rank of the main tree: alternate trees may take places before it splits."""
JUDGED: Final = -1
"""At the root: detectors have seen the present record, and it comes again."""
