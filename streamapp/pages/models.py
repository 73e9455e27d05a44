"""The page `/models/KEY`: the snapshot of one model, as it is between two runs of records."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from typing import Any, Final

from streamapp.errors import StreamappError, UsageError

SNAPSHOT: Final = "application/vnd.grove.model"
SECONDS: Final = 30.0  # a worker is waited for: a run may be under way


def snapshot_of(tasks: Iterable[Any], key: str) -> bytes | None:
    """Return the snapshot of a key's model; None if no task has one."""
    for task in tasks:
        slot = task.models.slot(key)
        if slot >= 0:
            snapshot: bytes = task.models.look(slot).snapshot()
            return snapshot
    return None


def add_model_page(app: Any, manager: Any) -> None:
    """Give the Faust `app` the page: it is served in another thread than that of the models."""

    @app.page("/models/{key:.+}", name="models")  # type: ignore[untyped-decorator]
    async def models(view: Any, request: Any, key: str) -> Any:
        reading = manager.between_runs(lambda tasks: snapshot_of(tasks, key))
        data = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(reading, app.loop))
        if data is None:
            return view.text(not_here(key), status=404)
        return view.bytes(data, content_type=None, headers={"Content-Type": SNAPSHOT})


def not_here(key: str) -> str:
    """Return what a worker says that has no such model."""
    return f"no model with the key {key!r} in the partitions of this worker\n"


def model_url(web: str, key: str) -> str:
    """Return the page's address; web: HOST:PORT."""
    return f"http://{web}/models/{urllib.parse.quote(key, safe='')}"


def fetch_model(web: str, key: str) -> bytes:
    """Return the snapshot that the worker at `web` has of a key's model."""
    if "://" in web or "/" in web or not web.rpartition(":")[2].isdigit():
        message = f"--web {web!r} must be HOST:PORT, for example 127.0.0.1:6066"
        raise UsageError(message)
    try:
        with urllib.request.urlopen(model_url(web, key), timeout=SECONDS) as page:  # noqa: S310 - http alone
            data: bytes = page.read()
            return data
    except urllib.error.HTTPError as error:
        said = error.read().decode("utf-8", "replace").strip()
        message = (
            f"{key!r} is no file, and the worker at {web} answers {error.code}: {said or error.reason}; name "
            "a file that 'grove prequential --save' wrote, or with --web the worker that has the key"
        )
        raise StreamappError(message) from None
    except OSError as error:
        reason = getattr(error, "reason", error)
        message = (
            f"{key!r} is no file, and no worker answers at {web} ({reason}); name a file that "
            "'grove prequential --save' wrote, or with --web the pages of a running worker"
        )
        raise StreamappError(message) from None
