"""Commands that run a process with a broker: worker, replay, oracle, pages, demo."""
