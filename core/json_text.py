"""JSON from untrusted senders: parsed, or refused with an exception that names the reason."""

from __future__ import annotations

import json
from typing import Any


class DeepError(ValueError):
    """JSON that is nested too deeply for the parser."""


def read_json(text: str | bytes) -> Any:
    """Return the value of a JSON text; raise ValueError (or DeepError) if it is not valid."""
    try:
        return json.loads(text)
    except RecursionError:
        message = "it is nested too deeply"
        raise DeepError(message) from None
