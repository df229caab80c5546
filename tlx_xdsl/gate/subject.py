"""The subject of a gate: a kernel in one configuration, and a launch of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tlx_xdsl.frontend.python.source import KernelSource, Signature
from tlx_xdsl.grid import Grid
from tlx_xdsl.runtime.driver.fingerprint import kernel_fingerprint


@dataclass(frozen=True)
class Subject:
    """A kernel in one configuration, with the launch that shows whether its code is right."""

    name: str
    """Such as `softmax.py:softmax`."""
    source: KernelSource
    configuration: Mapping[str, Any]
    """What was chosen: compile-time arguments and options of the launch, by name."""
    grid: Grid
    arguments: Callable[[], Mapping[str, Any]]
    """Makes the arguments, the same ones each time: compile-time arguments, too, and arrays that a run writes."""
    identity: str = ""
    """The launch as a text, by which a later run knows it again."""
    target: str = "sm_90a"
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options of the launch: `num_warps`, `num_stages`, `num_ctas`, `maxnreg`, `cluster`, `enable_fp_fusion`."""
    types: Mapping[str, Signature] = field(default_factory=dict[str, Signature])
    """Types that are not to be derived from values."""
    reachable: Sequence[Any] = ()
    """Arrays that the kernel reaches by pointers that it loads."""
    is_lenient: bool = False
    """True of a script's launch, which may read what nothing has written, as it does on a GPU."""

    @property
    def shown(self) -> str:
        """The configuration in a line."""
        return " ".join(f"{name}={value}" for name, value in self.configuration.items())

    def key(self, **more: str | None) -> str:
        """A digest of all that a verdict depends on: the kernel's text, the launch, and `more`."""
        parts = {
            "kernel": kernel_fingerprint(self.source).digest, "launch": self.identity, "target": self.target,
            "configuration": self.shown, "options": repr(sorted(self.options.items())), **more,
        }  # fmt: skip
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]
