"""The commands of `tlx`, a file each, and their work."""
