"""How kernels become machine code: what numba is told beyond its options."""
