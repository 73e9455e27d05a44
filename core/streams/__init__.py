"""Stream generators: endless records of a known concept, the same bytes for the same options."""

from core.streams.base import Generator, open_generator, parse_address

__all__ = ["Generator", "open_generator", "parse_address"]
