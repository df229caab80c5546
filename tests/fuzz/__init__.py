"""Random and damaged inputs for every way into the compiler, with a switch for their number.

    python -m tests.fuzz.mlir 20000 --seed 1 --jobs 4        damaged IR, for tlx-opt with up to three passes
    python -m tests.fuzz.kernels 5000                        damaged kernels, for the frontend
    python -m tests.fuzz.programs 2000                       random programs, by value against numpy
    python -m tests.fuzz.trees 2000                          trees of storage aliases, by an independent account
    python -m tests.fuzz.plain_kernels 300 --jobs 2          plain kernels, as they are and specialised by warps

Each prints how many inputs ended in which way, and the number of each that ended badly: `--only NUMBER` shows it.
"""
