"""The pages of `grove web`, one file each, and the parts that they share."""
