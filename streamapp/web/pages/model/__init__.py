"""Model page: its tabs, one file each."""
