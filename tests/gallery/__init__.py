"""Kernels that several tests use: `language` shows what `tl` can do, `synchronisation` barriers, tasks, TMA, MMA.

The comparison with stock's frontend (`tests/oracle`), the corpus of stock's texts (`tests/corpus`) and the
interpreter's references (`tests/unit/interpreter`) take their kernels from here.
"""
