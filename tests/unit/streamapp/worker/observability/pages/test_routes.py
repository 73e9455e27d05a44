"""What the port of a worker answers: our pages, and nothing of Faust's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[6]

PROGRAM = """
import asyncio
from types import SimpleNamespace
from streamapp.worker.app import add_parts, create_app
from streamapp.worker.observability.health import Health
from streamapp.worker.observability.metrics import Metrics
from streamapp.settings.loading import load_settings

asyncio.set_event_loop(asyncio.new_event_loop())
manager = SimpleNamespace(assignments=None, committer=None, progress=None)
app = create_app(load_settings(), "w0")
add_parts(app, load_settings(), "w0", manager=manager, metrics=Metrics(), health=Health())
app.web.init_server()
for route in app.web.web_app.router.routes():
    print(route.method, route.resource.canonical)
"""


def test_a_worker_serves_its_four_pages(tmp_path: Path) -> None:
    """In a process of its own: an app of Faust's changes what it is made in."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "GROVE_STATE_DIR": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    pages = ["/livez", "/readyz", "/metrics", "/models/{key}"]
    served = [line for line in done.stdout.splitlines() if line.startswith(("GET ", "HEAD ", "POST ", "* "))]
    assert sorted(served) == sorted(f"{method} {page}" for page in pages for method in ("GET", "HEAD")), (
        done.stderr
    )
