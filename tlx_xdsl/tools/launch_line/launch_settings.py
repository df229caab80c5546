"""The options of a launch, such as `num_warps`, from a command line and the kernel's file."""

from __future__ import annotations

import argparse
from math import prod
from typing import Any, cast

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.driver.defaults import KernelDefaults
from tlx_xdsl.runtime.driver.launch_options import LARGEST_CLUSTER


def launch_options(args: argparse.Namespace, defaults: KernelDefaults) -> dict[str, Any]:
    """The launch options: what the command line says, then what the file says, then the usual ones.

    Raises CompilationError for sizes that can't be.
    """
    options: dict[str, Any] = {
        "num_warps": 4,
        "num_stages": 3,
        "num_ctas": 1,
        "maxnreg": None,
        "enable_fp_fusion": None,
        "target": "sm_90a",
    }
    options |= defaults.options
    given = {name: getattr(args, name, None) for name in (*options, "cluster")}
    options |= {name: value for name, value in given.items() if value is not None}
    options["cluster"] = _cluster(options.get("cluster"))
    for name in ("num_warps", "num_ctas"):
        if not isinstance(options[name], int) or options[name] < 1 or options[name] & (options[name] - 1):
            raise CompilationError(f"{name} must be a power of two, found {options[name]}")
    return options


def _cluster(value: object) -> list[int]:
    if value is None:
        return [1, 1, 1]
    parts = value.split(",") if isinstance(value, str) else list(cast(tuple[object, ...], value))
    try:
        sizes = [int(str(part)) for part in parts]
    except ValueError:
        sizes = []
    if len(sizes) != 3 or min(sizes) < 1:
        raise CompilationError(f"--cluster: expected three sizes X,Y,Z of at least 1, found '{value}'")
    if prod(sizes) > LARGEST_CLUSTER:
        raise CompilationError(f"--cluster: a cluster has at most {LARGEST_CLUSTER} CTAs, found {prod(sizes)}")
    return sizes
