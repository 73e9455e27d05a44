"""Topics: records, codecs, the topic catalogue, data set readers, replay and the oracle."""
