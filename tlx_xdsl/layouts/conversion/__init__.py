"""Conversion of an encoding and a tensor's shape to the linear layout that the encoding means.

`distributed` (with `mma`) converts register layouts, `shared` those of shared memory, `tensor_memory` those of
Blackwell's tensor memory; `tiling` is what they share, `versions` what versions of Triton
disagree on.
"""

from __future__ import annotations

from ..encodings import DistributedLayout, Ints, Layout, SharedLayout
from ..linear_layout import LinearLayout
from .distributed import distributed_to_linear
from .shared import shared_to_linear
from .tensor_memory import tensor_memory_to_linear
from .tiling import NEWEST, Version


def to_linear_layout(layout: Layout, shape: Ints, version: Version = NEWEST) -> LinearLayout:
    """The linear layout of a tensor or buffer of `shape` elements with the encoding `layout`.

    For a buffer `shape` is that of its allocation, without a leading dimension that the layout does not describe.
    Where versions of Triton differ (`versions`), `version` says whose reading counts.
    Raises ValueError if the layout does not fit `shape`, or a size is no power of two.
    """
    if isinstance(layout, DistributedLayout):
        return distributed_to_linear(layout, shape, version)
    if isinstance(layout, SharedLayout):
        return shared_to_linear(layout, shape, version)
    return tensor_memory_to_linear(layout, shape, version)
