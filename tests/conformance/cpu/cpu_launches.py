"""Launches of an entry's kernels: their names, and sentinels around the memory that they get."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, cast

import torch

from tests.conformance.cpu.cpu_entries import WrongNumbers

_EDGE = 256
"""Bytes of sentinels on each side: four cache lines, more than a vector that is stored too wide."""
_SENTINEL = 0xFF
"""Each byte of the sentinels: NaN as a number, so that what is read there shows in the results."""
_LINE = 64
"""The alignment of torch's memory in bytes, which kernels are specialised on."""


def record_launches(launched: set[str], *, native: bool) -> None:
    """Note the names of the kernels that are launched; natively each launch gets its tensors between sentinels."""
    import triton

    jit = triton.jit

    def recorded(fn: Any = None, **options: Any) -> Any:
        if fn is None:
            return partial(recorded, **options)
        kernel: Any = jit(fn, **options)
        # What runs natively is launched past `run` by `kernel[grid](...)`.
        run = kernel.run_here if native else kernel.run

        def noted(*args: Any, **kwargs: Any) -> Any:
            launched.add(fn.__name__)
            return run(*args, **kwargs)

        def noted_here(grid: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], **more: Any) -> Any:
            launched.add(fn.__name__)
            return between_sentinels(fn.__name__, lambda given, named: run(grid, given, named, **more), args, kwargs)

        if native:
            kernel.run_here = noted_here
        else:
            kernel.run = noted
        return kernel

    triton.jit = import_module("triton.runtime.jit").jit = recorded  # pyright: ignore[reportAttributeAccessIssue]


def between_sentinels(
    kernel: str, launch: Callable[[Any, Any], Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Launch on copies of the arguments' memory that lie between sentinels, and copy back what has changed.

    Raises WrongNumbers where a sentinel has changed.
    """
    copies: dict[int, _Copy] = {}
    given, named = _copied(args, copies), {name: _copied(value, copies) for name, value in kwargs.items()}
    result = launch(given, named)
    for each in copies.values():
        each.take_back(kernel)
    return result


class _Copy:
    """A copy of a tensor's memory between sentinels."""

    def __init__(self, storage: Any):
        address, size = storage.data_ptr(), storage.nbytes()
        self._whole = torch.full((size + 2 * _EDGE + _LINE,), _SENTINEL, dtype=torch.uint8)
        self._start = _EDGE + address % _LINE
        self._end = self._start + size
        self._theirs = torch.empty(0, dtype=torch.uint8).set_(storage)
        self._inner = self._whole[self._start : self._end]
        self._inner.copy_(self._theirs)

    def view(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor, in the copy."""
        size = tensor.element_size()
        offset = self._start // size + tensor.storage_offset()
        empty = torch.empty(0, dtype=tensor.dtype)
        return empty.set_(self._whole.untyped_storage(), offset, tensor.shape, tensor.stride())

    def take_back(self, kernel: str) -> None:
        """Copy what has changed to where it belongs."""
        for edge, at in ((self._whole[: self._start], 0), (self._whole[self._end :], self._end)):
            changed = (edge != _SENTINEL).nonzero().flatten().tolist()
            if changed:
                where = at + changed[0] - self._start
                size = self._end - self._start
                raise WrongNumbers(f"{kernel} writes byte {where} of a tensor with {size} bytes")
        if not torch.equal(self._inner, self._theirs):
            self._theirs.copy_(self._inner)


def _copied(value: Any, copies: dict[int, _Copy]) -> Any:
    """An argument with each tensor in the copy of its memory, which tensors that share theirs share."""
    if isinstance(value, torch.Tensor):
        storage = value.untyped_storage()
        if not storage.nbytes() or storage.data_ptr() % value.element_size():
            return value
        if storage.data_ptr() not in copies:
            copies[storage.data_ptr()] = _Copy(storage)
        return copies[storage.data_ptr()].view(value.detach())
    if type(value) is tuple:
        return tuple(_copied(each, copies) for each in cast("tuple[Any, ...]", value))
    if isinstance(getattr(value, "base", None), torch.Tensor):
        described = copy.copy(value)
        described.base = _copied(value.base, copies)
        return described
    return value
