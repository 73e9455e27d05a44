"""`grove web`."""

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from streamapp.cli.options import SettingsOptions
from streamapp.cli.running.web_options import (
    decline_reasons_of,
    gold_records,
    milliseconds_of,
    overlap_of,
    pause_rule_of,
    units_of,
    weighting_of,
)
from streamapp.errors import UsageError


class WebCommand(TyperCommand):
    """The command with an option whose value may be left out, which typer does not have."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse `--weighted` as `--weighted=share`, and `--majority` as `--weighted=majority`."""
        written = []
        for argument, after in pairwise([*args, "-"]):
            is_bare = argument == "--weighted" and after.startswith("-")
            written.append("--weighted=share" if is_bare else argument)
        return super().parse_args(ctx, [_MAJORITY.get(argument, argument) for argument in written])


_MAJORITY: Final = {"--majority": "--weighted=majority"}


def web(
    options: SettingsOptions,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on.", metavar="ADDRESS")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", help="Port to listen on; 0: a free port.", min=0, max=65_535)
    ] = 8080,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            help="Read requests and labels from this time on, ISO 8601; default: all retained records.",
            metavar="TIME",
        ),
    ] = None,
    users: Annotated[
        Path | None,
        typer.Option(
            "--users",
            help="File of the users who may sign in; required for other addresses than loopback.",
            metavar="FILE",
        ),
    ] = None,
    add_user: Annotated[
        str | None,
        typer.Option(
            "--add-user", help="Add a user to the file, or set a user's password, and end.", metavar="NAME"
        ),
    ] = None,
    annotator: Annotated[
        str, typer.Option("--annotator", help="Name in every label, without --users.", metavar="NAME")
    ] = "web",
    pseudonyms: Annotated[
        Path | None,
        typer.Option(
            "--pseudonyms",
            help="File with a key (made if missing): pages and topics get pseudonyms, and no names.",
            metavar="FILE",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            help="File of the queue and its answers; default: web.sqlite in state.dir.",
            metavar="FILE",
        ),
    ] = None,
    lease: Annotated[
        float, typer.Option("--lease-seconds", help="Time for which one annotator has a card.", min=1)
    ] = 300,
    undo: Annotated[
        float, typer.Option("--undo-seconds", help="Time in which an answer can be taken back.", min=0)
    ] = 5,
    guess: Annotated[
        bool, typer.Option("--show-guess/--hide-guess", help="Show the model's guess before the answer.")
    ] = False,
    role: Annotated[
        str,
        typer.Option("--role", help="Role for --add-user: annotator, reviewer, or operator.", metavar="ROLE"),
    ] = "annotator",
    proxy_header: Annotated[
        str | None,
        typer.Option(
            "--proxy-header",
            help="Header with the signed-in user's name, set by a proxy; instead of --users.",
            metavar="NAME",
        ),
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--trusted-proxy",
            help="Address or network of the proxy; the header is ignored from other addresses.",
            metavar="ADDRESS",
        ),
    ] = None,
    operator: Annotated[
        list[str] | None,
        typer.Option("--operator", help="With --proxy-header: name of an operator.", metavar="NAME"),
    ] = None,
    reviewer: Annotated[
        list[str] | None,
        typer.Option("--reviewer", help="With --proxy-header: name of a reviewer.", metavar="NAME"),
    ] = None,
    review_below: Annotated[
        float,
        typer.Option(
            "--review-below",
            help="A label of several answers that is less certain waits for a reviewer.",
            min=0,
            max=1,
            metavar="PROBABILITY",
        ),
    ] = 0.8,
    review_seconds: Annotated[
        float,
        typer.Option(
            "--review-seconds",
            help="Time for which such a label is held back for a reviewer; 0: it is sent, and corrected.",
            min=0,
        ),
    ] = 0,
    learn_corrections: Annotated[
        bool,
        typer.Option(
            "--learn-corrections",
            help="Send the record of a corrected label with the right class, to be learned once more.",
        ),
    ] = False,
    decline_reasons: Annotated[
        str | None,
        typer.Option(
            "--decline-reasons",
            help="Reasons of which one is needed to decline: separated by commas, or a file with one a line.",
            metavar="FILE|A,B,…",
        ),
    ] = None,
    comments: Annotated[
        bool, typer.Option("--comments", help="Allow a comment with each answer; it is kept in audit.")
    ] = False,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model", help="Show cards of this model only; may be repeated; default: all.", metavar="KEY"
        ),
    ] = None,
    agree: Annotated[
        int, typer.Option("--agree", help="Number of annotators who answer each request.", min=1, max=99)
    ] = 1,
    weighted: Annotated[
        str,
        typer.Option(
            "--weighted",
            help="Weight of a label with several answers: 1 (majority), the share of votes for it (share, "
            "also without a value), or its probability by the annotator model (quality).",
            metavar="[majority|share|quality]",
        ),
    ] = "majority",
    sure_posterior: Annotated[
        float,
        typer.Option(
            "--sure-posterior",
            help="With --weighted quality: below this probability one more annotator gets the request.",
            min=0,
            max=1,
            metavar="PROBABILITY",
        ),
    ] = 0.9,
    overlap: Annotated[
        float,
        typer.Option(
            "--overlap",
            help="Share of the label requests that several annotators answer, to measure their agreement.",
            min=0,
            max=1,
            metavar="SHARE",
        ),
    ] = 0,
    overlap_answers: Annotated[
        int | None,
        typer.Option(
            "--overlap-answers",
            help="With --overlap: annotators who answer such a request; default: 2.",
            min=2,
            max=99,
        ),
    ] = None,
    overlap_seconds: Annotated[
        float | None,
        typer.Option(
            "--overlap-seconds",
            help="With --overlap: time from the first answer until the label goes out without the others; "
            "default: an hour.",
            min=0,
        ),
    ] = None,
    gold_share: Annotated[
        float,
        typer.Option(
            "--gold-share",
            help="Share of an annotator's cards that are gold questions: records whose class is settled.",
            min=0,
            max=1,
            metavar="SHARE",
        ),
    ] = 0,
    gold: Annotated[
        Path | None,
        typer.Option(
            "--gold",
            help="With --gold-share: file of records with their classes, a JSON object a line; also without "
            "it, requests on which all annotators agreed are gold questions for other annotators.",
            metavar="FILE",
        ),
    ] = None,
    gold_feedback: Annotated[
        bool,
        typer.Option("--gold-feedback", help="Show the class of a gold question after its answer."),
    ] = False,
    pause_below: Annotated[
        float | None,
        typer.Option(
            "--pause-below",
            help="Give no more cards to annotators whose share of right gold questions, or of answers that "
            "most others gave, is below this.",
            min=0,
            max=1,
            metavar="ACCURACY",
        ),
    ] = None,
    pause_after: Annotated[
        int | None,
        typer.Option(
            "--pause-after",
            help="With --pause-below: gold questions or comparisons from which on it applies; default: 20.",
            min=1,
        ),
    ] = None,
    leaderboard: Annotated[
        bool, typer.Option("--leaderboard", help="Show annotators the number of everybody's answers.")
    ] = False,
    sure: Annotated[
        float,
        typer.Option(
            "--sure-utility", help="Largest utility of a request about which a model is sure.", min=0, max=1
        ),
    ] = 0.1,
    units: Annotated[
        Path | None,
        typer.Option("--units", help="Units of features: a JSON object of texts.", metavar="FILE"),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option("--certificate", help="TLS certificate with its chain (PEM).", metavar="FILE"),
    ] = None,
    private_key: Annotated[
        Path | None,
        typer.Option("--private-key", help="Private key of the certificate (PEM).", metavar="FILE"),
    ] = None,
    experiments: Annotated[
        Path,
        typer.Option("--experiments", help="Folder of the results to show.", metavar="FOLDER"),
    ] = Path("experiments"),
    docs: Annotated[
        str,
        typer.Option("--docs", help="Address of the site of 'make docs', for links.", metavar="URL"),
    ] = "",
) -> None:
    """Answer label requests and watch models in the browser (docs/web.md).

    It needs the extra 'web' (pip install 'streamgrove[web]', in a checkout pip install -e '.[web]'). Ctrl-C
    ends it; answers that were not sent are sent after the next start.

    \b
    [bold]Examples[/bold]
      grove web
      grove web --users users.txt --add-user ann
      grove web --host 0.0.0.0 --users users.txt --certificate cert.pem --private-key key.pem
      grove web --agree 3 --weighted
      grove web --agree 3 --weighted quality
      grove web --overlap 0.1
      grove web --gold-share 0.05 --gold gold.jsonl
      grove web --model shop-17
      grove web --host 0.0.0.0 --proxy-header X-Forwarded-User --trusted-proxy 10.0.0.2 --operator ann
    """
    import os
    from functools import partial

    from streamapp.cli.signals import interrupted_by_terminate
    from streamapp.settings.needs import require

    require("web", "grove web")
    if add_user is not None:
        _add(users, add_user, role)
        return
    from streamapp.settings import to_environment
    from streamapp.settings.clients import output_reader
    from streamapp.web.annotation_terms import Terms
    from streamapp.web.application import WebPlan, run_web
    from streamapp.web.proxy import Proxy

    settings, kafka, names = options.connection()
    terms = Terms(
        round(lease * 1000),
        round(undo * 1000),
        settings.event_time_max_jump_ms,
        text_max=settings.text_max_bytes,
        agree=agree,
        weighted=weighting_of(weighted),
        sure_utility=sure,
        models=tuple(models or ()),
        overlap=overlap_of(overlap, overlap_answers, overlap_seconds, agree),
        gold_share=gold_share,
        gold_feedback=gold_feedback,
        sure_posterior=sure_posterior,
        review_below=review_below,
        review_ms=round(review_seconds * 1000),
        learn_corrections=learn_corrections,
        decline_reasons=decline_reasons_of(decline_reasons),
        comments=comments,
    )
    proxy = None
    if proxy_header is not None:
        proxy = Proxy.of(proxy_header, trusted_proxy or [], operator or [], reviewer or [])
    plan = WebPlan(
        state or settings.state_dir / "web.sqlite",
        names,
        host,
        port,
        milliseconds_of(since),
        users,
        annotator,
        certificate,
        private_key,
        not guess,
        terms,
        proxy,
        units_of(units),
        experiments,
        dict(os.environ) | to_environment(settings),
        docs,
        partial(output_reader, settings),
        gold_records(gold, terms),
        pause_rule_of(pause_below, pause_after, terms),
        leaderboard,
        pseudonyms,
    )
    with interrupted_by_terminate():
        run_web(plan, kafka, lambda address: typer.echo(f"grove web is at {address}  (Ctrl-C ends it)"))


def _add(users: Path | None, name: str, role: str) -> None:
    from streamapp.web.users import ROLES, add_user

    if users is None:
        message = "--add-user needs --users FILE, where the user is added"
        raise UsageError(message)
    chosen = next((name_of_role for name_of_role in ROLES if name_of_role == role), None)
    if chosen is None:
        message = f"--role {role} must be one of {', '.join(ROLES)}"
        raise UsageError(message)
    password = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    add_user(users, name, password, chosen)
    typer.echo(f"{name} may sign in as {role}")
