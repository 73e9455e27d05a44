"""Memory of models: resident bytes of a store of one-leaf models, as JSON.

    python -m benchmarks.memory
    python -m benchmarks.memory --models 10000 --attributes 10 --classes 2
    python -m benchmarks.memory --limit 1

With `--limit` at most this many bytes of models stay in memory, as with `models.max.bytes`: the rest is the
memory of an evicted model.

Use one process per figure: a process would first reuse memory that it has freed. The figure is the growth of
the process while the store is filled, everything included: buffers, Python objects, keys, the table.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
from pathlib import Path

from core.schema.schema import Attribute, Schema
from core.spec import Spec
from streamapp.worker.task.models.eviction.model_memory import ModelMemory
from streamapp.worker.task.models.model_store import ModelStore
from streamapp.worker.task.models.quota import ModelQuota

RUN = 1_000  # models that are created before earlier ones may be evicted
FIRST = 1_000  # models created before measuring: arenas and tables have their first sizes then


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def fill(store: ModelStore, start: int, stop: int, spec: Spec, schema: Schema) -> None:
    """Create models as the task does at the first record of a key."""
    for number in range(start, stop):
        store.create(f"customer-{number:08d}", spec, schema)
        if number % RUN == 0:
            store.growth.adopt()
            store.checkpoint()
            store.cache.evict_excess()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=100_000)
    parser.add_argument("--attributes", type=int, default=10)
    parser.add_argument("--classes", type=int, default=2)
    parser.add_argument("--limit", type=int, default=0, help="bytes of models in memory, 0: all")
    options = parser.parse_args()
    spec = Spec.parse(None)
    schema = Schema.of(
        [Attribute(f"x{i}") for i in range(options.attributes)],
        [f"class-{i}" for i in range(options.classes)],
    )
    store = ModelStore(ModelQuota(options.models + FIRST), ModelMemory(options.limit))
    fill(store, 0, FIRST, spec, schema)
    gc.collect()
    before = resident()
    fill(store, FIRST, FIRST + options.models, spec, schema)
    gc.collect()
    grown = resident() - before
    print(
        json.dumps(
            {
                "models": options.models,
                "attributes": options.attributes,
                "classes": options.classes,
                "bytes": grown,
                "bytes_per_model": round(grown / options.models),
                "buffer_bytes": store.cache.peek(0).nbytes,
                "in_memory": len(store.keys) - store.cache.n_evicted,
            }
        )
    )


if __name__ == "__main__":
    main()
