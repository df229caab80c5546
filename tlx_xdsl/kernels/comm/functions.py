"""The functions of this package under one roof."""

from .collectives import all_gather, all_reduce, reduce_scatter
from .config import ProductConfig
from .exchange import Exchange, Received
from .launches import check_waits
from .products import all_gather_gemm, gemm_all_reduce, gemm_reduce_scatter

__all__ = [
    "Exchange",
    "ProductConfig",
    "Received",
    "all_gather",
    "all_gather_gemm",
    "all_reduce",
    "check_waits",
    "gemm_all_reduce",
    "gemm_reduce_scatter",
    "reduce_scatter",
]
