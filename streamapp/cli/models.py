"""`grove models`: what is done to the models of a cluster."""

from typing import Annotated

import typer

from streamapp.cli.help import help_of
from streamapp.cli.options import Config, Prefix, Servers, Set, settings_from

app = typer.Typer(help="Give up the models of a partition that cannot be restored.", no_args_is_help=True)


def reset(
    partition: Annotated[int, typer.Option("--partition", "-p", help="Which one.", metavar="N", min=0)],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    config: Config = None,
    servers: Servers = None,
    prefix: Prefix = None,
    assignments: Set = None,
) -> None:
    """Give a partition new models: what its models have learned is lost.

    For a partition whose worker says that it cannot be restored. No worker may run meanwhile. Records that
    are committed are not read again.

    \b
    [bold]Examples[/bold]
      grove models reset --partition 3
    """
    from streamapp.restore.reset import reset as reset_partition
    from streamapp.settings.clients import librdkafka_properties
    from topics.definitions import TopicNames

    settings = settings_from(config, servers, prefix, assignments)
    if not yes:
        typer.confirm(f"All models of partition {partition} lose what they have learned. Go on?", abort=True)
    names = TopicNames(settings.topics_prefix)
    positions = reset_partition(librdkafka_properties(settings), settings.application_id, names, partition)
    typer.echo(f"partition {partition} has new models from {', '.join(map(str, positions))} on")


for command in (reset,):
    app.command(command.__name__, help=help_of(command))(command)
