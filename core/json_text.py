"""JSON that anybody may have written: read, or refused as what it is."""

from __future__ import annotations

import json
from typing import Any


class DeepError(ValueError):
    """JSON that is nested so deeply that no parser follows it."""


def read_json(text: str | bytes) -> Any:
    """Return what a JSON text says; ValueError if it is none, DeepError among them."""
    try:
        return json.loads(text)
    except RecursionError:
        message = "it is nested too deeply"
        raise DeepError(message) from None
