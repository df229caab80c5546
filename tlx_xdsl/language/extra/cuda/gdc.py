"""Programmatic dependent launch: kernels that start before the kernels that they depend on have ended (sm_90)."""

from __future__ import annotations

from tlx_xdsl.language.marks import builtin

__all__ = ["gdc_launch_dependents", "gdc_wait"]

_cuda = builtin("tl.extra.cuda")


@_cuda
def gdc_wait() -> None:
    """Wait until the kernels that this one depends on have finished (PTX `griddepcontrol.wait`)."""


@_cuda
def gdc_launch_dependents() -> None:
    """Let the kernels that depend on this one start (PTX `griddepcontrol.launch_dependents`)."""
