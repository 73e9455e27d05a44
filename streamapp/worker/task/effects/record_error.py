"""Record error: the record of a run at which our own code failed."""


class RecordError(Exception):
    """What failed is the cause; `record` is the index of the record in its run."""

    def __init__(self, record: int) -> None:
        super().__init__(f"record {record} of the run failed")
        self.record = record
