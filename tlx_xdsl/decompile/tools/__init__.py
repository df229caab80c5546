"""The command `tlx reverse`."""
