"""What a task is told once: models, pending instances, clock, limits."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from core.errors import SpecError
from core.spec import Spec, too_deep
from topics.codecs import Limits

if TYPE_CHECKING:
    from streamapp.settings import Settings

EARLY_HOLD_MS: Final = 600_000
"""How long a label waits for an instance that comes after it: the input topics are only roughly in step."""

EARLY_SHARE: Final = 16
"""Labels that wait for their instance get this part of `pending.max.bytes`."""


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """The settings of a task; see docs/settings.md for those that have the same name."""

    model_spec: str = "h-tree"
    models_auto_create: bool = True
    models_max_count: int = 200_000
    models_max_classes: int = 64
    evaluation_every: int = 1000
    pending_keep: Literal["requested", "all"] = "requested"
    pending_max_bytes: int = 64 << 20
    pending_ttl_ms: int = 7 * 86_400_000
    event_time_max_jump_ms: int = 86_400_000
    processing_exception_handler: Literal["stop-partition", "dead-letter"] = "stop-partition"
    dead_letter_stacktrace: bool = False
    limits: Limits = Limits()

    @staticmethod
    def from_settings(settings: Settings) -> TaskConfig:
        """Return what the settings say."""
        return TaskConfig(
            model_spec=settings.model_spec,
            models_auto_create=settings.models_auto_create,
            models_max_count=settings.models_max_count,
            models_max_classes=settings.models_max_classes,
            evaluation_every=settings.evaluation_every,
            pending_keep=settings.pending_keep,
            pending_max_bytes=settings.pending_max_bytes,
            pending_ttl_ms=settings.pending_ttl_ms,
            event_time_max_jump_ms=settings.event_time_max_jump_ms,
            processing_exception_handler=settings.processing_exception_handler,
            dead_letter_stacktrace=settings.dead_letter_stacktrace,
            limits=Limits(settings.record_max_bytes, settings.block_max_rows),
        )

    def to_json(self) -> str:
        """Return the configuration as canonical JSON, for the journal."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> TaskConfig:
        """Return the configuration that `to_json` wrote; a field it does not name has its default."""
        body = json.loads(text)
        known = {field.name for field in dataclasses.fields(TaskConfig)}
        if unknown := sorted(body.keys() - known):
            message = f"task configuration has unknown fields {unknown}: a newer release wrote it; run that"
            raise ValueError(message)
        return TaskConfig(**(body | {"limits": Limits(**body.get("limits", {}))}))

    @property
    def early_hold_ms(self) -> int:
        """How long an early label is held back."""
        return min(EARLY_HOLD_MS, self.pending_ttl_ms)

    @property
    def early_max_bytes(self) -> int:
        """How much early labels may take."""
        return self.pending_max_bytes // EARLY_SHARE

    def default_spec(self) -> Spec:
        """Return the spec of models that come into being by their first record."""
        return self.spec(self.model_spec)

    def spec(self, given: Any) -> Spec:
        """Return a spec from JSON, an object or a preset's name; what it leaves open, the settings say."""
        body = _body(given)
        evaluation = body.get("evaluation", {})
        if isinstance(evaluation, dict):
            body["evaluation"] = {"every": self.evaluation_every} | evaluation
        body.setdefault("max_classes", self.models_max_classes)
        return Spec.parse(body)


def _body(given: Any) -> dict[str, Any]:
    if isinstance(given, str) and given.lstrip().startswith("{"):
        try:
            given = json.loads(given)
        except ValueError as error:
            message = f"spec={given[:80]!r} must be a JSON object or the name of a preset: {error}"
            raise SpecError(message) from error
        except RecursionError:
            raise SpecError(too_deep("spec")) from None
    if isinstance(given, str):
        return {"learner": given.strip()}
    if isinstance(given, dict):
        return dict(given)
    message = f"spec={given!r} must be an object or the name of a preset"
    raise SpecError(message)
