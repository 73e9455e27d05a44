"""Fetches the Java programs that tests start, before the tests begin: `python -m tests.fetch`.

Several processes of tests would wait for one download, and look as if they were slow.
"""

from __future__ import annotations

from streamapp.embedded.apicurio import unpacked
from streamapp.embedded.jars import fetch_jars
from tests.broker.issuer import LOCK as ISSUER
from tests.broker.issuer import PROGRAM

if __name__ == "__main__":
    fetch_jars()
    unpacked()
    fetch_jars(lock=ISSUER, program=PROGRAM)
