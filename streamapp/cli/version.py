"""`grove version`."""

from streamapp.cli.options import Json

PARTS = ("numpy", "numba", "faust-streaming", "aiokafka", "confluent-kafka")


def version(as_json: Json = False) -> None:
    """Print the versions of streamgrove and of its main dependencies.

    \b
    [bold]Examples[/bold]
      grove version
      grove version --json
    """
    import json
    import platform
    from importlib import metadata

    import typer

    from core.state_version import STATE_VERSION

    versions = {"streamgrove": metadata.version("streamgrove"), "python": platform.python_version()}
    versions |= {part: metadata.version(part) for part in PARTS}
    versions["state version"] = str(
        STATE_VERSION
    )  # of models that are stored: releases that share it share them
    if as_json:
        typer.echo(json.dumps(versions))
        return
    for name, number in versions.items():
        typer.echo(f"{name:16} {number}")
