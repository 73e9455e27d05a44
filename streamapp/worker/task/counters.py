"""Counters of a task: plain integers by name, `<topic>.<outcome>` where they count records.

Each run's effects carry the counts that it added. Their sum belongs to the process: a replay after a restart
adds nothing to it. Counts of the models' state (labels learned, requests, splits, evaluation) are in the
models and survive with them; `pending.*` describes the partition's memory of pending instances.
"""

from __future__ import annotations

from typing import Final

ANSWERED: Final = "instances.answered"
LABELLED: Final = "instances.labelled"
REQUESTED: Final = "instances.requested"
REPEATED: Final = "instances.repeated"
INSTANCES_DEAD: Final = "instances.dead-letter"
INSTANCES_FROZEN: Final = "instances.frozen"

LEARNED: Final = "labels.learned"
LATE: Final = "labels.late"
LATE_LEARNED: Final = "labels.late-learned"
EARLY: Final = "labels.early"
DUPLICATE: Final = "labels.duplicate"
UNKNOWN: Final = "labels.unknown"
DECLINED: Final = "labels.declined"
LABELS_FROZEN: Final = "labels.frozen"
LABELS_DEAD: Final = "labels.dead-letter"

VALUES_TAKEN: Final = "feature_values.taken"
VALUES_LATE: Final = "feature_values.late"
VALUES_DUPLICATE: Final = "feature_values.duplicate"
VALUES_DEAD: Final = "feature_values.dead-letter"

APPLIED: Final = "controls.applied"
CONTROLS_DEAD: Final = "controls.dead-letter"

EARLY_LEARNED: Final = "early.learned"
MODELS_CREATED: Final = "models.created"
MODELS_DELETED: Final = "models.deleted"
MODELS_IMPORTED: Final = "models.imported"
IMPORTS_GIVEN_UP: Final = "imports.given-up"
SPLITS: Final = "models.splits"
GROWTH_STOPPED: Final = "models.growth-stopped"
FEATURES_IGNORED: Final = "features.ignored"
VALUES_IGNORED: Final = "features.unknown-values"
TIME_JUMPS: Final = "time.jumps"
PENDING_EXPIRED: Final = "pending.expired"
PENDING_DROPPED: Final = "pending.dropped"
OUTPUTS_TOO_LARGE: Final = "outputs.too-large"
EPISODES_OPENED: Final = "episodes.opened"
EPISODES_DROPPED: Final = "episodes.dropped"
EPISODES: Final = {
    stop: f"episodes.{stop.replace('_', '-')}"
    for stop in ("one_region", "none_left", "exhausted", "budget", "finish", "deadline", "room")
}
"""Counters of episodes that requested features, by the reason why they ended."""
FEATURES_MISSING: Final = "episodes.features-missing"
FEATURES_REQUESTED: Final = "episodes.features-requested"
FEATURES_BOUGHT: Final = "episodes.features-bought"
FEATURES_UNAVAILABLE: Final = "episodes.features-unavailable"

MEANING: Final[dict[str, str]] = {
    ANSWERED: "rows that got a prediction",
    LABELLED: "answered rows that carried their label, which was learned with them",
    REQUESTED: "label requests sent",
    REPEATED: "rows whose id a known instance has; answered, without another label request",
    INSTANCES_DEAD: "rows (of unreadable records: records) that became dead letters",
    INSTANCES_FROZEN: "answered rows of frozen models that carried a label, which was not learned",
    LEARNED: "labels learned in time",
    LATE: "labels that came after pending.ttl.ms, without features; not learned",
    LATE_LEARNED: "labels that came after pending.ttl.ms with their own features; learned",
    EARLY: "labels held back: their instance is not known yet; they are counted again at their end",
    DUPLICATE: "labels for an instance that was labelled or declined before (or a second early label)",
    UNKNOWN: "early labels dropped: their instance did not come, or the room for early labels was full",
    DECLINED: "labels without a class: an annotator has declined the instance",
    LABELS_FROZEN: "labels for a frozen model; not learned",
    LABELS_DEAD: "labels that became dead letters",
    VALUES_TAKEN: "records with requested features, or with the command to answer",
    VALUES_LATE: "records for an instance that was answered before, or is not known; not learned",
    VALUES_DUPLICATE: "records without a new feature: all their features had come before",
    VALUES_DEAD: "records of feature values that became dead letters",
    APPLIED: "commands applied",
    CONTROLS_DEAD: "commands that became dead letters",
    EARLY_LEARNED: "early labels learned when their instance came; also in instances.labelled",
    MODELS_CREATED: "models created, by a first record or by a command",
    MODELS_DELETED: "models deleted by a command",
    MODELS_IMPORTED: "models imported; a new model is counted in models.created too",
    IMPORTS_GIVEN_UP: "imports dropped: parts missing or out of order, or another import needed the room",
    SPLITS: "splits installed",
    GROWTH_STOPPED: "trees that reached max_leaves or max_bytes of their spec, and stopped growing",
    FEATURES_IGNORED: "feature values ignored because their name is not in the model's schema",
    VALUES_IGNORED: "nominal values that the schema has no room for; treated as missing",
    TIME_JUMPS: "timestamps too far ahead to be accepted, on arrival or after the records that followed",
    PENDING_EXPIRED: "pending instances whose label did not come in time",
    PENDING_DROPPED: "pending instances dropped early: no room, or their model was deleted",
    EPISODES_OPENED: "rows for which features were requested",
    EPISODES_DROPPED: "open episodes whose model was deleted or reset; they get no answer",
    EPISODES["one_region"]: "episodes in which the known features decided the answer",
    EPISODES["none_left"]: "episodes in which no hypothesis agreed with the known features",
    EPISODES["exhausted"]: "episodes in which all features were requested",
    EPISODES["budget"]: "episodes that reached the budget of a record",
    EPISODES["finish"]: "episodes answered by command, or because the model buys no more features",
    EPISODES["deadline"]: "episodes whose values did not come in time, answered with the known features",
    EPISODES["room"]: "episodes that made room for another episode, answered with the known features",
    FEATURES_MISSING: "features that were unknown when an episode was opened",
    FEATURES_REQUESTED: "features requested",
    FEATURES_BOUGHT: "requested features that came, and were paid for",
    FEATURES_UNAVAILABLE: "requested features that are not available",
    OUTPUTS_TOO_LARGE: "outputs above the size limit of their topic; their records became dead letters",
}
