"""`grove worker`."""

from typing import Annotated

import typer

from streamapp.cli.options import Config, Prefix, Servers, Set, settings_from


def worker(
    workers: Annotated[
        int,
        typer.Option("--workers", "-w", help="Processes under one parent; one per core is enough.", min=1),
    ] = 1,
    name: Annotated[
        str | None,
        typer.Option("--name", help="group.instance.id: kept over restarts; worker n of many is NAME-n."),
    ] = None,
    web_port: Annotated[
        int | None,
        typer.Option(
            "--web-port",
            help="Port of /livez, /readyz, /metrics; worker n of many has it + n.",
            min=0,
            max=65_535,
        ),
    ] = None,
    config: Config = None,
    servers: Servers = None,
    prefix: Prefix = None,
    assignments: Set = None,
) -> None:
    """Answer instances, ask for labels, learn: the stream application itself.

    It logs to standard output, as JSON unless that is a terminal. SIGTERM or Ctrl-C finishes the run at hand,
    flushes, commits and exits with 0; a second signal ends it at once.

    \b
    [bold]Examples[/bold]
      grove worker
      grove worker --workers 4 --set state.dir=/var/lib/grove
      grove worker --config grove.toml --web-port 8080
    """
    from streamapp.settings.check import check_spec

    settings = settings_from(config, servers, prefix, assignments, group_instance_id=name, web_port=web_port)
    check_spec(settings)
    if workers == 1:
        from streamapp.worker import run_worker

        raise typer.Exit(run_worker(settings))
    from streamapp.workers import run_workers

    raise typer.Exit(run_workers(settings, workers))
