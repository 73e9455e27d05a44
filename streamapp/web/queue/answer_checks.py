"""Answer checks: whether a typed text can be a class or a value; longest: bytes that a text may have."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from streamapp.web.annotation_terms import Terms
from streamapp.web.queue.cards import Attribute, Given, Refused

COMMENT_MAX: Final = 1024  # characters


def is_name(text: str, longest: int) -> bool:
    """Return whether a text can name a class: printable, of 1 to `longest` bytes."""
    return bool(text) and len(text.encode("utf-8", "surrogatepass")) <= longest and text.isprintable()


def check_words(terms: Terms, label: str | None, reason: str | None, comment: str | None) -> None:
    """Raise Refused if an answer needs a reason, or has one or a comment that it may not have."""
    reasons = terms.decline_reasons
    if label is None and reasons and reason not in reasons:
        message = f"To decline, choose one of the reasons: {', '.join(reasons)}."
        raise Refused(message)
    if reason is not None and reason not in reasons:
        message = f"{reason[:80]!r} is none of the reasons of this application."
        raise Refused(message)
    if comment is None:
        return
    if not terms.comments:
        message = "Comments are switched off: --comments of 'grove web' allows them."
        raise Refused(message)
    if len(comment) > COMMENT_MAX or not is_utf8(comment):
        message = f"A comment must have at most {COMMENT_MAX:,} characters."
        raise Refused(message)


def is_utf8(text: str) -> bool:
    """Return whether a text has no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_given(
    answer: Given, requested: Sequence[str], declared: Mapping[str, Attribute], longest: int
) -> None:
    """Raise Refused if values are missing, were not requested, or are not allowed by their attributes."""
    names = {*answer.features, *answer.unavailable}
    if extra := sorted(names - set(requested)):
        message = f"{extra[0]} is not requested, or was given before."
        raise Refused(message)
    missing = [name for name in requested if name not in names]
    if missing and not answer.finish:
        message = f"{missing[0]} is missing: give a value, or mark it as not available."
        raise Refused(message)
    for reason in answer.unavailable.values():
        if reason is not None and not is_name(reason, longest):
            message = f"A reason must have 1 to {longest:,} bytes, all of them printable."
            raise Refused(message)
    for name, value in answer.features.items():
        if problem := _problem(value, declared.get(name), longest):
            message = f"{name}: {problem}"
            raise Refused(message)


def _problem(value: float | str, declared: Attribute | None, longest: int) -> str:
    """Return what is wrong with a value; "": nothing."""
    if isinstance(value, str):
        if declared is not None and declared.kind == "numeric":
            return f"{value[:40]!r} is no number."
        if not is_name(value, longest):
            return f"a text must have 1 to {longest:,} bytes, all of them printable."
        if declared is not None and not declared.open and value not in declared.values:
            return f"{value[:40]!r} is none of {', '.join(declared.values[:20])}."
        return ""
    if declared is not None and declared.kind == "nominal":
        return f"{value:g} is a number, and this feature has texts."
    return "" if math.isfinite(value) else f"{value} is no finite number."
