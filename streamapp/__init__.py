"""The application: Faust worker, tasks, outputs, probes and command line."""
