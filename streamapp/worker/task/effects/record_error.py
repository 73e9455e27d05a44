"""Record error: the record of a run at which our own code failed."""


class RecordError(Exception):
    """An error of our own code at a record: `record` is its index in the run, the cause is the error."""

    def __init__(self, record: int) -> None:
        super().__init__(f"record {record} of the run failed")
        self.record = record
