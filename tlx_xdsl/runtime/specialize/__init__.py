"""Plain Triton kernels as warp-specialised ones: which decisions are taken, and how the result is launched.

`specialized.py` makes one specialised kernel: the passes of `transforms/warp_specialize`, the source that the
decompiler writes, and the kernel of that file. `search.py` compares several. `kernel.py` is the class of
`jit(warp_specialize=True)`, whose launches take what was found. Each file here answers one question:

- `candidates.py`: which decisions are tried, and in what order;
- `verdict.py`: whether a candidate's synchronisation is proved, or explored;
- `small.py`, `equality.py`: whether it computes what the plain kernel does, on a small launch;
- `ranking.py`: what the clock expects;
- `stored.py`: what of all that is kept on disk.
"""
