"""Idempotent producing: records that count at once, by batches without a transaction."""
