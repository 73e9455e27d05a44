"""Migration of models to topics with another prefix or another number of partitions.

    old prefix                                                new prefix
    partition 0 ─ snapshot + journal ─> models ─┐          ┌─> controls 0 ┐
    partition 1 ─ snapshot + journal ─> models ─┼─ by key ─┼─> controls 1 ├─> replayed: is it all there?
                                                └──────────┴─> controls 2 ┘

A model keeps what an exported file keeps: tree, spec, schema, detector, budget, evaluation, counts, and
whether it is frozen. The old topics are only read. The state of the new place is found by replaying its
controls as a worker will, so that an interrupted migration continues where it stopped.
"""
