"""The worker of echo_worker, whose aiokafka has another password than its librdkafka."""

import sys
from typing import Any

import faust

from streamapp.errors import SettingsError
from tests.broker.echo_worker import main


class OtherPassword(faust.SASLCredentials):
    def __init__(self, **given: Any) -> None:
        super().__init__(**given | {"password": "another"})


if __name__ == "__main__":
    faust.SASLCredentials = OtherPassword  # type: ignore[misc]
    try:
        sys.exit(main())
    except SettingsError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
