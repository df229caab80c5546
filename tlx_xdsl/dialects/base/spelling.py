"""Differences in spelling between versions of Triton, and of upstream MLIR, inside of an operation or a type.

A printer that writes for an old version has a `profile`, or an `mlir` one, with these flags; any other printer, and any
other flag, means the spelling of the newest version. Reading understands every spelling.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from xdsl.printer import Printer

OldSpelling: TypeAlias = Literal[
    "cache_policy_as_keywords",  # `cacheModifier = cg evictionPolicy = evict_first` for `cachePolicy` (3.6 to 3.8)
    "tmem_cta_splits",  # `CTASplitM = 2` for `CGALayout = [[1, 0]]` of tensor memory (3.6, 3.7)
    "tmem_subslice_n",  # `N = 32` for `offset = 32` of `ttng.tmem_subslice` (3.6 to 3.8)
    "pointer_space_as_number",  # `!tt.ptr<f32, 0>` for `!tt.ptr<f32, "descriptor">` (3.6 to 3.8)
    "to_tensor_of_memref",  # `to_tensor %m : memref<4xf32>`, without `to tensor<4xf32>` (MLIR of LLVM 19)
    "to_memref",  # `bufferization.to_memref %t : memref<4xf32>` for `to_buffer %t : tensor<4xf32> to memref<4xf32>`
]


def spells(printer: Printer, spelling: OldSpelling) -> bool:
    """True if `printer` writes for a version with this old spelling."""
    return any(getattr(getattr(printer, each, None), spelling, False) for each in ("profile", "mlir"))
