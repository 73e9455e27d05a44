"""`grove prequential`."""

from pathlib import Path
from typing import Annotated

import typer

from streamapp.cli.data_options import Data, FileOptions, say_inferred
from streamapp.cli.options import Json

FIGURES = (
    ("accuracy", "accuracy", "{:.4%}"),
    ("accuracy_windowed", "  of the last window", "{:.4%}"),
    ("kappa", "kappa", "{:.4f}"),
    ("kappa_m", "  against the majority", "{:.4f}"),
    ("kappa_temporal", "  against the last label", "{:.4f}"),
    ("balanced_accuracy", "balanced accuracy", "{:.4%}"),
    ("log_loss", "log-loss", "{:.4f}"),
    ("brier", "Brier score", "{:.4f}"),
    ("auc", "AUC", "{:.4f}"),
    ("calibration_error", "calibration error", "{:.4f}"),
    ("leaves", "leaves", "{:,}"),
    ("nodes", "nodes", "{:,}"),
    ("depth", "depth", "{:,}"),
    ("splits", "splits", "{:,}"),
    ("attempts", "split attempts", "{:,}"),
    ("labels", "labels used", "{:,}"),
    ("refused", "  budget closed", "{:,}"),
    ("accuracy_of_labels", "accuracy on those", "{:.4%}"),
    ("drawn_labels", "  that stand for all", "{:,}"),
    ("accuracy_unbiased", "unbiased estimate", "{:.4%}"),
    ("accuracy_unbiased_low", "  95 % from", "{:.4%}"),
    ("accuracy_unbiased_high", "  95 % to", "{:.4%}"),
    ("accuracy_powered", "with the claims of all", "{:.4%}"),
    ("accuracy_powered_low", "  95 % from", "{:.4%}"),
    ("accuracy_powered_high", "  95 % to", "{:.4%}"),
    ("advice", "advice on more labels", "{}"),
    ("gain_forecast", "gain by 500 more", "{:.4%}"),
    ("gain_forecast_low", "  90 % from", "{:.4%}"),
    ("gain_forecast_high", "  90 % to", "{:.4%}"),
    ("coverage", "coverage of the sets", "{:.4%}"),
    ("coverage_low", "  95 % from", "{:.4%}"),
    ("coverage_high", "  95 % to", "{:.4%}"),
    ("set_size", "classes in a set", "{:.3f}"),
    ("features_bought", "features bought", "{:,}"),
    ("feature_cost", "  for", "{:,.2f}"),
    ("seconds", "seconds", "{:.3f}"),
    ("records_per_second", "records/s", "{:,.0f}"),
)


def prequential(
    data: Data,
    file: FileOptions,
    spec: Annotated[
        str, typer.Option("--spec", "-m", help="Model: a preset's name, JSON, or @FILE.", metavar="SPEC")
    ] = "h-tree",
    records: Annotated[
        int | None, typer.Option("--records", "-n", help="Number of rows to read; default: all.", min=1)
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option("--save", help="Write the model to FILE at the end, for 'grove tree'.", metavar="FILE"),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(
            "--events", help="Write splits, drifts and evaluations to FILE, as JSON lines.", metavar="FILE"
        ),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(
            "--schema",
            help="Ranges, thresholds and costs of attributes: JSON, or @FILE.",
            metavar="SCHEMA",
        ),
    ] = None,
    label_delay: Annotated[
        int | None,
        typer.Option(
            "--label-delay",
            help="Rows answered between a row and its label; default: the label comes with the row.",
            metavar="ROWS",
            min=1,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Test-then-train a model over a data set, without a broker, and print its accuracy.

    Every row is predicted first; then its label is learned, if the model's query strategy requests it (the
    default requests all labels). Accuracy and kappa count all labelled rows. The model's own estimate
    stands below; it uses only the labels that the model requested. The inferred format of a file (header,
    target, classes) is printed on standard error.

    With --label-delay 200 the label of row i is learned when row i+200 has been answered, and before row
    i+201, as in a stream whose labels come late. Labels that are left at the end are learned then.

    \b
    [bold]Examples[/bold]
      grove prequential --data examples/data/a9a.gz
      grove prequential --data elec.csv --target class --json
      grove prequential --data elec.csv --target class --save elec.model && grove tree elec.model
      grove prequential --data elec.csv --label-delay 200
      grove prequential --data 'gen:sea?function=1&noise=0.1&seed=1&n=1000000'
      grove prequential --data elec.csv --target class --spec '{"drift": "adwin"}' --events elec.jsonl
      grove prequential --data rows.arff --spec '{"query": "random", "budget": {"limit": 0.1}}'
      grove prequential --data rows.arff --spec '{"query": "split", "evaluation": {"share": 0.02}}'
      grove prequential --data p.csv --spec ufodt --schema '{"attributes": [{"name": "age", "cost": 2}]}'
    """
    import json

    from core.schema.schema import MAX_VALUES
    from streamapp.cli.progress import rows_progress, say_compiling
    from streamapp.lab.datasets import check_attributes, open_data, read_declared
    from streamapp.lab.prequential import Prequential, check_save, read_spec, save_model
    from streamapp.worker.observability.event_lines import event_lines

    parsed = read_spec(spec)
    declared = None if schema is None else read_declared(schema)
    if save is not None:
        check_save(save)
    dataset = open_data(data, records, bounded_by="--records", **vars(file))
    check_attributes(dataset)
    if not as_json:
        say_inferred(dataset, file)
    run = Prequential(parsed, dataset, records, data, declared, label_delay)
    say_compiling()
    with event_lines(events) as on_event, rows_progress("Learning", run.rows, shown=not as_json) as advance:
        result = run.over_all(advance, on_event)
    for name, values in run.overfull.items():
        typer.echo(
            f"grove: {name!r} has {values:,} values; the first {MAX_VALUES:,} are known, all others count as "
            "missing: an ARFF header can declare them all",
            err=True,
        )
    if run.gathered:
        attributes = "1 numeric attribute" if run.gathered == 1 else f"{run.gathered} numeric attributes"
        typer.echo(
            f"grove: thresholds of {attributes} are the quantiles of the first {parsed.learner.warm_up} "
            "values; --schema declares a range or thresholds instead",
            err=True,
        )
    if save is not None:
        save_model(run.model, save)
    if as_json:
        typer.echo(json.dumps(result))
        return
    for name, title, form_of in FIGURES:
        if result.get(name) is not None:
            typer.echo(f"{title:22} {form_of.format(result[name])}")
