"""How kernels become machine code: extensions of numba's compiler."""
