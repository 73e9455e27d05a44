"""`grove web`."""

from pathlib import Path
from typing import Annotated

import typer

from streamapp.cli.options import SettingsOptions
from streamapp.errors import StreamappError, UsageError


def web(
    given: SettingsOptions,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on.", metavar="ADDRESS")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="0 takes a free one.", min=0, max=65_535)] = 8080,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            help="Read requests and labels from this time on, ISO 8601; default: all that is retained.",
            metavar="TIME",
        ),
    ] = None,
    users: Annotated[
        Path | None, typer.Option("--users", help="Who may sign in; needed off loopback.", metavar="FILE")
    ] = None,
    add_user: Annotated[
        str | None,
        typer.Option(
            "--add-user", help="Add a user to the file, or set his password, and end.", metavar="NAME"
        ),
    ] = None,
    annotator: Annotated[
        str, typer.Option("--annotator", help="Name in every label, without --users.", metavar="NAME")
    ] = "web",
    state: Annotated[
        Path | None,
        typer.Option("--state", help="What is kept; default: web.sqlite in state.dir.", metavar="FILE"),
    ] = None,
    lease: Annotated[
        float, typer.Option("--lease-seconds", help="For so long a card is one annotator's.", min=1)
    ] = 300,
    undo: Annotated[
        float, typer.Option("--undo-seconds", help="For so long an answer can be taken back.", min=0)
    ] = 5,
    guess: Annotated[
        bool, typer.Option("--show-guess/--hide-guess", help="Show the model's guess before the answer.")
    ] = False,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", help="Of TLS, with its chain (PEM).", metavar="FILE")
    ] = None,
    private_key: Annotated[
        Path | None, typer.Option("--private-key", help="Of the certificate (PEM).", metavar="FILE")
    ] = None,
) -> None:
    """Answer label requests in the browser: one card, one key a class (docs/web.md).

    It needs the extra 'web' (pip install 'streamgrove[web]'). Ctrl-C ends it; what was not sent is
    sent by the next one.

    \b
    [bold]Examples[/bold]
      grove web
      grove web --users users.txt --add-user ann
      grove web --host 0.0.0.0 --users users.txt --certificate cert.pem --private-key key.pem
    """
    import importlib.util

    from streamapp.cli.signals import interrupted_by_terminate

    missing = [name for name in ("nicegui", "argon2") if importlib.util.find_spec(name) is None]
    if missing:
        message = (
            f"grove web needs {' and '.join(missing)}; install them with: pip install 'streamgrove[web]'"
        )
        raise StreamappError(message)
    if add_user is not None:
        _add(users, add_user)
        return
    from streamapp.web.application import WebPlan, run_web
    from streamapp.web.label_queue import Terms

    settings, kafka, names = given.connection()
    terms = Terms(
        round(lease * 1000),
        round(undo * 1000),
        settings.event_time_max_jump_ms,
        text_max=settings.text_max_bytes,
    )
    plan = WebPlan(
        state or settings.state_dir / "web.sqlite",
        names,
        host,
        port,
        _milliseconds(since),
        users,
        annotator,
        certificate,
        private_key,
        not guess,
        terms,
    )
    with interrupted_by_terminate():
        run_web(plan, kafka, lambda address: typer.echo(f"grove web is at {address}  (Ctrl-C ends it)"))


def _add(users: Path | None, name: str) -> None:
    from streamapp.web.users import add_user

    if users is None:
        message = "--add-user needs --users FILE, where the user is added"
        raise UsageError(message)
    add_user(users, name, typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    typer.echo(f"{name} may sign in")


def _milliseconds(since: str | None) -> int | None:
    """Return a time in ms since the epoch; one without a zone is that of this machine."""
    from datetime import datetime

    if since is None:
        return None
    try:
        return round(datetime.fromisoformat(since).timestamp() * 1000)
    except (ValueError, OverflowError):
        message = f"--since {since} must be a time such as 2026-11-22T18:00:00+01:00"
        raise UsageError(message) from None
