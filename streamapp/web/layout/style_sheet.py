"""Style sheet: its files, and its address, which changes with the content."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

ASSETS: Final = "/assets"
"""Path below which the files lie; everybody may read them, also before signing in."""
FOLDER: Final = Path(__file__).with_name("assets")
_DIGEST: Final = hashlib.sha256((FOLDER / "grove.css").read_bytes()).hexdigest()
STYLE_SHEET: Final = f"{ASSETS}/grove.css?{_DIGEST[:12]}"
"""Address of the style sheet with a digest, so that no browser uses an old one."""
CACHE_S: Final = 7 * 24 * 3600
"""Seconds for which a browser may use its copy."""
