"""A package with one pass for tlx_xdsl (docs/plug-ins.md)."""
