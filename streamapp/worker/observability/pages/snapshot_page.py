"""The page `/models/KEY`: the snapshot of one model, as it is between two runs of records.

Any client that reaches the port may request it, as often as it likes. So between two runs only the model's
words are copied, one request after another, and the next copy waits until copying is a small share of the
elapsed time. A model that takes too long to copy is not served; `grove models export` reads it from Kafka.
The snapshot is made from the copy in a separate thread.
"""

from __future__ import annotations

import asyncio
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from core.model.model import Model
from streamapp.errors import StreamappError, UsageError

SNAPSHOT: Final = "application/vnd.grove.model"
SECONDS: Final = 30.0  # a worker is waited for: a run may be under way

LARGEST: Final = 32 << 20
"""Bytes of a model that is served: their copy takes a run's time at most."""
SHARE: Final = 0.02
"""The most of a worker's time that copies for this page may take, as a share."""
TIMEOUT_S: Final = 5.0
"""How long a request waits for its turn, at most."""


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A model that is not served."""

    size: int


class Busy(Exception):
    """The page has taken its share of the time."""


def copy_of(tasks: Iterable[Any], key: str) -> Model | TooLarge | None:
    """Return a copy of a key's model; None if no task has one."""
    for task in tasks:
        slot = task.models.keys.slot(key)
        if slot >= 0:
            size = task.models.cache.scale(slot).nbytes
            if size > LARGEST:
                return TooLarge(size)
            model: Model = task.models.cache.peek(slot)
            return Model(model.plan, model.ints.copy())
    return None


class Copies:
    """Makes copies of models, which together take a small share of the worker's time."""

    def __init__(self, read: Callable[[str], Awaitable[Model | TooLarge | None]]) -> None:
        """`read`: copies the model of a key between two runs."""
        self._read = read
        self._turn = asyncio.Lock()
        self._next = 0.0  # when the next copy may be made (seconds of the monotonic clock)

    async def of(self, key: str) -> Model | TooLarge | None:
        """Return the copy of a key's model when it is this request's turn; Busy if that takes too long."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await self._turn.acquire()
                try:
                    await asyncio.sleep(max(0.0, self._next - time.monotonic()))
                except BaseException:
                    self._turn.release()
                    raise
        except TimeoutError:
            raise Busy from None
        try:
            return await self._read(key)
        finally:
            self._turn.release()

    def took(self, seconds: float) -> None:
        """Note how long a copy held up the runs."""
        self._next = time.monotonic() + seconds / SHARE


def add_model_page(app: Any, manager: Any) -> None:
    """Give the Faust `app` the page, which is served in another thread than the models' thread."""

    def copy(tasks: list[Any], key: str) -> Model | TooLarge | None:
        start = time.perf_counter()
        try:
            return copy_of(tasks, key)
        finally:
            copies.took(time.perf_counter() - start)

    async def read(key: str) -> Model | TooLarge | None:
        reading = manager.between_runs(lambda tasks: copy(tasks, key))
        copied: Model | TooLarge | None = await asyncio.wrap_future(
            asyncio.run_coroutine_threadsafe(reading, app.loop)
        )
        return copied

    copies = Copies(read)

    @app.page("/models/{key:.+}", name="models")  # type: ignore[untyped-decorator]
    async def models(view: Any, request: Any, key: str) -> Any:
        try:
            copied = await copies.of(key)
        except Busy:
            return view.text(BUSY, status=429, headers={"Retry-After": "5"})
        if copied is None:
            return view.text(not_here(key), status=404)
        if isinstance(copied, TooLarge):
            return view.text(too_large(key, copied.size), status=413)
        data = await asyncio.to_thread(copied.snapshot)
        return view.bytes(data, content_type=None, headers={"Content-Type": SNAPSHOT})


BUSY: Final = (
    f"copies of models may take {SHARE:.0%} of the worker's time, and have; ask again later, or "
    "'grove models export' reads models from Kafka\n"
)


def too_large(key: str, size: int) -> str:
    """Return the text of the answer for a model that is too large to be served."""
    return (
        f"the model of {key!r} has {size} bytes; this page serves at most {LARGEST}, so that no run waits "
        "for it: 'grove models export' reads it from Kafka\n"
    )


def not_here(key: str) -> str:
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
        answer = error.read().decode("utf-8", "replace").strip()
        message = (
            f"{key!r} is no file, and the worker at {web} answers {error.code}: {answer or error.reason}; "
            "name a file that 'grove prequential --save' wrote, or with --web the worker that has the key"
        )
        raise StreamappError(message) from None
    except OSError as error:
        reason = getattr(error, "reason", error)
        message = (
            f"{key!r} is no file, and no worker answers at {web} ({reason}); name a file that "
            "'grove prequential --save' wrote, or with --web the pages of a running worker"
        )
        raise StreamappError(message) from None
