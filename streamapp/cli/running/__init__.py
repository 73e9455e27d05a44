"""Commands that run something beside a broker: worker, replay, oracle, pages, demo."""
