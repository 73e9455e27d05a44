"""Driver: Faust's consumer, which delivers runs of records to the processing instead of single records."""
