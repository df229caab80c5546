"""Storage aliasing: from allocations that share a region to views of one allocation.

`size_definition` settles how large each region is, `offset_calculation` where its allocations lie, `allocation`
turns both into one allocation and `tlx.local_alias` views, and `lowering` runs the three. `rewrite_local_alias`
replaces the views by upstream Triton's operations.
"""
