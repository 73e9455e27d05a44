"""`grove config`: prints and checks the settings in force."""

from typing import Annotated

import typer

from streamapp.cli.options import Json, SettingsOptions
from streamapp.cli.register import register

app = typer.Typer(help="Show and check the settings.", no_args_is_help=True)


def show(
    options: SettingsOptions,
    as_json: Json = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of all settings.")] = False,
    page: Annotated[bool, typer.Option("--page", help="Print docs/settings.md.")] = False,
    parameters: Annotated[
        bool, typer.Option("--parameters", help="Print docs/parameters.md: the parameters of a model's spec.")
    ] = False,
    rights: Annotated[
        bool, typer.Option("--rights", help="Print docs/rights.md: the rights that each command needs.")
    ] = False,
    catalogue: Annotated[
        bool,
        typer.Option(
            "--catalogue",
            help="Print k8s/chart/files/catalogue.json: topics, and rights of workers, web, bridge.",
        ),
    ] = False,
) -> None:
    """Print every setting in force, secrets masked.

    \b
    [bold]Examples[/bold]
      grove config show
      GROVE_WEB_PORT=8080 grove config show --set max.poll.records=500
      grove config show --schema
    """
    import json

    from streamapp.settings import Settings

    if page:
        from streamapp.settings.page import page as settings_page

        typer.echo(settings_page(), nl=False)
        return
    if parameters:
        from streamapp.settings.parameters_page import page as parameters_page

        typer.echo(parameters_page(), nl=False)
        return
    if rights:
        from streamapp.settings.rights import page as rights_page

        typer.echo(rights_page(), nl=False)
        return
    if catalogue:
        from streamapp.settings.catalogue_file import catalogue_text

        typer.echo(catalogue_text(), nl=False)
        return
    if schema:
        typer.echo(json.dumps(Settings.model_json_schema(), indent=2))
        return
    settings = options.settings()
    if as_json:
        typer.echo(json.dumps(settings.shown()))
        return
    for name, value in settings.shown().items():
        typer.echo(f"{name} = {value}")


def check(options: SettingsOptions) -> None:
    """Check the settings without starting anything: values, rules, client properties, model spec.

    It prints one line for each mistake and exits with 78. Variables that set nothing lead to warnings.

    \b
    [bold]Examples[/bold]
      grove config check
      grove config check --config grove.toml
    """
    from streamapp.settings.check import check_clients, check_spec
    from streamapp.settings.loading import unknown_variables

    settings = options.settings()
    check_clients(settings)
    check_spec(settings)
    for warning in unknown_variables():
        typer.echo(f"warning: {warning}", err=True)
    typer.echo("settings are in order")


for command in (show, check):
    register(app, command)
