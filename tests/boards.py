"""Boards of Grafana as files: ``python -m tests.boards`` writes them anew (a test holds them current)."""

from __future__ import annotations

import json
from pathlib import Path

from streamapp.worker.observability.boards import BOARDS, board

FOLDER = Path(__file__).resolve().parents[1] / "monitoring" / "grafana" / "boards"


def text_of(name: str) -> str:
    return json.dumps(board(name), indent=1) + "\n"


if __name__ == "__main__":
    for name in BOARDS:
        (FOLDER / f"{name}.json").write_text(text_of(name))
