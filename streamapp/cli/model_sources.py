"""Where the commands of `grove models` have their models from: a cluster, or a file."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from streamapp.errors import UsageError

if TYPE_CHECKING:
    from streamapp.offline.installation import Installation
    from streamapp.settings import Settings
    from streamapp.task.exported import ExportedModel


def installation_of(settings: "Settings") -> "Installation":
    from streamapp.offline.installation import Installation
    from streamapp.settings.clients import librdkafka_properties
    from streamapp.task.config import TaskConfig
    from topics.definitions import TopicNames

    names, config = TopicNames(settings.topics_prefix), TaskConfig.from_settings(settings)
    return Installation(librdkafka_properties(settings), settings.application_id, names, config)


def given_up(settings: "Settings", partition: int, what: str, *, yes: bool) -> "Installation":
    """The place of a partition of which something is given up, once the operator agrees."""
    place = installation_of(settings)
    place.check(partition)
    if not yes:
        typer.confirm(f"{what} Go on?", abort=True)
    return place


def taken_from(place: "Installation", key: str) -> bytes:
    """The file of a key's model, as it is at the committed offsets."""
    from streamapp.offline.errors import OfflineError
    from streamapp.offline.listing import exported

    number = place.partition_of(key)
    with place.partition(number) as stored:
        arrived = stored.now()
    if arrived is None:
        message = (
            f"partition {number}: the model of {key!r} is not there: nothing was processed of this partition "
            "yet; 'grove models list' shows all models"
        )
        raise OfflineError(message)
    return exported(arrived, key, place.names.prefix)


def model_of(settings: "Settings", name: str) -> "ExportedModel":
    """The model of a file or, if there is none of that name, of a key."""
    from streamapp.task.exported import read_exported

    path = Path(name)
    if path.exists():
        return checked(path, read_file(path))
    return read_exported(taken_from(installation_of(settings), name))


def read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}; name a file that 'grove models export' wrote"
        raise UsageError(message) from None


def write_file(path: Path, data: bytes) -> None:
    """Write a file that is whole or not there."""
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as error:
        message = f"cannot write {path}: {error.strerror}; choose another --to"
        raise UsageError(message) from None


def checked(path: Path, data: bytes) -> "ExportedModel":
    from core.errors import GroveError
    from streamapp.task.exported import read_exported

    try:
        return read_exported(data)
    except GroveError as error:
        message = f"{path}: {error}; name a file that 'grove models export' wrote"
        raise UsageError(message) from None


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
    attributes = (f"{each.name} ({each.kind})" for each in model.schema.attributes)
    typer.echo(f"features   {', '.join(attributes)}")
    typer.echo(f"classes    {', '.join(model.schema.classes)}")
    typer.echo(f"records    {summary.records:,}, labels {summary.labels:,}, version {summary.version:,}")
    asked, answered = f"{summary.requests:,}", f"{summary.answered:,}"
    typer.echo(f"requests   {asked}, of them answered {answered}, open {summary.outstanding:,}")
    typer.echo(f"tree       {summary.leaves:,} leaves, depth {summary.depth}, {model.nbytes:,} bytes")
