"""Task configuration: models, pending instances, clock, limits."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from core.errors import SpecError
from core.json_text import DeepError, read_json
from core.spec import Spec, too_deep
from core.state_version import STATE_VERSION, check_words, oldest_version
from topics.codecs import Limits

if TYPE_CHECKING:
    from streamapp.settings import Settings

UNLIMITED: Final = 1 << 30

FORMER_ATTRIBUTES: Final = 4096
"""Limit of the growth of models before `models.max.attributes` existed; it did not apply to first records."""

EARLY_HOLD_MS: Final = 600_000
"""How long a label waits for an instance that comes after it: the input topics are only roughly in step."""

EARLY_SHARE: Final = 16
"""Labels that wait for their instance get this part of `pending.max.bytes`."""


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """The settings of a task; docs/settings.md describes those that have the same name."""

    model_spec: str = "h-tree"
    models_auto_create: bool = True
    models_max_count: int = 200_000
    models_max_classes: int = 64
    models_max_attributes: int = 4096
    evaluation_every: int = 1000
    pending_keep: Literal["requested", "all"] = "requested"
    pending_max_bytes: int = 64 << 20
    pending_ttl_ms: int = 7 * 86_400_000
    event_time_max_jump_ms: int = 86_400_000
    processing_exception_handler: Literal["stop-partition", "dead-letter"] = "stop-partition"
    dead_letter_stacktrace: bool = False
    features: bool = True
    """The topics of feature acquisition exist; without them no model buys features."""
    schemas: bool = False
    """A schema registry is in use: records are read by the schemas that they name."""
    episodes_max_count: int = 10_000
    episodes_max_bytes: int = 64 << 20
    limits: Limits = Limits()  # noqa: RUF009 - frozen
    state_version: int = STATE_VERSION
    """State version of the release that wrote the configuration: specs keep the meaning they had there."""

    @staticmethod
    def from_settings(settings: Settings, *, features: bool = True) -> TaskConfig:
        """Return the configuration in the settings; `features`: the topics of feature acquisition exist."""
        return TaskConfig(
            model_spec=settings.model_spec,
            models_auto_create=settings.models_auto_create,
            models_max_count=settings.models_max_count,
            models_max_classes=settings.models_max_classes,
            models_max_attributes=settings.models_max_attributes,
            evaluation_every=settings.evaluation_every,
            pending_keep=settings.pending_keep,
            pending_max_bytes=settings.pending_max_bytes,
            pending_ttl_ms=settings.pending_ttl_ms,
            event_time_max_jump_ms=settings.event_time_max_jump_ms,
            processing_exception_handler=settings.processing_exception_handler,
            dead_letter_stacktrace=settings.dead_letter_stacktrace,
            features=features,
            schemas=settings.schema_registry_url is not None,
            limits=Limits(
                settings.record_max_bytes,
                settings.block_max_rows,
                settings.text_max_bytes,
                max(Limits().features_max, settings.models_max_attributes),
                settings.max_class_name_bytes,
            ),
        )

    def to_json(self) -> str:
        """Return the configuration as canonical JSON, for the journal; its records name the state version."""
        body = dataclasses.asdict(self)
        del body["state_version"]
        if not self.schemas:  # older releases do not have it
            del body["schemas"]
        return json.dumps(body, sort_keys=True, separators=(",", ":"))

    @staticmethod
    def from_json(text: str, state_version: int = STATE_VERSION) -> TaskConfig:
        """Return the configuration that `to_json` wrote; a field that is missing in it has its default.

        `state_version`: of the release that wrote it. Limits that did not exist then do not apply, so that a
        replay accepts the same records. ValueError if the text is not a configuration.
        """
        try:
            document = read_json(text)
        except ValueError as error:
            message = f"task configuration must be JSON: {error}; something else wrote to the journal"
            raise ValueError(message) from error
        if not isinstance(document, dict):
            message = (
                f"task configuration={text[:40]!r} must be a JSON object; something else wrote to the journal"
            )
            raise ValueError(message)
        body: dict[str, Any] = document
        field_names = {field.name for field in dataclasses.fields(TaskConfig)} - {"state_version"}
        if unknown := sorted(body.keys() - field_names):
            message = f"task configuration has unknown fields {unknown}: a newer release wrote it; run that"
            raise ValueError(message)
        body = {"models_max_attributes": UNLIMITED} | body
        former = dict.fromkeys(("text_max_bytes", "features_max", "class_max_bytes"), UNLIMITED)
        limits = Limits(**(former | body.get("limits", {})))
        return TaskConfig(**(body | {"limits": limits, "state_version": state_version}))

    @property
    def growth_max_attributes(self) -> int:
        """The most attributes of a model that adds new features to its schema."""
        return FORMER_ATTRIBUTES if self.models_max_attributes == UNLIMITED else self.models_max_attributes

    @property
    def early_hold_ms(self) -> int:
        """How long an early label is held back."""
        return min(EARLY_HOLD_MS, self.pending_ttl_ms)

    @property
    def early_max_bytes(self) -> int:
        """The most bytes of early labels."""
        return self.pending_max_bytes // EARLY_SHARE

    def default_spec(self) -> Spec:
        """Return the spec of models that are created by their first record."""
        return self.spec(self.model_spec)

    def spec(self, source: Any) -> Spec:
        """Return a spec from JSON, an object or a preset's name; settings replace what it leaves open."""
        body = _body(source)
        check_words(body, self.state_version)
        evaluation = body.get("evaluation", {})
        if isinstance(evaluation, dict):
            body["evaluation"] = {"every": self.evaluation_every} | evaluation
        body.setdefault("max_classes", self.models_max_classes)
        return self.checked(Spec.parse(body, self.state_version))

    def checked(self, spec: Spec) -> Spec:
        """Return a spec; SpecError if it needs topics that are missing."""
        if spec.acquirer is not None and not self.features:
            message = (
                f"acquire={spec.acquire.spelled!r} must have the topics feature-requests and feature-values, "
                "which are missing; create them with 'grove topics create' and start the workers again, or "
                'set "acquire": "none"'
            )
            raise SpecError(message)
        return spec


def version_of(source: Any) -> int:
    """Return the oldest state version that has all words of a spec as it was given, aliases among them."""
    return oldest_version(_body(source))


def _body(source: Any) -> dict[str, Any]:
    if isinstance(source, str) and source.lstrip().startswith(("{", "[", '"')):
        try:
            body = read_json(source)
        except DeepError:
            raise SpecError(too_deep("spec")) from None
        except ValueError as error:
            message = f"spec={source[:80]!r} must be a JSON object or the name of a preset: {error}"
            raise SpecError(message) from error
        if not isinstance(body, dict):
            message = f"spec={source[:80]!r} must be a JSON object or the name of a preset without quotes"
            raise SpecError(message)
        return body
    if isinstance(source, str):
        return {"learner": source.strip()}
    if isinstance(source, dict):
        return dict(source)
    message = f"spec={source!r} must be an object or the name of a preset"
    raise SpecError(message)
