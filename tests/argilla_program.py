"""Argilla's own server on SQLite: `python tests/argilla_program.py PORT FOLDER`, where it is installed.

It needs `pip install argilla-server fakeredis`. Its search engine does nothing, and its jobs run at once, so
that neither Elasticsearch nor Redis is needed: the bridge searches for nothing.
"""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[2])
os.environ |= {
    "ARGILLA_HOME_PATH": str(FOLDER),
    "ARGILLA_DATABASE_URL": f"sqlite+aiosqlite:///{FOLDER}/argilla.db",
    "ARGILLA_SEARCH_ENGINE": "nothing",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}

import fakeredis  # noqa: E402 - all of them read the environment, and `redis` first
import redis  # noqa: E402

redis.from_url = lambda *_, **__: fakeredis.FakeStrictRedis()

import argilla_server  # noqa: E402
import uvicorn  # noqa: E402
from argilla_server.contexts import accounts  # noqa: E402
from argilla_server.database import AsyncSessionLocal  # noqa: E402
from argilla_server.jobs import webhook_jobs  # noqa: E402
from argilla_server.models import User  # noqa: E402
from argilla_server.search_engine.base import SearchEngine  # noqa: E402


async def nothing(*_: Any, **__: Any) -> None:
    """Index nothing."""


async def answers(*_: Any, **__: Any) -> bool:
    return True


async def new_instance(cls: Any) -> Any:
    return cls()


methods: dict[str, Any] = dict.fromkeys(SearchEngine.__abstractmethods__, nothing)
methods |= {"new_instance": classmethod(new_instance), "ping": answers}
SearchEngine.registered_classes["nothing"] = type("Nothing", (SearchEngine,), methods)


def at_once(*arguments: Any) -> None:
    """Run the job of a webhook in a thread."""
    job = webhook_jobs.notify_event_job
    threading.Thread(target=lambda: asyncio.run(job(*arguments)), daemon=True).start()


async def make_owner() -> None:
    async with AsyncSessionLocal() as db:
        secret = accounts.hash_password("12345678")
        await User.create(
            db,
            first_name="ann",
            username="ann",
            role="owner",
            api_key="owner.apikey",
            password_hash=secret,
        )


if __name__ == "__main__":
    webhook_jobs.notify_event_job.delay = at_once
    place = Path(argilla_server.__file__).parent
    # Its own command does not run with the newest version of click.
    alembic = [sys.executable, "-P", "-m", "alembic", "-c", "alembic.ini", "upgrade", "head"]
    subprocess.run(alembic, cwd=place, check=True)
    asyncio.run(make_owner())
    uvicorn.run(argilla_server.app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
