"""The application: Faust worker, tasks, outbox, probes and command line."""
