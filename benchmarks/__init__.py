"""Benchmarks by topic: a file with a command line runs from a checkout, as `python benchmarks/gemm/report.py`.

`gpu` and `gemm` compare the kernels to import with their rivals on a Hopper GPU, `attention` variants of attention;
`cpu` measures kernels on a CPU, `interpreter` the interpreter, `compile` the compiler; `size.py` counts tokens.
"""
