"""The pages of `grove web`, a file each, and the parts that they share."""
