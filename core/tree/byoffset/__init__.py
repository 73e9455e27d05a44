"""The kernels of core/tree by offsets, for modules that have no records yet."""
