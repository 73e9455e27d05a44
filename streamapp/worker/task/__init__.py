"""The task of a partition: records in, effects out. Pure: no Faust, no Kafka, no clock."""
