"""What a team would otherwise run: bare echoes and learning loops, processes that read until SIGTERM."""
