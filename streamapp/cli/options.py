"""Options that several commands share, and how they become settings."""

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamapp.errors import UsageError

if TYPE_CHECKING:
    from streamapp.settings import Settings

PANEL = "Settings"

Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="TOML file with settings.", metavar="FILE", rich_help_panel=PANEL),
]
Servers = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-servers",
        "-b",
        help="Kafka brokers, host:port[,host:port…].",
        metavar="SERVERS",
        rich_help_panel=PANEL,
    ),
]
Prefix = Annotated[
    str | None,
    typer.Option(
        "--topics-prefix", help="Stands before every topic name.", metavar="TEXT", rich_help_panel=PANEL
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        help="Any setting, as NAME=VALUE (docs/settings.md); Kafka client properties as kafka.NAME=VALUE.",
        metavar="NAME=VALUE",
        rich_help_panel=PANEL,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]


def settings_from(
    config: Path | None,
    servers: str | None = None,
    prefix: str | None = None,
    assignments: list[str] | None = None,
    **flags: Any,
) -> "Settings":
    """Settings with the flags of a command line on top."""
    from streamapp.settings import Settings, load_settings
    from streamapp.settings.check import check_names

    known = set(Settings.model_fields) - {"kafka"}
    given: dict[str, Any] = {"bootstrap_servers": servers, "topics_prefix": prefix, **flags}
    kafka: dict[str, str] = {}
    for assignment in assignments or []:
        name, equals, value = assignment.partition("=")
        attribute = name.removeprefix("kafka.").replace(".", "_").replace("-", "_")
        if not equals:
            message = f"--set {assignment} must look like NAME=VALUE; for example --set max.poll.records=500"
            raise UsageError(message)
        if attribute in known:
            given[attribute] = value
        elif name.startswith("kafka."):
            kafka[name.removeprefix("kafka.")] = value
        else:
            raise UsageError(_unknown(name, known))
    settings = load_settings(config, kafka=kafka or None, **given)
    check_names(settings)
    return settings


def _unknown(name: str, known: set[str]) -> str:
    names = sorted(attribute.replace("_", ".") for attribute in known)
    near = difflib.get_close_matches(name, names, 1, 0.6)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(names)}"
    return f"--set {name}: no such setting; {hint} (a property of the Kafka clients needs kafka. before it)"
