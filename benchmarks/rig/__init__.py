"""The test rig of the pipeline measurements: backlog, watched processes, visible output, tables."""
