"""Model sources of `grove models`: a cluster, or a file."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from streamapp.cli.options import SettingsOptions
from streamapp.tools.model_files.model_origins import checked, read_file, taken_from

if TYPE_CHECKING:
    from streamapp.tools.offline.installation import Installation
    from streamapp.worker.task.models.files.exported import ExportedModel


def installation_of(options: SettingsOptions) -> "Installation":
    from streamapp.settings.clients import known_schemas
    from streamapp.tools.offline.installation import Installation
    from streamapp.worker.task.task_config import TaskConfig
    from topics.clients.admin import existing
    from topics.clients.cluster import Cluster

    settings, kafka, names = options.connection()
    names = existing(Cluster(kafka), names)
    config = TaskConfig.from_settings(settings, features=names.features)
    return Installation(kafka, settings.application_id, names, config, known_schemas(settings))


def given_up(options: SettingsOptions, partition: int, what: str, *, yes: bool) -> "Installation":
    """The installation of a partition whose state is given up, once the operator has agreed."""
    place = installation_of(options)
    place.check(partition)
    if not yes:
        typer.confirm(f"{what} Go on?", abort=True)
    return place


def model_of(options: SettingsOptions, name: str) -> "ExportedModel":
    """The model in a file or, if there is no file of that name, the model of a key."""
    from streamapp.worker.task.models.files.exported import read_exported

    path = Path(name)
    if path.exists():
        return checked(path, read_file(path))
    return read_exported(taken_from(installation_of(options), name))


def where(exported: "ExportedModel") -> str:
    positions = exported.taken["positions"]
    where = ", ".join(f"{source} {at}" for source, at in positions.items())
    return f"partition {exported.taken['partition']} {where}"


def say(exported: "ExportedModel") -> None:
    model = exported.model
    summary = model.summary()
    typer.echo(f"key        {exported.key}")
    typer.echo(f"taken at   {where(exported)}")
    typer.echo(f"spec       {model.spec.to_json()}")
    attributes = (f"{attribute.name} ({attribute.kind})" for attribute in model.schema.attributes)
    typer.echo(f"features   {', '.join(attributes)}")
    typer.echo(f"classes    {', '.join(model.schema.classes)}")
    typer.echo(f"records    {summary.records:,}, labels {summary.labels:,}, version {summary.version:,}")
    asked, answered = f"{summary.requests:,}", f"{summary.answered:,}"
    typer.echo(f"requests   {asked}, of them answered {answered}, open {summary.outstanding:,}")
    typer.echo(f"tree       {summary.leaves:,} leaves, depth {summary.depth}, {model.nbytes:,} bytes")
