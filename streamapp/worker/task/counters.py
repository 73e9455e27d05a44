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
    LABELLED: "answered rows that carried their label, learned at once",
    REQUESTED: "label requests sent",
    REPEATED: "rows whose id is that of an instance already known; answered, but not asked for again",
    INSTANCES_DEAD: "rows (of unreadable records: records) that became dead letters",
    INSTANCES_FROZEN: "answered rows of frozen models that carried a label, which was not learned",
    LEARNED: "labels learned in time",
    LATE: "labels that came after pending.ttl.ms, when the features were gone; not learned",
    LATE_LEARNED: "labels that came after pending.ttl.ms with their own features; learned",
    EARLY: "labels held back: their instance is not known yet; counted again when their fate is known",
    DUPLICATE: "labels for an instance that was labelled or declined before (or a second early one)",
    UNKNOWN: "early labels given up: their instance did not come, or there was no room for more",
    DECLINED: "labels that say nobody will label the instance",
    LABELS_FROZEN: "labels for a frozen model; not learned",
    LABELS_DEAD: "labels that became dead letters",
    VALUES_TAKEN: "records with features that were asked for (or that asked for the answer)",
    VALUES_LATE: "records for an instance that was answered before, or is not known; nothing is learned",
    VALUES_DUPLICATE: "records of which everything had come before",
    VALUES_DEAD: "records of feature values that became dead letters",
    APPLIED: "commands carried out",
    CONTROLS_DEAD: "commands that became dead letters",
    EARLY_LEARNED: "early labels learned when their instance came; also in instances.labelled",
    MODELS_CREATED: "models made, by a first record or by command",
    MODELS_DELETED: "models deleted by command",
    MODELS_IMPORTED: "models imported; one that was not there is in models.created too",
    IMPORTS_GIVEN_UP: "imports of which only parts came in order, or that made room for another one",
    SPLITS: "splits installed",
    GROWTH_STOPPED: "trees that reached max_leaves or max_bytes of their spec: they grow no more",
    FEATURES_IGNORED: "feature values ignored because the model's schema does not know their name",
    VALUES_IGNORED: "nominal values that the schema does not take in; treated as missing",
    TIME_JUMPS: "timestamps too far ahead to be believed, at first sight or by the records after them",
    PENDING_EXPIRED: "pending instances whose label did not come in time",
    PENDING_DROPPED: "pending instances forgotten early: no room, or their model is gone",
    EPISODES_OPENED: "rows of which features were asked for",
    EPISODES_DROPPED: "open episodes whose model was deleted or began anew; nobody answers them",
    EPISODES["one_region"]: "episodes in which what is known came to decide the answer",
    EPISODES["none_left"]: "episodes in which no hypothesis agreed any more with what is known",
    EPISODES["exhausted"]: "episodes in which nothing was left to ask for",
    EPISODES["budget"]: "episodes that would have cost more than a record may",
    EPISODES["finish"]: "episodes that were answered because somebody wanted it, or the model buys no more",
    EPISODES["deadline"]: "episodes whose values did not come in time, answered with what was known",
    EPISODES["room"]: "episodes that made room for another one, answered with what was known",
    FEATURES_MISSING: "features that were unknown when an episode was opened",
    FEATURES_REQUESTED: "features asked for",
    FEATURES_BOUGHT: "features that came, and were paid for",
    FEATURES_UNAVAILABLE: "features that were asked for and are not to be had",
    OUTPUTS_TOO_LARGE: "outputs larger than their topic takes; their records became dead letters",
}
