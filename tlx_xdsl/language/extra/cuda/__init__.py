"""What NVIDIA GPUs have beyond the language."""

from __future__ import annotations

from tlx_xdsl.language.extra import libdevice as libdevice
from tlx_xdsl.language.extra.cuda.gdc import gdc_launch_dependents, gdc_wait
from tlx_xdsl.language.extra.cuda.utils import globaltimer, num_threads, num_warps, smid

__all__ = [
    "gdc_launch_dependents",
    "gdc_wait",
    "globaltimer",
    "libdevice",
    "num_threads",
    "num_warps",
    "smid",
]
