"""Arguments of the producers with a steady rate (paced.py, steady.py)."""

from __future__ import annotations

import argparse

from benchmarks.peers.job import LINGER_MS


def producer_parser() -> argparse.ArgumentParser:
    """Return a parser of the arguments that both have: target, amount and number of models."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--rate", type=int, required=True, help="records per second")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--keys", type=int, required=True, help="models")
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument(
        "--linger-ms", type=float, default=LINGER_MS, help="that records wait for others to go with"
    )
    return parser
