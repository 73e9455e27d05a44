"""`grove pool`."""

from typing import Annotated

import typer

from streamapp.cli.data_options import Data, FileOptions, say_inferred
from streamapp.cli.options import Json

SHOWN = 10
"""Points of the curve that the terminal shows."""


def pool(
    data: Data,
    file: FileOptions,
    budget: Annotated[
        int, typer.Option("--budget", "-b", help="Number of labels to buy.", metavar="N", min=1)
    ],
    spec: Annotated[
        str, typer.Option("--spec", "-m", help="Model: a learner's name, JSON, or @FILE.", metavar="SPEC")
    ] = '{"learner": "boct", "query": "boct_al"}',
    test: Annotated[
        float,
        typer.Option("--test", help="Share of rows in the test set.", metavar="SHARE"),
    ] = 0.5,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the split and of the draws.", min=0)] = 1,
    max_bytes: Annotated[
        int,
        typer.Option(
            "--max-bytes", help="Limit for the rows in memory, 8 bytes a value.", metavar="BYTES", min=1
        ),
    ] = 2 << 30,
    as_json: Json = False,
) -> None:
    """Buy labels from a pool one by one, and print the accuracy: pool-based active learning, no broker.

    The rows are split at random into a pool and a test set. All instances of the pool are known from the
    start, their labels are not; for each label the model chooses the instance. Rows without a label are
    left out. Every strategy that can rank instances can be used, 'always' and 'random' draw uniformly, and
    the budget of the spec has no effect: docs/active-learning.md.

    \b
    [bold]Examples[/bold]
      grove pool --data diabetes.arff --budget 200
      grove pool --data diabetes.arff --budget 200 --spec '{"learner": "boct", "query": "random"}' --json
      grove pool --data mine.csv --target class --budget 500 --spec c4.5 --test 0.3
      grove pool --data mine.csv --budget 500 --spec '{"learner": "h-tree", "query": "conf_tree"}'
    """
    import json

    from streamapp.cli.progress import rows_progress, say_compiling
    from streamapp.lab.datasets import check_attributes, open_data
    from streamapp.lab.pool.pool_run import check_share, run_pool
    from streamapp.lab.pool.pool_specs import maker_of

    make = maker_of(spec)
    check_share(test)
    dataset = open_data(data, None, **vars(file))
    check_attributes(dataset)
    if not as_json:
        say_inferred(dataset, file)
    say_compiling()
    with rows_progress("Labelling", budget, shown=not as_json) as advance:
        outcome = run_pool(make, dataset, budget, test, seed, advance, max_bytes)
    if as_json:
        typer.echo(json.dumps(outcome.figures()))
        return
    if outcome.without_label:
        typer.echo(f"grove: rows without a label are left out: {outcome.without_label:,}", err=True)
    typer.echo(f"{outcome.pool:,} rows in the pool, {outcome.test:,} in the test set")
    typer.echo("labels  accuracy  leaves")
    shown = {round(len(outcome.curve) * i / SHOWN) - 1 for i in range(1, SHOWN + 1)}
    for position, point in enumerate(outcome.curve):
        if position in shown:
            typer.echo(f"{point.labels:6,}  {point.accuracy:8.4%}  {point.leaves:6,}")
