"""`grove demo`."""

from typing import Annotated

import typer

from streamapp.cli.data_options import FileOptions
from streamapp.cli.options import Json


def demo(
    file: FileOptions,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            "-d",
            help="File (ARFF, LIBSVM, CSV; .gz too) or gen:NAME?….  [default: 40,000 generated rows; with "
            "--features the bundled a9a]",
            metavar="FILE|gen:…",
        ),
    ] = None,
    records: Annotated[
        int | None,
        typer.Option("--records", "-n", help="Number of rows.  [default: all, with --features 3000]", min=1),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", "-w", help="Worker processes.", min=1, max=8)] = 1,
    rate: Annotated[
        float | None,
        typer.Option("--rate", "-r", help="Rows per second.  [default: 1200, with --features 60]", min=1),
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="A model in place of the three: a preset's name, JSON, or @FILE; may be repeated.",
            metavar="NAME=SPEC",
        ),
    ] = None,
    features: Annotated[
        bool,
        typer.Option("--features", help="Records without features: three models buy them, in three ways."),
    ] = False,
    web: Annotated[
        bool, typer.Option("--web", help="Label one model yourself in grove web; until Ctrl-C.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a demo: broker, worker, oracle and a replay of a data set, with a live table.

    Three models learn from the same stream: one requests every label, one a tenth of the labels where it is
    unsure, one a tenth at random; --model names further models. Accuracy is prequential: every answer is
    given before its label is learned.

    With --features the records have no features: one model buys every feature, one the features that its
    path tests, one at random. The table shows the cost of each model beside its accuracy.

    With --web you are the annotator of one model, ask-10 or the last --model: its requests wait on the pages
    of 'grove web', the oracle answers the other models. The first line of the output has the address of your
    first card; steps before it are on standard error. Everything runs until Ctrl-C.

    It uses the broker of GROVE_KAFKA_BOOTSTRAP_SERVERS if that is set (with separate topics, which it
    deletes afterwards), else starts one. The exit code is 0 only if every record was answered.

    \b
    [bold]Examples[/bold]
      grove demo
      grove demo --data elec.csv --target class --records 20000
      grove demo --workers 2 --rate 3000
      grove demo --web
      grove demo --model 'conf={"query": "conf_tree", "budget": {"limit": 0.05}}' --model all=h-tree
      grove demo --features
      grove demo --features --model 'ufodt={"learner": "ufodt"}' --model 'path={"acquire": "path"}'
      grove demo --json
    """
    import json

    from streamapp.cli.signals import interrupted_by_terminate
    from streamapp.demo.demo_models import read_models
    from streamapp.demo.demo_plan import DEFAULT_RATE, FEATURES_RATE, FEATURES_RECORDS, DemoPlan
    from streamapp.demo.demo_run import run_demo
    from streamapp.demo.screen import Display
    from streamapp.errors import StreamappError
    from streamapp.settings import load_settings
    from streamapp.settings.check import check_names
    from streamapp.settings.needs import require

    if web:
        require("web", "grove demo --web")
    settings = load_settings()
    check_names(settings)
    has_servers = "bootstrap_servers" in settings.model_fields_set
    plan = DemoPlan(
        data=data,
        **vars(file),
        records=records or (FEATURES_RECORDS if features else None),
        workers=workers,
        rate=rate or (FEATURES_RATE if features else DEFAULT_RATE),
        features=features,
        bootstrap_servers=settings.bootstrap_servers if has_servers else None,
        models=read_models(models or (), features=features),
        web=web,
    )
    display = Display(quiet=as_json, features=features, steps_apart=web)
    with interrupted_by_terminate():
        summary = run_demo(plan, display)
    if as_json:
        typer.echo(json.dumps(summary.to_dict()))
    else:
        display.summary(summary)
    if summary.predictions < summary.instances or summary.instances == 0:
        missing = summary.instances - summary.predictions
        message = f"{missing:,} of {summary.instances:,} records were not answered"
        raise StreamappError(message)
