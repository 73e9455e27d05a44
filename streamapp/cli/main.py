"""Entry point: the tree of commands, and errors as one line on standard error and an exit code.

Modules of commands import other packages inside their functions: `grove --help` must not wait for numba.
"""

import logging
import os
import sys
import traceback
from collections.abc import Sequence

import typer
from typer.exceptions import Abort, TyperException

from streamapp.cli import version
from streamapp.cli.learning import experiment, pool, prequential, warm
from streamapp.cli.operating import config, dlq, journal, migrate, models, people, plan, tree, whatif
from streamapp.cli.register import register
from streamapp.cli.running import (
    bridge,
    broker,
    demo,
    generate,
    oracle,
    replay,
    schema_registry,
    topics,
    web,
    worker,
)
from streamapp.errors import StreamappError

USAGE, FAILURE, INTERRUPTED = 64, 1, 130
# The deliberate errors of `core` and `topics`. MISTAKES are those that only options can cause: specs,
# generators, and files of a data set. A worker meets neither: settings and records are checked elsewhere.
OURS = (("core.errors", "GroveError"), ("topics.errors", "TopicsError"))
MISTAKES = (("core.errors", "SpecError"), ("topics.errors", "DatasetError"))

app = typer.Typer(
    name="grove",
    help="Online decision trees with active learning on Kafka.",
    epilog="Start with [bold]grove demo[/bold]. Exit codes: 0 done, 64 usage, 78 configuration, "
    "130 interrupted (Ctrl-C), 1 otherwise.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

RAISED = tuple(f"{kind} [rdkafka" for kind in ("FATAL", "TXNERR", "ADDPARTS"))
"""Prefixes of librdkafka's log lines on transactions whose error is raised as well."""

START, RUN, DATA, INSTALLATION = "Start here", "Run", "Data and models", "Installation"
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True}  # options of the generator itself


register(app, demo.demo, rich_help_panel=START)
register(app, broker.broker, rich_help_panel=RUN)
register(app, schema_registry.registry, rich_help_panel=RUN)
app.add_typer(topics.app, name="topics", rich_help_panel=RUN)
app.add_typer(worker.app, name="worker", rich_help_panel=RUN)
app.add_typer(journal.app, name="journal", rich_help_panel=RUN)
app.add_typer(models.app, name="models", rich_help_panel=RUN)
app.add_typer(dlq.app, name="dlq", rich_help_panel=RUN)
app.add_typer(people.app, name="people", rich_help_panel=RUN)
register(app, migrate.migrate, rich_help_panel=RUN)
register(app, plan.plan, rich_help_panel=RUN)
register(app, web.web, rich_help_panel=RUN, cls=web.WebCommand)
app.add_typer(bridge.app, name="bridge", rich_help_panel=RUN)
register(app, replay.replay, rich_help_panel=DATA)
register(app, oracle.oracle, rich_help_panel=DATA)
register(app, prequential.prequential, rich_help_panel=DATA)
register(app, pool.pool, rich_help_panel=DATA)
register(app, tree.tree, rich_help_panel=DATA)
register(app, whatif.whatif, rich_help_panel=DATA)
register(app, experiment.experiment, rich_help_panel=DATA)
register(app, generate.generate, rich_help_panel=DATA, context_settings=PASS_ON)
app.add_typer(config.app, name="config", rich_help_panel=INSTALLATION)
register(app, warm.warm, rich_help_panel=INSTALLATION)
register(app, version.version, rich_help_panel=INSTALLATION)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit code."""
    logging.basicConfig(format="grove: %(message)s", level=logging.WARNING)
    logging.getLogger().handlers[0].addFilter(_is_news)
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # it logs every attempt
    try:
        status = app(args=arguments, prog_name="grove", standalone_mode=False)
    except (KeyboardInterrupt, Abort):
        return INTERRUPTED
    except TyperException as mistake:
        return _usage(mistake)
    except Exception as error:  # noqa: BLE001 - said as one line, or shown whole (GROVE_DEBUG)
        return _failure(error)
    return status if isinstance(status, int) else 0


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a log line of librdkafka reports more than a retry, or an error that is raised as well."""
    message = record.getMessage()
    return not (message.endswith("retrying") or message.startswith(RAISED))


def _usage(mistake: TyperException) -> int:
    """Print the mistake of a command line, the possible values, and the help to read."""
    context = getattr(mistake, "ctx", None)
    if type(mistake).__name__ == "NoArgsIsHelpError":
        return USAGE  # making the exception has printed the help
    message = mistake.format_message() if hasattr(mistake, "format_message") else str(mistake)
    if type(mistake).__name__ == "NoSuchOption" and not getattr(mistake, "possibilities", None) and context:
        options = sorted(o for parameter in context.command.params for o in parameter.opts if o[:2] == "--")
        message += f" Known: {', '.join(options)}."
    elif message.startswith("No such command") and context:
        message += f" Known: {', '.join(sorted(context.command.commands))}."
    message = message.replace("Value error, ", "").replace("Input should be ", "must be ")
    path = context.command_path if context else "grove"
    _say(f"{message.rstrip('.')}; see '{path} --help'")
    return USAGE


def _failure(error: Exception) -> int:
    """Print an error as one line; with GROVE_DEBUG=1, as a traceback."""
    if os.environ.get("GROVE_DEBUG", "") not in ("", "0"):
        traceback.print_exception(error)
    if isinstance(error, StreamappError):
        _say(str(error))
        return error.exit_code
    if _is_any_of(MISTAKES, error):
        _say(str(error))
        return USAGE
    if _is_any_of(OURS, error) or isinstance(error, (OSError, UnicodeError)):
        _say(str(error) or type(error).__name__)
        return FAILURE
    _say(f"a bug, {type(error).__name__}: {error}; please report it with the output of GROVE_DEBUG=1")
    return FAILURE


def _is_any_of(trees: Sequence[tuple[str, str]], error: Exception) -> bool:
    """Whether the error belongs to one of these trees of exceptions, without importing their modules."""
    return any(
        isinstance(error, getattr(sys.modules[module], name))
        for module, name in trees
        if module in sys.modules
    )


def _say(message: str) -> None:
    line = " ".join(message.split())
    sys.stderr.write(f"grove: {line}\n")
