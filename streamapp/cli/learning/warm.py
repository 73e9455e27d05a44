"""`grove warm`."""

from streamapp.cli.options import Json


def warm(as_json: Json = False) -> None:
    """Compile every kernel now, so that no worker has to compile it.

    Compiled code is kept in a cache per user (NUMBA_CACHE_DIR moves it); a second run only loads it.

    \b
    [bold]Examples[/bold]
      grove warm
      NUMBA_CACHE_DIR=/var/cache/grove grove warm
    """
    import json

    import typer
    from rich.console import Console

    from streamapp.worker.compile_ahead import TAKES, warm_kernels

    with Console(stderr=True).status(f"Compiling kernels (the first time: {TAKES})"):
        seconds = warm_kernels()
    if as_json:
        typer.echo(json.dumps({"seconds": round(seconds, 3)}))
    else:
        typer.echo(f"kernels ready in {seconds:.1f} s")
