"""The oracle of the frontend: kernels of the plain language, compiled by stock Triton and by tlx_xdsl, and compared.

`kernels` holds the kernels, `loading` reads each twice (with Triton's objects and with ours), `stock` runs stock
Triton in a worker process, `compare` says whether two modules are equal, `fuzz` makes random kernels.
"""
