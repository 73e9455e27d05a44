"""Models of a task: by key, in memory or in the swap file, within their limits."""
