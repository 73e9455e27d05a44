"""Writes ``streams.json`` anew: ``python -m tests.golden.streams``, after a generator has come, not changed.

By name the CRC-32 of the first 1,000 records of the counter flavour with the default options: y, and x
rounded to eight digits (the last ones of logarithms and cosines are those of the platform).
"""

import json
import zlib
from pathlib import Path

from core import registry
from core.streams import open_generator

FILE = Path(__file__).with_name("streams.json")


def crc(array):
    return zlib.crc32(array.tobytes())


def digest(name):
    x, y = open_generator(name).take(1000)
    return {"x": crc(x.round(8)), "y": crc(y)}


if __name__ == "__main__":
    found = {name: digest(name) for name in registry.names("streams")}
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
