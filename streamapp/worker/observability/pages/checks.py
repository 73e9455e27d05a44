"""The text of a health page, as Kubernetes' own components write it."""

from __future__ import annotations

from collections.abc import Sequence

from streamapp.worker.observability.health import Check


def answer(page: str, checks: Sequence[Check], *, verbose: bool) -> tuple[int, str]:
    """Return HTTP status and text: one line a check when `verbose` or when something failed."""
    failed = [check for check in checks if not check.ok]
    if not failed and not verbose:
        return 200, "ok"
    lines = [
        f"[{'+' if check.ok else '-'}]{check.name} {'ok' if check.ok else 'failed'}"
        + (f": {check.detail}" if check.detail else "")
        for check in checks
    ]
    lines.append(f"{page} check {'failed' if failed else 'passed'}")
    return (503 if failed else 200), "\n".join(lines) + "\n"
