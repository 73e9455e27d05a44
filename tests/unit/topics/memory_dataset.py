"""A data set of the protocol that lives in memory, for tests that need no file."""

import numpy as np

from topics.readers.dataset import Kind, rebatched


class MemoryDataset:
    """Rows given as arrays; `names` and `values` as in a file."""

    def __init__(self, x, y, classes=("no", "yes"), values=None, names=None):
        self.x = np.asarray(x, dtype=float)
        self.y = np.asarray(y, dtype=np.int32)
        d = self.x.shape[1]
        self.values = tuple(values) if values else ((),) * d
        self.names = tuple(names) if names else tuple(f"f{j + 1}" for j in range(d))
        self.kinds: tuple[Kind, ...] = tuple("nominal" if v else "numeric" for v in self.values)
        self.open = (False,) * d
        self.classes = tuple(classes)
        self.classes_open = False
        self.rows = len(self.y)

    def batches(self, size=4096, start=0):
        return rebatched([(self.x, self.y)] if len(self.y) else [], size, start)


def counting(n, classes=("no", "yes")):
    """Return n rows: the row number and its half; the class alternates."""
    numbers = np.arange(n, dtype=float)
    return MemoryDataset(np.column_stack([numbers, numbers / 2]), np.arange(n) % len(classes), classes)
