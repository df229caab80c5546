"""Command lines: `tlx-opt` and `tlx`."""
