"""Experiments of Gama, Medas and Rodrigues on forests of functional trees (UFFT)."""
