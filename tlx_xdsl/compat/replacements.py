"""What stands in the place of Triton's names while the drop-in is installed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

import triton
from triton import knobs

import tlx_xdsl
from tlx_xdsl.compat.decorator import drop_in
from tlx_xdsl.compat.without_gpu import NoGpu, compiling, interpreting, once

if TYPE_CHECKING:
    from tlx_xdsl.compat.installation import Mode


def replacements(mode: Mode, target: str) -> Iterator[tuple[Any, str, Any]]:
    """Each name that is replaced: what has it, the name, and what it stands for from now on.

    Scripts reach `jit` and `Config` by several ways, and Triton itself by others.
    """
    # `triton.runtime.jit` is a module; as an attribute it would be hidden by a function of that name.
    stock = import_module("triton.runtime.jit")
    autotuner = import_module("triton.runtime.autotuner")
    if mode == "interpret" or (mode == "launch" and knobs.runtime.interpret):
        jit = interpreting(tlx_xdsl.jit, target)
    else:
        jit = drop_in(stock.jit, tlx_xdsl.jit)
        if mode == "compile":
            jit = compiling(jit)
    yield from ((owner, "jit", jit) for owner in (triton, stock))
    yield from ((owner, "Config", tlx_xdsl.Config) for owner in (triton, triton.runtime, autotuner))
    if mode != "launch":
        yield import_module("triton.runtime.driver").driver, "_active", NoGpu(target)
        yield from ((triton.testing, name, once) for name in ("do_bench", "do_bench_cudagraph"))
