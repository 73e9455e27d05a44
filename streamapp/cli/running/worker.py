"""`grove worker`: runs, drains, restarts and scales workers."""

from typing import TYPE_CHECKING, Annotated

import typer

from streamapp.cli.options import Config, Set, SettingsOptions
from streamapp.cli.register import flat, help_of, register

if TYPE_CHECKING:
    from streamapp.settings import Settings

app = typer.Typer()

Name = Annotated[
    str | None,
    typer.Option("--name", help="group.instance.id: constant over restarts; worker n of several is NAME-n."),
]
Timeout = Annotated[
    float, typer.Option("--timeout", help="Seconds to wait for the result.", min=0.0, metavar="SECONDS")
]


def worker(
    options: SettingsOptions,
    context: typer.Context,
    workers: Annotated[
        int,
        typer.Option("--workers", "-w", help="Processes under one parent; one per core is enough.", min=1),
    ] = 1,
    name: Name = None,
    web_port: Annotated[
        int | None,
        typer.Option(
            "--web-port",
            help="Port of /livez, /readyz, /metrics; worker n of several has PORT + n.",
            min=0,
            max=65_535,
        ),
    ] = None,
    spare: Annotated[
        bool | None,
        typer.Option(
            "--spare/--no-spare",
            help="Keep a prepared process that replaces a worker that died; default: with several workers.",
            show_default=False,
        ),
    ] = None,
    prepared: Annotated[int | None, typer.Option("--prepared", hidden=True)] = None,
) -> None:
    """Answer instances, request labels, learn: the stream application itself.

    It logs to standard output, as JSON unless that is a terminal. After SIGTERM or Ctrl-C it finishes the
    present run, flushes, commits and exits with 0; a second signal ends it at once. It stays a member of
    the group for session.timeout.ms, so that a restart finds its partitions; 'grove worker drain' leaves
    the group.

    \b
    [bold]Examples[/bold]
      grove worker
      grove worker --workers 4 --set state.dir=/var/lib/grove
      grove worker --config grove.toml --web-port 8080
      grove worker --workers 1 --spare
    """
    if context.invoked_subcommand is not None:
        return
    from streamapp.settings.check import check_spec

    if prepared is not None:
        from streamapp.worker.prepared_worker import wait_to_become_worker

        if not wait_to_become_worker(prepared):
            return
    settings = options.settings(group_instance_id=name, web_port=web_port)
    check_spec(settings)
    if workers == 1 and not spare:
        from streamapp.worker.worker import run_worker

        raise typer.Exit(run_worker(settings))
    from streamapp.worker.supervisor import run_workers

    raise typer.Exit(run_workers(settings, workers, spare=spare is not False))


def drain(
    name: Name = None,
    timeout: Timeout = 60.0,
    on_scale_down: Annotated[
        bool,
        typer.Option(
            "--on-scale-down",
            help="Only if the StatefulSet of this pod no longer needs it; else nothing happens.",
        ),
    ] = False,
    config: Config = None,
    assignments: Set = None,
) -> None:
    """End a worker of this machine, or all workers of a parent, so that other workers take over at once.

    The worker finishes its run, flushes, commits, leaves the group and exits with 0. It is found by its
    name and by state.dir: give the values with which it was started. Exit codes: 0 the worker has left, 1
    there is no such worker or it has not ended in time.

    With --on-scale-down it is a preStop hook of Kubernetes: a worker that restarts stays a member of its
    group, a worker that is scaled away leaves it. It reads the StatefulSet with the pod's token.

    \b
    [bold]Examples[/bold]
      grove worker drain
      grove worker drain --name team --set state.dir=/var/lib/grove
      kill -USR2 PID
    """
    from streamapp.worker import control as operating

    settings = _settings(config, assignments, name)
    if on_scale_down:
        from streamapp.tools.scale_down import is_scaled_away
        from streamapp.worker.state_directory import host_name

        pod = settings.group_instance_id or host_name()
        if not is_scaled_away(pod):
            typer.echo(f"{pod} is not scaled away, and stays a member of its group")
            return
    typer.echo(f"{operating.drain(settings, timeout)} has left the group")


def scale(
    workers: Annotated[int, typer.Argument(help="Number of workers; 0 drains all.", min=0)],
    name: Name = None,
    timeout: Timeout = 60.0,
    config: Config = None,
    assignments: Set = None,
) -> None:
    """Change the number of workers of a running 'grove worker --workers N'.

    New workers get the next names and ports. Surplus workers (the highest numbers) finish their run, commit
    and leave the group, so that the rest take their partitions at once. The parent is found by the name and
    state.dir with which it was started. Exit codes: 0 the number is reached, 1 there is no such parent, it
    refused (a port is taken) or it has not ended in time.

    \b
    [bold]Examples[/bold]
      grove worker scale 2
      grove worker scale 6 --name team --set state.dir=/var/lib/grove
    """
    from streamapp.worker import control as operating

    settings = _settings(config, assignments, name)
    typer.echo(f"{operating.scale(settings, workers, timeout)} has {workers} workers")


def restart(
    name: Name = None,
    timeout: Annotated[
        float, typer.Option("--timeout", help="Seconds to wait for the result.", min=0.0, metavar="SECONDS")
    ] = 300.0,
    config: Config = None,
    assignments: Set = None,
) -> None:
    """Restart the workers of a running parent ('grove worker --workers N'), one after another.

    Each worker finishes its run, commits and ends; a process that was prepared meanwhile takes its name and
    its directory, and the next worker follows when this one is ready. New processes load the installed
    version and read the parent's settings, so that a rolling update of the package is the same command. Exit
    codes: 0 all were restarted, 1 there is no such parent, it is restarting already or has not ended in time.

    \b
    [bold]Examples[/bold]
      grove worker restart
      grove worker restart --name team --set state.dir=/var/lib/grove
    """
    from streamapp.worker import control as operating

    settings = _settings(config, assignments, name)
    typer.echo(f"{operating.restart(settings, timeout)} has restarted its workers")


def _settings(config: Config, assignments: Set, name: str | None) -> "Settings":
    return SettingsOptions(config, assignments=assignments).settings(group_instance_id=name)


app.callback(invoke_without_command=True, help=help_of(worker))(flat(worker))
for command in (drain, restart, scale):
    register(app, command)
