"""Registry: schemas of records by their ids, from a schema registry with Confluent's interface."""
