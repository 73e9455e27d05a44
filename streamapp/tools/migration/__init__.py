"""Migration of models to topics with another prefix or another number of partitions.

    old prefix                                                new prefix
    partition 0 ─ snapshot + journal ─> models ─┐          ┌─> controls 0 ┐
    partition 1 ─ snapshot + journal ─> models ─┼─ by key ─┼─> controls 1 ├─> replayed: is it all there?
                                                └──────────┴─> controls 2 ┘

What a model carries with it is what an exported file does: tree, spec, schema, detector, budget, evaluation,
counts, frozen or not. The old topics are only read. What is at the new place is found out by replaying its
controls as a worker will, so that a migration that was interrupted goes on where it stands.
"""
