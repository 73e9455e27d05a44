"""Options of `grove web`: values of the command line as the application has them, or a clear refusal."""

from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streamapp.errors import UsageError

if TYPE_CHECKING:
    from streamapp.people.pauses import PauseRule
    from streamapp.people.settlement import Weighting
    from streamapp.web.annotation_terms import Overlap, Terms
    from streamapp.web.queue.quality.gold_file import GoldRecord

REASONS_MAX: Final = 20
REASON_MAX: Final = 100


def pause_rule_of(below: float | None, after: int | None, terms: "Terms") -> "PauseRule | None":
    """Return the rule that pauses people; UsageError for options that contradict each other."""
    from streamapp.people.pauses import PauseRule

    if below is None:
        if after is not None:
            message = f"--pause-after {after} needs --pause-below ACCURACY, the limit that it belongs to"
            raise UsageError(message)
        return None
    if not (terms.gold_share or terms.overlap.share or terms.agree > 1 or terms.by_quality):
        message = (
            f"--pause-below {below:g} needs answers that can be compared; give --gold-share, --overlap or "
            "--agree, too"
        )
        raise UsageError(message)
    return PauseRule(below) if after is None else PauseRule(below, after)


def overlap_of(share: float, answers: int | None, seconds: float | None, agree: int) -> "Overlap":
    """Return the overlap; UsageError for options that contradict each other."""
    from streamapp.web.annotation_terms import Overlap

    if share == 0 and (answers, seconds) != (None, None):
        name = "--overlap-seconds" if answers is None else "--overlap-answers"
        message = f"{name} needs --overlap SHARE above 0, the share of the requests that several answer"
        raise UsageError(message)
    if share and agree > 1:
        message = (
            f"--overlap {share:g} must not be given with --agree {agree}: with --agree several annotators "
            "answer every request already; leave one of them out"
        )
        raise UsageError(message)
    return Overlap(
        share, 2 if answers is None else answers, 3_600_000 if seconds is None else round(seconds * 1000)
    )


def gold_records(path: Path | None, terms: "Terms") -> "list[GoldRecord]":
    """Return the records of the gold file; UsageError if the options contradict each other."""
    from streamapp.web.queue.quality.gold_file import read_gold

    if terms.gold_share == 0:
        if path is not None or terms.gold_feedback:
            name = "--gold-feedback" if path is None else f"--gold {path}"
            message = (
                f"{name} needs --gold-share SHARE above 0, the share of the cards that are gold questions"
            )
            raise UsageError(message)
        return []
    if path is not None:
        return read_gold(path, terms.models, terms.text_max)
    if terms.agree == 1 and not terms.keeps_votes:
        message = (
            f"--gold-share {terms.gold_share:g} needs --gold FILE with records and their classes, or --agree "
            "or --overlap: requests on which all annotators agreed become gold questions"
        )
        raise UsageError(message)
    return []


def decline_reasons_of(text: str | None) -> tuple[str, ...]:
    """Return the reasons of a list or a file; UsageError if there is none, or if one is no short text."""
    if text is None:
        return ()
    lines = text.split(",")
    if isfile(text):  # noqa: PTH113 - Path.is_file fails for a list that is too long for a file's name
        try:
            lines = Path(text).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeError) as error:
            message = f"--decline-reasons {text} cannot be read: {error}"
            raise UsageError(message) from None
    reasons = tuple(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if not 0 < len(reasons) <= REASONS_MAX:
        message = f"--decline-reasons must have 1 to {REASONS_MAX} reasons, it has {len(reasons)}"
        raise UsageError(message)
    for reason in reasons:
        if len(reason) > REASON_MAX or not reason.isprintable():
            message = f"--decline-reasons: {reason[:80]!r} must have 1 to {REASON_MAX} printable characters"
            raise UsageError(message)
    return reasons


def weighting_of(weighted: str) -> "Weighting":
    from typing import get_args

    from streamapp.people.settlement import Weighting

    for weighting in get_args(Weighting):
        if weighted == weighting:
            name: Weighting = weighting
            return name
    message = f"--weighted {weighted} must be majority, share or quality; without a value it is share"
    raise UsageError(message)


def units_of(path: Path | None) -> dict[str, str]:
    import json

    if path is None:
        return {}
    try:
        units = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = f"--units {path} cannot be read: {error}"
        raise UsageError(message) from None
    if not isinstance(units, dict) or not all(isinstance(unit, str) for unit in units.values()):
        message = f'--units {path} must be an object such as {{"amount": "EUR"}}, of texts alone'
        raise UsageError(message)
    return units


def milliseconds_of(since: str | None) -> int | None:
    """Return a time in ms since the epoch; a time without a zone is in the zone of this machine."""
    from datetime import datetime

    if since is None:
        return None
    try:
        return round(datetime.fromisoformat(since).timestamp() * 1000)
    except (ValueError, OverflowError):
        message = f"--since {since} must be a time such as 2026-11-22T18:00:00+01:00"
        raise UsageError(message) from None
