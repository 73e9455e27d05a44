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
        # At the interpreter's end the last clients are destroyed, and librdkafka's destructor may wait for
        # ever for a broker that is gone. Everything is flushed and committed: nothing is left to wait for.
        os._exit(status)
    sys.exit(status)
