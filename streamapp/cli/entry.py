"""The installed command: runs `main` and ends the process."""

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line of this process and exit."""
    from streamapp.cli.main import main as run

    status = run()
    sys.stdout.flush()
    sys.stderr.flush()
    if "confluent_kafka" in sys.modules:
        # At exit the interpreter destroys the last clients, and librdkafka's destructor may wait forever for
        # a broker that does not answer. There is nothing to wait for: everything is flushed and committed.
        os._exit(status)
    sys.exit(status)
