"""Pages of a worker on Faust's web server: `/livez`, `/readyz`, `/metrics` (`/models/KEY`: snapshot_page.py).

The server has a separate thread and event loop (`web_in_thread`), so that it answers while the worker's loop
is busy.
"""

from __future__ import annotations

from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from streamapp.worker.observability.health import Health
from streamapp.worker.observability.pages.checks import answer


def add_pages(app: Any, health: Health, registry: CollectorRegistry) -> None:
    """Give the Faust `app` its pages."""

    @app.page("/livez", name="livez")  # type: ignore[untyped-decorator]
    async def livez(view: Any, request: Any) -> Any:
        status, text = answer("livez", health.liveness(), verbose="verbose" in request.query)
        return view.text(text, status=status)

    @app.page("/readyz", name="readyz")  # type: ignore[untyped-decorator]
    async def readyz(view: Any, request: Any) -> Any:
        status, text = answer("readyz", health.readiness(), verbose="verbose" in request.query)
        return view.text(text, status=status)

    @app.page("/metrics", name="metrics")  # type: ignore[untyped-decorator]
    async def metrics(view: Any, request: Any) -> Any:
        return view.bytes(
            generate_latest(registry), content_type=None, headers={"Content-Type": CONTENT_TYPE_LATEST}
        )
