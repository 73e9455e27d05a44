"""Hoeffding trees: blocks, kernels, split attempts, growth, and the presets."""
