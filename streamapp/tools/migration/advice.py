"""Migration advice: the remaining steps, as commands and environment variables."""

from __future__ import annotations

from collections.abc import Mapping

from streamapp.tools.migration.migration import Report
from streamapp.tools.migration.places import NewPlace
from topics.definitions import CATALOGUE, TopicNames

OUTPUTS = tuple(topic for topic in CATALOGUE if topic.direction == "out")


def left_to_do(report: Report, was: TopicNames, new: NewPlace, environment: Mapping[str, str]) -> list[str]:
    """Return the remaining steps in order; environment: variables that change for workers."""
    steps, names = [], new.names
    if words := unprocessed_in_words(report.unprocessed):
        steps.append(
            f"records that were not processed ({words}): read the old topics from the committed offsets of "
            "the old group on and produce these records to the new topics, or give them up"
        )
    steps.append(
        f"producers: send to {names.instances}, {names.labels} and {names.controls}, partition by key "
        f"(partitioner=murmur2_random) over {new.partitions} partitions"
    )
    steps.append(
        f"consumers: read {', '.join(map(names.of, OUTPUTS))}; an oracle: grove oracle --topics-prefix "
        f"{names.prefix or repr('')}"
    )
    pairs = " ".join(f"{name}={value}" for name, value in environment.items())
    steps.append(
        f"workers: the same settings but {pairs}, and auto.offset.reset=earliest if it was latest, which "
        f"would pass over the models in {names.controls}; 'grove config check', then start them"
    )
    if report.models or report.awaited:
        n = report.models + report.awaited
        steps.append(
            f"look: 'grove models list --topics-prefix {names.prefix}' shows the {n} models once workers "
            "have run"
        )
    if report.stays.waiting:
        steps.append(
            "labels that are still to come for instances answered before: send them with their features, or "
            "they are unknown at the new place"
        )
    steps.append(
        f"the old topics ({was.prefix}*) are as they were: to go back, start the old workers again. Delete "
        "them when all old outputs were read, and 'grove models rebuild' is not needed for an answer "
        "of that time: kafka-topics --delete --topic "
        f"'{was.prefix.replace('.', chr(92) + '.')}({'|'.join(topic.name for topic in CATALOGUE)})'"
    )
    return steps


def stays_in_words(report: Report) -> str:
    """Return in words what a migration leaves behind; empty if there is nothing."""
    stays = report.stays
    parts = (
        (stays.waiting, "instances that wait for a label"),
        (stays.requests, "of them with an open request, which is counted as expired"),
        (stays.early_labels, "labels that wait for their instance"),
        (stays.imports, "imports of which parts are missing"),
    )
    return ", ".join(f"{n:,} {what}" for n, what in parts if n)


def unprocessed_in_words(unprocessed: Mapping[str, int]) -> str:
    """Return in words how many records of which source are unprocessed; empty if there are none."""
    return ", ".join(f"{n:,} of {source}" for source, n in unprocessed.items() if n)
