"""The peers in Java: a plain loop and Kafka Streams, both with MOA's HoeffdingTree.

Their sources are in benchmarks/peers/java. Their clients, and Jackson, have the versions of the embedded
broker's lock file. Trees are in memory only, so a peer that is started again begins without models.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers import moa
from benchmarks.peers.java import Artifact, class_path, fetch_jar, java
from benchmarks.peers.job import Job
from benchmarks.peers.result import Task
from benchmarks.rig.encoding import ANSWER_ID, AVRO_ID, AVRO_SCHEMA
from benchmarks.rig.stream import NAMES
from streamapp.embedded.jars import fetch_jars

SOURCES = sorted(Path(__file__).with_name("java").glob("*.java"))
STREAMS: Artifact = (
    "org.apache.kafka",
    "kafka-streams",
    "4.4.0",
    "6e06548a119adf213121ad2e4fefff6ab4263875b4f761425ace8ea4f5ba04a6",
)
AVRO: Artifact = (
    "org.apache.avro",
    "avro",
    "1.12.1",
    "72600f057bfbe2efe35fa55433e7756d45667dc938934be38a6e2be368aca237",
)
CLASSES = ("0", "1")  # MOA gets the classes beforehand
FORMATS = ("json", "packed", "avro")
MACHINE = ("-XX:+UseParallelGC", "-Xms1g", "-Xmx1g", "-XX:-UsePerfData", "-Dlog4j2.level=WARN")


def loop(job: Job, place: Path) -> list[str]:
    """Return the command of the loop; `place` is its own folder."""
    return _command("Loop", job, place)


def streams(job: Job, place: Path) -> list[str]:
    """Return the command of Kafka Streams; `place` is its own folder."""
    return _command("Streams", job, place)


def _command(main: str, job: Job, place: Path) -> list[str]:
    own = [fetch_jar(*artifact) for artifact in (STREAMS, AVRO)]
    path = class_path("peers", SOURCES, [*fetch_jars(), *own, *moa.jars()])
    words = {
        "bootstrap": job.bootstrap,
        "source": job.source,
        "sink": job.sink,
        "group": job.group,
        "format": job.format,
        "guarantee": job.guarantee,
        "schema": AVRO_SCHEMA,
        "schema-id": str(AVRO_ID),
        "answer-id": str(ANSWER_ID),
        "attributes": ",".join(NAMES),
        "classes": ",".join(CLASSES),
        "options": moa.options(Task(leaf_model=job.leaf)),
        "commit": str(job.commit_ms),
        "linger": f"{job.linger_ms:g}",
        "threads": str(job.threads),
        "state": str(place),
    }
    arguments = [word for name, value in words.items() for word in (f"--{name}", value)]
    return [java(), *MACHINE, "-cp", path, main, *arguments]
