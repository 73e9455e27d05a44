"""Sizing: workers, memory, partitions and broker load for a workload, from measured costs (docs/scale.md)."""
