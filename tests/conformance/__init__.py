"""Suites that others wrote, run against stock Triton and against tlx_xdsl, and counted by rule.

The suites are not part of this repository: each harness is given the folder of a checkout. `mlir` reads the `.mlir`
tests, `isolated` runs a function on many inputs in processes that may die, `report` makes tables of what was found.
"""
