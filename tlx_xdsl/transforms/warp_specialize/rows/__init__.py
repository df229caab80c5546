"""Rows of products that groups of warps share: what is cut, which accesses then remain whole, and the rewriting."""
