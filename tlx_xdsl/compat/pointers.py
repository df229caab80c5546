"""Tensors that a kernel reaches by addresses among its arguments, which only Python knows to be tensors."""

# torch has no types here: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import gc
import sys
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

_LOWEST = 1 << 32
_HIGHEST = 1 << 48
"""Tensors of a 64-bit process lie between; no number below or above is taken for an address."""


def tensors_reached(arguments: Iterable[Any]) -> list[Any]:
    """The living tensors of torch in the CPU's memory whose `data_ptr()`, or an address inside, an argument holds.

    Scripts pass them as integers, or as tensors of 64-bit integers (`torch.tensor([a.data_ptr(), ...])`).
    """
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return []
    addresses = sorted({address for argument in arguments for address in _addresses(torch, argument)})
    if not addresses or not (addresses := _mapped(addresses)):
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


def _mapped(addresses: list[int]) -> list[int]:
    """Return the addresses at which this process has memory; all where that is not known (proc_pid_maps(5) is Linux's).

    To look at all objects takes a tenth of a second, which numbers that are no addresses are to spare.
    """
    try:
        with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
            ranges = sorted(tuple(int(bound, 16) for bound in line.split(" ", 1)[0].split("-")) for line in maps)
    except OSError:
        return addresses
    starts = [start for start, _ in ranges]
    found: list[int] = []
    for address in addresses:
        at = bisect_right(starts, address) - 1
        if at >= 0 and address < ranges[at][1]:
            found.append(address)
    return found


def _addresses(torch: Any, argument: Any) -> list[int]:
    if isinstance(argument, int):
        # Which True and False are, too: small numbers.
        return [argument] if _LOWEST <= argument < _HIGHEST else []
    if isinstance(argument, torch.Tensor) and str(argument.dtype) in ("torch.int64", "torch.uint64"):
        return [number for number in argument.flatten().tolist() if _LOWEST <= number < _HIGHEST]
    return []
