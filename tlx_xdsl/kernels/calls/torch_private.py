"""The private functions of torch that calls are fast by, and what does the same where a version of torch lacks one.

Torch promises none of them; 2.11 has all. Each function here looks for one, and returns it or a slower way by public
names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def _private(torch: Any, name: str) -> Any:
    """Return an attribute of `torch._C`, which may lie in modules below it; None where it is not there."""
    found = getattr(torch, "_C", None)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def current_raw_stream(torch: Any) -> Callable[[int], int]:
    """Return what gives the handle of the current stream of a device, by the device's number."""

    def by_public_names(device: int) -> int:
        return torch.cuda.current_stream(device).cuda_stream

    return _private(torch, "_cuda_getCurrentRawStream") or by_public_names


def is_capturing(torch: Any) -> Callable[[], bool]:
    """Return what says whether the current stream is captured into a graph."""
    return _private(torch, "_cuda_isCurrentStreamCapturing") or torch.cuda.is_current_stream_capturing


def empty_strided(torch: Any) -> Callable[[Sequence[int], Sequence[int], Any], Any]:
    """Return what allocates a tensor of a shape, strides and a type on the current device, as torch's compiler does."""

    def by_public_names(shape: Sequence[int], strides: Sequence[int], dtype: Any) -> Any:
        return torch.empty_strided(shape, strides, dtype=dtype, device="cuda")

    return _private(torch, "_dynamo.guards._empty_strided_cuda") or by_public_names


def tensor_guards(torch: Any) -> Any:
    """Return the class that compares tensors with those of an earlier call, in C; None where there is none."""
    return _private(torch, "_dynamo.guards.TensorGuards")


def dispatch_modes(torch: Any) -> Callable[[], int]:
    """Return what counts the modes that see every operation. Where nobody knows, there may be one: torch is asked."""
    return _private(torch, "_len_torch_dispatch_stack") or (lambda: 1)


def transforms_are_active(torch: Any) -> Callable[[], bool]:
    """Return what says whether `torch.func` transforms the call. Where nobody knows it may: torch is asked."""
    return _private(torch, "_are_functorch_transforms_active") or (lambda: True)
