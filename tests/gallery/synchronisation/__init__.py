"""Kernels whose threads and engines wait for each other: mbarriers, tasks, TMA, tensor cores, clusters.

- the files here: TLX kernels for clusters and for Blackwell; a constexpr `DROP` takes a step out of most of them;
- `cluster_runs.py`, `example_runs.py`: these kernels and those of `examples/` with inputs and references in numpy;
- `gluon/`: kernels in Gluon, which stock compiles to TTGIR;
- `zoo/`: mutations that take synchronisation out of kernels, and what must be reported.
"""
