"""Tensors that a kernel reaches by addresses among its arguments, which only Python knows to be tensors."""

# torch has no types here: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from typing import Any

_LOWEST = 1 << 32
"""No tensor of a 64-bit process lies below; no number below is taken for an address."""


def tensors_reached(arguments: Iterable[Any]) -> list[Any]:
    """The living tensors of torch in the CPU's memory whose `data_ptr()`, or an address inside, an argument holds.

    Scripts pass them as integers, or as tensors of 64-bit integers (`torch.tensor([a.data_ptr(), ...])`).
    """
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return []
    addresses = sorted({address for argument in arguments for address in _addresses(torch, argument)})
    if not addresses:
        return []
    found: list[Any] = []
    for each in gc.get_objects():
        # Stand-ins for tensors (classes of their own) have no memory.
        if type(each) not in (torch.Tensor, torch.nn.Parameter) or each.device.type != "cpu" or not each.numel():
            continue
        storage = each.untyped_storage()
        start, size = storage.data_ptr(), storage.nbytes()
        if any(start <= address < start + size for address in addresses):
            found.append(each.detach())
    return found


def _addresses(torch: Any, argument: Any) -> list[int]:
    if isinstance(argument, int):
        return [argument] if argument >= _LOWEST else []
    if isinstance(argument, torch.Tensor) and str(argument.dtype) in ("torch.int64", "torch.uint64"):
        return [number for number in argument.flatten().tolist() if number >= _LOWEST]
    return []
