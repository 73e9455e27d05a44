"""`grove bridge`: connects label tools."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from streamapp.cli.options import SettingsOptions
from streamapp.cli.register import register
from streamapp.errors import UsageError

if TYPE_CHECKING:
    from streamapp.bridge.hook_formats import HookFormat
    from streamapp.bridge.label_tool import LabelTool

app = typer.Typer(help="Bridges to label tools.", no_args_is_help=True)

STUDIO_TOKEN, STUDIO_SECRET = "GROVE_LABEL_STUDIO_TOKEN", "GROVE_LABEL_STUDIO_WEBHOOK_SECRET"
ARGILLA_KEY, ARGILLA_SECRET = "GROVE_ARGILLA_API_KEY", "GROVE_ARGILLA_WEBHOOK_SECRET"

Host = Annotated[str, typer.Option("--host", help="Address for webhooks.", metavar="ADDRESS")]
Port = Annotated[int, typer.Option("--port", help="Port for webhooks; 0: no webhooks.", min=0, max=65_535)]
Certificate = Annotated[
    Path | None,
    typer.Option(
        "--certificate", help="Certificate (PEM) with which webhooks come over TLS.", metavar="FILE"
    ),
]
PrivateKey = Annotated[
    Path | None,
    typer.Option("--private-key", help="Private key (PEM) of the certificate.", metavar="FILE"),
]
Sweep = Annotated[
    float, typer.Option("--sweep-seconds", help="Seconds between two reads of all annotations.", min=1)
]
State = Annotated[
    Path | None,
    typer.Option("--state", help="File of the sent annotations; default: in state.dir.", metavar="FILE"),
]


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
    host: Host = "127.0.0.1",
    port: Port = 0,
    certificate: Certificate = None,
    private_key: PrivateKey = None,
    sweep: Sweep = 60.0,
    from_name: Annotated[
        str, typer.Option("--choices", help="Name of the Choices in the project.")
    ] = "label",
    to_name: Annotated[
        str, typer.Option("--object", help="Name of the object that the choices label.")
    ] = "record",
    state: State = None,
) -> None:
    """Send label requests to a project of Label Studio as tasks, and its annotations back as labels.

    The token is taken from GROVE_LABEL_STUDIO_TOKEN (or the file that GROVE_LABEL_STUDIO_TOKEN_FILE names).
    Webhooks (--port) need the extra 'bridge'. Ctrl-C ends it; the next start continues there, and nothing is
    requested or sent twice (docs/bridges.md).

    \b
    [bold]Examples[/bold]
      grove bridge label-studio --url http://127.0.0.1:8080 --project 1
      grove bridge label-studio --url https://labels.example.com --project 7 --host 0.0.0.0 --port 9000
    """
    from streamapp.bridge.hook_formats import LabelStudioHooks
    from streamapp.bridge.label_studio import LabelStudio
    from streamapp.bridge.tasks import Choice

    token = _secret(STUDIO_TOKEN)
    if not token:
        message = (
            f"{STUDIO_TOKEN} must be set to a token of Label Studio, or {STUDIO_TOKEN}_FILE to the file that "
            "holds it"
        )
        raise UsageError(message)
    hooks = _Hooks(host, port, certificate, private_key, STUDIO_SECRET)
    hooks.check(LabelStudioHooks())
    tool = LabelStudio(url, token, project, Choice(from_name, to_name))
    bridged = _Bridged(tool, f"project {project} of {url}", "label-studio", str(project))
    _run(options, bridged, hooks, sweep, state)


def argilla(
    options: SettingsOptions,
    url: Annotated[str, typer.Option("--url", help="Address of Argilla.", metavar="URL", show_default=False)],
    dataset: Annotated[
        str,
        typer.Option("--dataset", help="Name or id of the dataset.", metavar="NAME", show_default=False),
    ],
    workspace: Annotated[
        str | None,
        typer.Option(
            "--workspace", help="Workspace of the dataset, if several have one of this name.", metavar="NAME"
        ),
    ] = None,
    host: Host = "127.0.0.1",
    port: Port = 0,
    certificate: Certificate = None,
    private_key: PrivateKey = None,
    sweep: Sweep = 60.0,
    question: Annotated[
        str, typer.Option("--question", help="Name of the question (label_selection) for the class.")
    ] = "label",
    field: Annotated[str, typer.Option("--field", help="Name of the text field for the record.")] = "record",
    state: State = None,
) -> None:
    """Send label requests to a dataset of Argilla as records, and its responses back as labels.

    The key is taken from GROVE_ARGILLA_API_KEY (or the file that GROVE_ARGILLA_API_KEY_FILE names). Webhooks
    (--port) need the extra 'bridge'. Ctrl-C ends it; the next start continues there, and nothing is requested
    or sent twice (docs/bridges.md).

    \b
    [bold]Examples[/bold]
      grove bridge argilla --url http://127.0.0.1:6900 --dataset shop
      grove bridge argilla --url https://labels.example.com --dataset shop --host 0.0.0.0 --port 9000
    """
    from streamapp.bridge.argilla import Argilla
    from streamapp.bridge.hook_formats import ArgillaHooks

    key = _secret(ARGILLA_KEY)
    if not key:
        message = (
            f"{ARGILLA_KEY} must be set to an API key of Argilla, or {ARGILLA_KEY}_FILE to the file that "
            "holds it"
        )
        raise UsageError(message)
    hooks = _Hooks(host, port, certificate, private_key, ARGILLA_SECRET)
    hooks.check(ArgillaHooks())
    tool = Argilla(url, key, dataset, workspace, question, field)
    name = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in dataset)
    bridged = _Bridged(tool, f"dataset {dataset} of {url}", "argilla", name)
    _run(options, bridged, hooks, sweep, state)


class _Hooks:
    """Where webhooks are listened for, and how they prove their sender."""

    def __init__(
        self, host: str, port: int, certificate: Path | None, private_key: Path | None, secret_name: str
    ) -> None:
        from streamapp.web.certificate import server_tls

        self.host, self.port, self._secret_name = host, port, secret_name
        self.tls = server_tls(certificate, private_key)
        self.secret = _secret(secret_name)
        self.format: HookFormat | None = None

    def check(self, hook_format: "HookFormat") -> None:
        """Raise an error if webhooks cannot be listened for."""
        from streamapp.settings.needs import require

        self.format = hook_format
        hook_format.check_secret(self.secret)
        if not self.port:
            return
        require("bridge", "grove bridge --port")
        if self.host not in ("127.0.0.1", "::1", "localhost") and not self.secret:
            message = (
                f"--host {self.host} must be a loopback address unless {self._secret_name} is set: who "
                "reaches it can send labels"
            )
            raise UsageError(message)


class _Bridged(NamedTuple):
    """A project of a label tool, with the names of its consumer group and of its file in state.dir."""

    tool: "LabelTool"
    place: str
    group: str
    name: str


def _run(
    options: SettingsOptions, bridged: _Bridged, hooks: _Hooks, sweep: float, state: Path | None
) -> None:
    """Run a bridge until interrupted."""
    import threading
    from contextlib import ExitStack

    from streamapp.bridge.bridge import Bridge, BridgePlan
    from streamapp.cli.signals import interrupted_by_terminate
    from streamapp.settings.clients import output_reader

    settings, kafka, names = options.connection()
    plan = BridgePlan(
        names,
        f"{settings.application_id}-{bridged.group}",
        state or settings.state_dir / f"{bridged.group}-{bridged.name}.sqlite",
        sweep,
        settings.text_max_bytes,
    )
    bridge = Bridge(plan, kafka, bridged.tool, output_reader(settings))
    with interrupted_by_terminate(), ExitStack() as stack:
        if hooks.port:
            from streamapp.bridge.webhooks import Webhooks

            try:
                webhooks = stack.enter_context(
                    Webhooks(
                        (hooks.host, hooks.port),
                        hooks.secret,
                        bridge.taken,
                        tls=hooks.tls,
                        hooks=hooks.format,
                    )
                )
            except OSError as error:
                where = f"--host {hooks.host} --port {hooks.port}"
                message = f"{where} cannot be listened on: {error.strerror}; name another"
                raise UsageError(message) from None
            threading.Thread(target=webhooks.serve_forever, name="webhooks", daemon=True).start()
            stack.callback(webhooks.shutdown)
        typer.echo(f"{bridged.place} is bridged  (Ctrl-C ends it)")
        try:
            bridge.run()
        finally:
            bridge.stop()


def _secret(name: str) -> str:
    """Return the value of a variable, or the content of the file that NAME_FILE names."""
    file = os.environ.get(f"{name}_FILE")
    return Path(file).read_text(encoding="utf-8").strip() if file else os.environ.get(name, "").strip()


register(app, label_studio, "label-studio")
register(app, argilla, "argilla")
