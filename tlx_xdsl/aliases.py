"""Former names of public modules, which keep working: importing one gives the module of today."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType

ALIASES = {
    "analysis.program_address": "addresses",
    "kernels.attention_backward": "kernels.attention.backward.call",
    "kernels.attention_config": "kernels.attention.config",
    "kernels.attention_decode": "kernels.attention.decode.call",
    "kernels.attention_mla": "kernels.attention.decode.mla",
    "kernels.attention_varlen": "kernels.attention.varlen",
    "kernels.cross_entropy": "kernels.rows.cross_entropy",
    "kernels.epilogues": "kernels.gemm.epilogues",
    "kernels.gemm_config": "kernels.gemm.config",
    "kernels.grouped_gemm": "kernels.gemm.grouped.call",
    "kernels.layernorm": "kernels.rows.norm",
    "kernels.norm_residual": "kernels.rows.norm",
    "kernels.rmsnorm": "kernels.rows.norm",
    "kernels.rope": "kernels.rows.rope",
    "kernels.rows.layernorm": "kernels.rows.norm",
    "kernels.rows.norm_residual": "kernels.rows.norm",
    "kernels.rows.rmsnorm": "kernels.rows.norm",
    "kernels.scaled_gemm": "kernels.gemm.scaled.call",
    "kernels.softmax": "kernels.rows.softmax",
    "kernels.swiglu": "kernels.rows.swiglu",
    "language.ttl": "ttl.language",
    "ptx.tensor_map": "ptx.memory.tensor_map",
    "runtime.autotune": "runtime.jit.autotune",
    "runtime.bound": "runtime.jit.bound",
    "runtime.compilation": "runtime.driver.compilation",
    "runtime.cpu": "cpu.runtime",
    "runtime.cuda_driver": "runtime.launch.cuda_driver",
    "runtime.interpret": "runtime.simulate.interpret",
    "runtime.interpret_options": "runtime.simulate.options",
    "runtime.launcher": "runtime.launch.launcher",
    "runtime.linalg": "cpu.runtime.linalg",
    "runtime.stand_in_driver": "runtime.jit.stand_in_driver",
    "runtime.tensor_descriptor": "runtime.launch.tensor_descriptor",
    "runtime.triton_kernel": "runtime.jit.triton_kernel",
    "runtime.ttl": "ttl.runtime",
    "runtime.uninitialized": "runtime.driver.host_values",
    "tools.tlx_opt": "tools.opt.main",
    "tools.universe": "tools.opt.universe",
    "transforms.linalg.access_report": "cpu.linalg.access_report",
}
"""Former name of a module below `tlx_xdsl` -> its name today. What lies in a package has moved with it."""

_PACKAGE = "tlx_xdsl."


def name_today(name: str) -> str | None:
    """Return the name today of a module with a former name, in full; None for any other name."""
    parts = name.removeprefix(_PACKAGE).split(".") if name.startswith(_PACKAGE) else []
    for length in range(len(parts), 1, -1):
        home = ALIASES.get(".".join(parts[:length]))
        if home is not None:
            return _PACKAGE + ".".join((home, *parts[length:]))
    return None


class _Finder:
    """Finds modules by their former names, and gives those of today. Python's own base classes take 10 ms to import."""

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        today = name_today(fullname)
        found = None if today is None else find_spec(today)
        loader: Any = self
        return None if found is None else ModuleSpec(fullname, loader, origin=found.origin)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(str(name_today(spec.name)))
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module, which has run, its own specification back, in whose place the import has put another."""
        assert module.__spec__ is not None
        module.__spec__ = self._specs.pop(module.__spec__.name)

    def get_code(self, fullname: str) -> CodeType | None:
        """Return what `python -m` runs: the module by its name of today, beside which its relative imports lie."""
        text = f"import runpy; runpy.run_module({name_today(fullname)!r}, run_name='__main__', alter_sys=True)"
        return compile(text, fullname, "exec")


def install() -> None:
    """Have imports look here first: a package's own folder would give a module that has moved a second time."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
