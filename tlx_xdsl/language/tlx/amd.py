"""Names of TLX that exist for AMD GPUs only; a call of one is an error that says so."""

from __future__ import annotations

from typing import Any

from ..core import BUILTIN_NAME

PREFIXES = ("buffer_", "amd_", "async_amd_")
"""Prefixes of families of names."""

NAMES = frozenset(
    {
        "cond_barrier",
        "extract_slice",
        "rematerialized_range",
        "require_amd_wmma_layout",
        "sched_barrier",
        "set_priority",
        "update_tensor_descriptor",
        "warp_pipeline_stage",
        "workgroup_barrier",
    }
)


def amd_only(name: str) -> Any:
    """A function for the AMD name `name`, which raises when called; None when it is no such name."""
    if name not in NAMES and not name.startswith(PREFIXES):
        return None

    def outside(*args: Any) -> Any:
        raise RuntimeError(f"tlx.{name} exists for AMD GPUs only")

    outside.__name__ = name
    setattr(outside, BUILTIN_NAME, "tlx.amd_only")
    return outside
