"""Model words: the figures of a watched model as pages write them."""

from __future__ import annotations

from streamapp.web.formatting import share
from streamapp.web.watch.watched import ModelRow


def accuracy_in_words(model: ModelRow) -> str:
    """Return the unbiased accuracy of a model with its 95 % interval, or why there is none yet."""
    if model.unbiased is not None:
        if model.low is None or model.high is None:
            return share(model.unbiased)
        return f"{share(model.unbiased)} ({model.low * 100:.1f} to {model.high * 100:.1f})"
    if not model.labels:
        return "none yet: the model has no label"
    if model.accuracy is None:
        return f"none yet at {model.labels:,} labels: the first evaluation comes at evaluation.every labels"
    return f"{share(model.accuracy)} on requested labels alone; none was drawn with a known probability"
