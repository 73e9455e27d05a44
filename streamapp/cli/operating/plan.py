"""`grove plan`."""

from pathlib import Path
from typing import Annotated

import typer

from streamapp.cli.options import Json


def plan(
    rate: Annotated[
        float,
        typer.Option("--rate", "-r", help="Records per second, in all.", metavar="RATE", show_default=False),
    ],
    models: Annotated[
        int, typer.Option("--models", "-m", help="Number of models (keys).", metavar="M", show_default=False)
    ],
    record_bytes: Annotated[
        float,
        typer.Option(
            "--record-bytes", help="Bytes of a record's value, on average.", metavar="B", show_default=False
        ),
    ],
    p99: Annotated[
        float,
        typer.Option("--p99", help="Milliseconds within which 99 of 100 records are answered.", metavar="MS"),
    ] = 250.0,
    guarantee: Annotated[
        str, typer.Option("--guarantee", help="exactly_once or at_least_once.", metavar="GUARANTEE")
    ] = "exactly_once",
    hottest: Annotated[
        float | None,
        typer.Option(
            "--hottest",
            help="Share of all records of the busiest model; default: 1 / models.",
            metavar="SHARE",
        ),
    ] = None,
    zipf: Annotated[
        float | None,
        typer.Option(
            "--zipf",
            help="Exponent of Zipf's law, if a few models have most records (1.1: words of a text).",
            metavar="EXPONENT",
        ),
    ] = None,
    model_bytes: Annotated[
        float | None,
        typer.Option(
            "--model-bytes",
            help="Bytes of a model, on average: grove_model_bytes / grove_models_loaded of a worker.",
            metavar="N",
        ),
    ] = None,
    replication: Annotated[
        int, typer.Option("--replication", help="Replication factor of the topics.", metavar="N")
    ] = 3,
    costs: Annotated[
        Path | None,
        typer.Option(
            "--costs",
            help="JSON of costs measured on your machine, as benchmarks.scaling --fit prints it.",
            metavar="FILE",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Plan an installation: workers, cores, memory, partitions and broker load, with the derivation.

    The costs behind it were measured with labelled JSON records of 10 numbers and the default tree; deep
    trees, forests and wide records cost more. docs/scale.md has the measurements, and how far they hold.

    \b
    [bold]Examples[/bold]
      grove plan --rate 200000 --models 10000 --record-bytes 160 --p99 250
      grove plan --rate 200000 --models 10000 --record-bytes 160 --p99 60 --guarantee at_least_once
      grove plan --rate 50000 --models 1000 --record-bytes 160 --hottest 0.2 --model-bytes 50000 --json
      grove plan --rate 200000 --models 10000 --record-bytes 160 --zipf 1.1
    """
    import json
    from dataclasses import replace

    from streamapp.tools.sizing.measured_costs import Costs, checked_model_bytes, read_costs
    from streamapp.tools.sizing.plan_text import as_text
    from streamapp.tools.sizing.sizing_plan import plan_of
    from streamapp.tools.sizing.workload import Workload

    workload = Workload(
        rate, models, record_bytes, p99, guarantee.replace("-", "_"), hottest, zipf, replication
    )
    measured = Costs() if costs is None else read_costs(costs)
    if model_bytes is not None:
        measured = replace(measured, model_bytes=checked_model_bytes(model_bytes))
    planned = plan_of(workload, measured)
    typer.echo(json.dumps(planned.to_dict(), ensure_ascii=False) if as_json else as_text(planned))
