"""Inspection server: reads questions, line by line, and answers them in order.

A question is `{"ask": NAME, …}`, an answer `{"found": …}` or `{"error": TEXT}`. Settings come from the
environment (`settings.to_environment`). The text of an error is for people. An unexpected exception ends
the process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import IO, Any

import orjson

from core.errors import GroveError
from streamapp.errors import StreamappError
from streamapp.settings import load_settings
from streamapp.settings.clients import known_schemas, librdkafka_properties
from streamapp.tools.inspection.dead_letter_answers import DeadLetterAnswers
from streamapp.tools.inspection.model_answers import ModelAnswers
from streamapp.tools.inspection.partition_answers import PartitionAnswers
from streamapp.tools.offline.installation import Installation
from streamapp.worker.task.task_config import TaskConfig
from topics.clients.admin import existing
from topics.clients.cluster import Cluster
from topics.definitions import TopicNames
from topics.errors import TopicsError

Answer = Callable[..., Any]


def main() -> None:
    """Answer standard input on standard output; output of libraries goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    settings = load_settings()
    kafka = librdkafka_properties(settings)
    names = existing(Cluster(kafka), TopicNames(settings.topics_prefix))
    config = TaskConfig.from_settings(settings, features=names.features)
    place = Installation(kafka, settings.application_id, names, config, known_schemas(settings))
    serve(sys.stdin.buffer, answers, questions(place))


def questions(place: Installation) -> dict[str, Answer]:
    """Return the functions that answer questions about an installation, by name."""
    models, letters, partitions = ModelAnswers(place), DeadLetterAnswers(place), PartitionAnswers(place)
    return {
        "model": models.model,
        "path": models.path,
        "explanation": models.explanation,
        "differences": models.differences,
        "partitions": partitions.partitions,
        "dead-letters": letters.listed,
        "dead-letter": letters.shown,
        "replay": letters.replayed,
        "skip": letters.skipped,
    }


def serve(asked: IO[bytes], answered: IO[bytes], answers: Mapping[str, Answer]) -> None:
    """Answer each line; the next line is read after the answer is written."""
    for line in asked:
        question = orjson.loads(line)
        try:
            reply = {"found": answers[question.pop("ask")](**question)}
        except (StreamappError, TopicsError, GroveError) as error:
            reply = {"error": str(error)}
        answered.write(orjson.dumps(reply, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n")
