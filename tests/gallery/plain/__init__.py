"""Plain Triton kernels as users write them, for the passes that specialise them by warps.

A file has one family: the kernel, `TLX_COMPILE`, and `FAMILY`, which has its shapes, its configurations for autotuning,
and what makes the arguments and the reference of a launch. Kernels use no TLX. `FAMILIES` has all of them by name, and
`over_stock.py` reads the same files over stock Triton's objects.
"""
