"""`grove registry`."""

from typing import Annotated

import typer


def registry(
    port: Annotated[
        int, typer.Option("--port", "-p", help="Loopback port; 0: a free port.", min=0, max=65_535)
    ] = 8081,
) -> None:
    """Run a real schema registry on this machine, for trials; Ctrl-C ends it, and its schemas are gone.

    It is Apicurio Registry with the interface of Confluent's. It needs no installed Java: the program (109
    MB) is downloaded once into a cache per user, and Java comes with the package. It listens on 127.0.0.1
    only and is not meant for production.

    \b
    [bold]Examples[/bold]
      grove registry
      grove registry --port 0
    """
    from streamapp.cli.progress import say_on_stderr
    from streamapp.cli.signals import interrupted_by_terminate
    from streamapp.embedded.apicurio import EmbeddedRegistry
    from streamapp.errors import EmbeddedRegistryError

    embedded = EmbeddedRegistry(port or None, tell=say_on_stderr)
    with interrupted_by_terminate(), embedded as running:
        typer.echo(f"The schema registry is ready at {running.url}  (Ctrl-C ends it)")
        typer.echo(f"  export GROVE_SCHEMA_REGISTRY_URL={running.url}")
        try:
            status = running.wait()
        except KeyboardInterrupt:
            return
        message = f"the registry ended without a command, with status {status}: {running.last_words()}"
        raise EmbeddedRegistryError(message)
