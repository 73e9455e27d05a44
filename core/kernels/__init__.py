"""Compiled code: numba's options and cache, memory by address. `topics` may import it, too."""
