"""Functions of several GPUs of one host: sums over ranks, gathering, and products with them; `docs/comm.md`.

    ranks = tlx_xdsl.TorchRanks()               # a process for each GPU, by torchrun
    total = comm.all_reduce(x, ranks)
    c = comm.all_gather_gemm(a, b, ranks)

With `tlx_xdsl.SimulatedRanks(4)` each tensor is a list of four arrays, and the interpreter runs all ranks.
"""

from typing import TYPE_CHECKING

from .. import face

if TYPE_CHECKING:
    from .functions import *

__getattr__ = face("tlx_xdsl.kernels.comm.functions")
