"""The command `tlx-opt`, and the plugin for `xdsl-opt`."""
