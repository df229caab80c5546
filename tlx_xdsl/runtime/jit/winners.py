"""The configurations that a search has found, on disk beside the kernels: the next process measures nothing.

The key is the kernel's text with all that it reaches, the values that the search was for, all configurations, the GPU
by its name, the CUDA driver, and the versions of this package, of Triton and of its tools.
"""

# Triton's runtime has no types: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportAttributeAccessIssue=false

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triton._C.libtriton import get_cache_invalidating_env_vars
from triton.runtime.cache import get_cache_manager
from triton.runtime.driver import driver

from ..driver.fingerprint import compiler_fingerprint
from ..launch.cuda_driver import CudaDriverError, default_driver
from .triton_compile import triton_identity

_FORM = 1
"""Of the file; another number is another key."""


@dataclass(frozen=True)
class Winners:
    """The place of a search's result."""

    key: str
    name: str

    @staticmethod
    def of(kernel: Any, values: Sequence[Any], configs: Sequence[Any], *settings: Any) -> Winners:
        """The place for a kernel, the values of its tuning key, the configurations, and settings of the search."""
        parts = (
            _FORM,
            kernel.cache_key,
            compiler_fingerprint(),
            triton_identity(),
            *map(repr, values),
            *(f"{config} {_hook(config)}" for config in configs),
            device_name(),
            _driver_version(),
            sorted(get_cache_invalidating_env_vars().items()),
            settings,
        )
        digest = hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()
        return Winners(digest, f"{kernel.__name__[:150]}.winner.json")

    def read(self, configs: Sequence[Any]) -> Mapping[Any, tuple[float, ...]] | None:
        """The times of the configurations, in milliseconds; None where none are stored, or the file is damaged."""
        try:
            path = get_cache_manager(self.key).get_file(self.name)
            if path is None:
                return None
            times: Any = json.loads(Path(path).read_text(encoding="utf-8"))["milliseconds"]
            found = [tuple(map(_time, three)) for three in times]
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None
        if not all(found):
            return None
        return dict(zip(configs, found, strict=True)) if len(found) == len(configs) else None

    def write(self, configs: Sequence[Any], timings: Mapping[Any, Sequence[float]], device: str) -> None:
        """Store the times; a disk that can't be written leaves the search to the next process, too."""
        times = [[each if math.isfinite(each) else None for each in timings[config]] for config in configs]
        record = {"device": device, "configurations": [str(config) for config in configs], "milliseconds": times}
        try:
            get_cache_manager(self.key).put(json.dumps(record, indent=1), self.name, binary=False)
        except OSError:
            return


def _time(value: object) -> float:
    """Milliseconds as they are stored; None is a configuration that could not be measured.

    Raises ValueError for what is no time.
    """
    if value is None:
        return math.inf
    # A whole number of hundreds of digits has no float, and JSON's NaN would win or lose every comparison.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= sys.float_info.max:
        raise ValueError(f"{type(value).__name__} is no time")
    return float(value)


def device_name() -> str:
    """The name of the GPU that launches go to now, or of the target where there is none."""
    target = driver.active.get_current_target()
    try:
        return default_driver().device_name(driver.active.get_current_device())
    except CudaDriverError:
        return f"{target.backend} {target.arch}"


def _driver_version() -> int:
    try:
        return default_driver().version()
    except CudaDriverError:
        return 0


def _hook(config: Any) -> str:
    hook = config.pre_hook
    return "" if hook is None else f"{hook.__module__}.{getattr(hook, '__qualname__', type(hook).__qualname__)}"
