"""Kernels of the plain language.

- `portable/`: ordinary Triton programs by topic, each read twice, over Triton's objects and over ours;
- `stock/`: kernels over Triton's objects, which stock compiles to TTIR and TTGIR for several GPUs;
- `library.py`: kernels that call the functions that stock writes in its own language, run by value.
"""
