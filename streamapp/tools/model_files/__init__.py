"""Models as files: read, written, and sent into an installation."""
