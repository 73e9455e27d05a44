"""`grove migrate`: the models of an installation go to topics with another prefix or partition count."""

from typing import TYPE_CHECKING, Annotated

import typer

from streamapp.cli.options import Config, Json, Servers, Set, SettingsOptions

if TYPE_CHECKING:
    from streamapp.tools.migration.migration_course import Course


def migrate(
    to_prefix: Annotated[
        str, typer.Option("--to-prefix", help="Prefix of the new topics.", metavar="TEXT", show_default=False)
    ],
    from_prefix: Annotated[
        str | None,
        typer.Option(
            "--from-prefix", help="Prefix of the old topics; default: topics.prefix.", metavar="TEXT"
        ),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            "-p",
            help="Partitions of every new topic; default: as before.",
            metavar="N",
            min=1,
        ),
    ] = None,
    to_application: Annotated[
        str | None,
        typer.Option(
            "--to-application-id",
            help="application.id of the new workers; default: as before.",
            metavar="NAME",
        ),
    ] = None,
    to_servers: Annotated[
        str | None,
        typer.Option(
            "--to-bootstrap-servers",
            help="Brokers of another cluster with the same credentials.",
            metavar="SERVERS",
        ),
    ] = None,
    leave_behind: Annotated[
        bool, typer.Option("--leave-behind", help="Continue although records were not processed.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the steps, and change nothing.")] = False,
    config: Config = None,
    servers: Servers = None,
    assignments: Set = None,
    as_json: Json = False,
) -> None:
    """Change the partition count: take all models to new topics with another prefix, or to another cluster.

    The workers have to be stopped. The models are read at their committed offsets from snapshots and
    journal, sent to the new partitions of their keys, and checked there. The old topics are not changed. If
    it is interrupted, it continues where it stopped when it is run again. In the end it prints the
    remaining steps; docs/operations.md lists what is migrated and what is not.

    \b
    [bold]Examples[/bold]
      grove migrate --to-prefix grove2. --partitions 64 --dry-run
      grove migrate --from-prefix grove. --to-prefix grove2. --partitions 64
      grove migrate --to-prefix grove. --to-bootstrap-servers other:9092
    """
    import json

    from streamapp.settings.clients import known_schemas
    from streamapp.tools.migration.advice import left_to_do
    from streamapp.tools.migration.migration_course import Course
    from streamapp.tools.migration.outcome import as_text, document_of
    from streamapp.worker.task.task_config import TaskConfig

    settings, kafka, names = SettingsOptions(config, servers, from_prefix, assignments).connection()
    course = Course.laid(
        kafka,
        settings.application_id,
        (names.prefix, to_prefix),
        TaskConfig.from_settings(settings),
        partitions=partitions,
        to_group=to_application,
        to_servers=to_servers,
        schemas=known_schemas(settings),
    )
    with course.new:
        obstacles, created = _go(course, leave_behind=leave_behind, dry_run=dry_run)
    environment = {"GROVE_TOPICS_PREFIX": to_prefix}
    if to_application is not None:
        environment["GROVE_APPLICATION_ID"] = to_application
    if to_servers is not None:
        environment |= {"GROVE_KAFKA_BOOTSTRAP_SERVERS": to_servers, "GROVE_STATE_DIR": "(another directory)"}
    steps = left_to_do(course.migration.report, course.old.names, course.new, environment)
    result = course, obstacles, created, steps
    typer.echo(json.dumps(document_of(*result), ensure_ascii=False) if as_json else as_text(*result))
    raise typer.Exit(1 if obstacles else 0)


def _go(course: "Course", *, leave_behind: bool, dry_run: bool) -> tuple[list[str], list[str]]:
    """Return the obstacles (of a dry run; else they are raised), and the names of the created topics."""
    from streamapp.cli.progress import rows_progress, say_on_stderr
    from streamapp.tools.migration.errors import MigrationError

    migration = course.migration
    with rows_progress("partitions", migration.steps) as advance:
        migration.step = lambda: advance(1)
        obstacles = course.obstacles(leave_behind=leave_behind)
        if dry_run:
            migration.look(exists=course.new.exists)
            return obstacles + [why for why in [migration.crowded()] if why], []
        if obstacles:
            raise MigrationError("; ".join(obstacles))
        return [], course.go(say_on_stderr)
