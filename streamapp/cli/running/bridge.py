"""`grove bridge`: connects label tools."""

import os
from pathlib import Path
from typing import Annotated

import typer

from streamapp.cli.options import SettingsOptions
from streamapp.cli.register import register
from streamapp.errors import UsageError

app = typer.Typer(help="Bridges to label tools.", no_args_is_help=True)

TOKEN, SECRET = "GROVE_LABEL_STUDIO_TOKEN", "GROVE_LABEL_STUDIO_WEBHOOK_SECRET"


def label_studio(
    options: SettingsOptions,
    url: Annotated[
        str, typer.Option("--url", help="Address of Label Studio.", metavar="URL", show_default=False)
    ],
    project: Annotated[
        int,
        typer.Option(
            "--project",
            help="Number of the project, as in the address of its page.",
            min=1,
            show_default=False,
        ),
    ],
    host: Annotated[
        str, typer.Option("--host", help="Address for webhooks.", metavar="ADDRESS")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", help="Port for webhooks; 0: no webhooks.", min=0, max=65_535)
    ] = 0,
    sweep: Annotated[
        float, typer.Option("--sweep-seconds", help="Seconds between two reads of all annotations.", min=1)
    ] = 60.0,
    from_name: Annotated[
        str, typer.Option("--choices", help="Name of the Choices in the project.")
    ] = "label",
    to_name: Annotated[
        str, typer.Option("--object", help="Name of the object that the choices label.")
    ] = "record",
    state: Annotated[
        Path | None,
        typer.Option("--state", help="File of the sent annotations; default: in state.dir.", metavar="FILE"),
    ] = None,
) -> None:
    """Send label requests to a project of Label Studio as tasks, and its annotations back as labels.

    The token is taken from GROVE_LABEL_STUDIO_TOKEN (or the file that GROVE_LABEL_STUDIO_TOKEN_FILE names).
    Ctrl-C ends it; the next start continues there, and nothing is requested or sent twice
    (docs/bridges.md).

    \\b
    [bold]Examples[/bold]
      grove bridge label-studio --url http://127.0.0.1:8080 --project 1
      grove bridge label-studio --url https://labels.example.com --project 7 --host 0.0.0.0 --port 9000
    """
    import threading
    from contextlib import ExitStack

    from streamapp.bridge.bridge import Bridge, BridgePlan
    from streamapp.bridge.label_studio import LabelStudio
    from streamapp.bridge.tasks import Choice
    from streamapp.bridge.webhooks import Webhooks
    from streamapp.cli.signals import interrupted_by_terminate
    from streamapp.settings.clients import output_reader

    token, secret = _secret(TOKEN), _secret(SECRET)
    if not token:
        message = f"{TOKEN} must be set to a token of Label Studio, or {TOKEN}_FILE to the file that holds it"
        raise UsageError(message)
    if port and host not in ("127.0.0.1", "::1", "localhost") and not secret:
        message = (
            f"--host {host} must be a loopback address unless {SECRET} is set: who reaches it can send labels"
        )
        raise UsageError(message)
    settings, kafka, names = options.connection()
    plan = BridgePlan(
        names,
        f"{settings.application_id}-label-studio",
        state or settings.state_dir / f"label-studio-{project}.sqlite",
        Choice(from_name, to_name),
        sweep,
        settings.text_max_bytes,
    )
    bridge = Bridge(plan, kafka, LabelStudio(url, token, project), output_reader(settings))
    with interrupted_by_terminate(), ExitStack() as stack:
        if port:
            try:
                webhooks = stack.enter_context(Webhooks((host, port), secret, bridge.taken))
            except OSError as error:
                message = f"--host {host} --port {port} cannot be listened on: {error.strerror}; name another"
                raise UsageError(message) from None
            threading.Thread(target=webhooks.serve_forever, name="webhooks", daemon=True).start()
            stack.callback(webhooks.shutdown)
        typer.echo(f"project {project} of {url} is bridged  (Ctrl-C ends it)")
        try:
            bridge.run()
        finally:
            bridge.stop()


def _secret(name: str) -> str:
    """Return the value of a variable, or the content of the file that NAME_FILE names."""
    file = os.environ.get(f"{name}_FILE")
    return Path(file).read_text(encoding="utf-8").strip() if file else os.environ.get(name, "").strip()


register(app, label_studio, "label-studio")
