"""`grove whatif`."""

from typing import Annotated

import typer

from streamapp.cli.operating.model_sources import installation_of
from streamapp.cli.options import Json, SettingsOptions
from streamapp.errors import UsageError

UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
"""Milliseconds of the units of a duration."""


def whatif(
    given: SettingsOptions,
    key: Annotated[str, typer.Option("--key", help="Model key.", show_default=False)],
    spec: Annotated[
        str,
        typer.Option(
            "--spec",
            "-m",
            help="The other spec: a preset's name, JSON, or @FILE.",
            metavar="SPEC",
            show_default=False,
        ),
    ],
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            help="Begin with the records of this time: 2026-11-22T18:00:00+01:00, or 90m, 24h, 7d before "
            "now; default: as early as journal and snapshots reach.",
            metavar="TIME",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Process a model's log again under another spec, and compare: answers, labels, accuracy.

    Journal and topics are read as by a worker that gets the partition; workers need not run, and nothing is
    written. The log is first reproduced as it was and compared with the sent predictions. Beside it the model
    has the other spec from the beginning or --since on: as after a configure if the spec allows it, else as
    after a reset.

    If only the learner differs, both models learn the labels that were requested, where they came: this is
    exact for these labels. Another strategy or budget requests other labels: those that were not requested
    do not exist, the report has their share, and the accuracy is estimated by labels with known chances or
    by the reserved share.

    \b
    [bold]Examples[/bold]
      grove whatif --key user-17 --spec hat --since 24h
      grove whatif --key user-17 --spec '{"learner": "h-tree", "query": "random", "budget": {"limit": 0.05}}'
      grove whatif --key user-17 --spec @spec.json --since 2026-11-22T18:00:00+01:00 --json
    """
    import json

    from streamapp.lab.prequential import spec_text
    from streamapp.tools.whatif.whatif_report import as_text
    from streamapp.tools.whatif.whatif_run import whatif as compare
    from streamapp.worker.task.task_config import TaskConfig

    if not key:
        message = "--key must have at least one character; 'grove models list' shows all keys"
        raise UsageError(message)
    text, begin = spec_text(spec), milliseconds(since)
    TaskConfig().spec(text)  # a mistake in it is found before a broker is asked
    installation = installation_of(given)
    with installation.partition(installation.partition_of(key)) as stored:
        found = compare(stored, key, text, begin)
    typer.echo(json.dumps(found, ensure_ascii=False) if as_json else as_text(found))


def milliseconds(since: str | None) -> int | None:
    """Return a time in ms since the epoch; a time without a zone is in the zone of this machine."""
    import time
    from datetime import datetime

    if since is None:
        return None
    number, unit = since[:-1], since[-1:]
    try:
        if unit in UNITS and number.isascii() and number.isdigit():
            return max(round(time.time() * 1000) - int(number) * UNITS[unit], 0)
        return round(datetime.fromisoformat(since).timestamp() * 1000)
    except (ValueError, OverflowError):
        message = (
            f"--since {since} must be a time such as 2026-11-22T18:00:00+01:00, or a duration before now, "
            "such as 90m, 24h or 7d"
        )
        raise UsageError(message) from None
