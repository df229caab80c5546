"""Kernels that inductor has generated for a CPU, compiled for the types that it names.

Inductor writes a Python file for each kernel: the function, the types of its arguments, the configurations that it
would try, and the size of the grid as an expression. All of that is in the object (`CachingAutotuner`) that the file
defines.
"""

# torch has no types here: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from tlx_xdsl import wings
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.runtime.host.measure import do_bench
from tlx_xdsl.runtime.host.options import CpuOptions

LOG = logging.getLogger("tlx_xdsl.inductor")

_WARMUP_MS, _REP_MS = 1.0, 8.0
"""The time to try a configuration: programs have many kernels, and their first calls wait for all of them."""


def load_kernel(name: str, source: str) -> InductorKernel:
    """Return the kernel of a file that inductor has generated.

    Raises CompilationError, located in the file, for what can't be compiled.
    """
    cache: Any = import_module("torch._inductor.codecache").PyCodeCache
    with warnings.catch_warnings():
        # The file says that Triton has no backend for a CPU.
        warnings.filterwarnings("ignore", message="Could not find an active CPU backend")
        return InductorKernel(getattr(cache.load(source), name))


class InductorKernel:
    """A kernel as the programs that inductor writes call it: `kernel.run(*arguments, stream=...)`.

    With one configuration it is compiled at once. Of several the first is, and the first launch times all of them on
    copies of the tensors that the kernel writes, as inductor does on a GPU.
    """

    def __init__(self, described: Any):
        """Take the kernel from inductor's object for it, and compile its first configuration.

        Raises CompilationError for what can't be compiled.
        """
        self.described = described
        stock: Any = described.fn
        self._source = KernelSource(stock.fn)
        self._launcher = wings.launcher("cpu")(self._source, CpuOptions())
        self._left = list(described.configs)
        first = self._left.pop(0)
        self.config = first
        self._launch = self._compiled(first)

    def run(self, *args: Any, stream: Any = None, **kwargs: Any) -> None:
        """Launch with the arguments of the program, among which may be sizes of the grid.

        Raises RuntimeError where an assertion of the kernel fails, such as that an index is in its bounds.
        """
        if self._left:
            self._tune(args)
        try:
            self._launch(*args)
        except Fault as fault:
            raise RuntimeError(str(fault)) from fault

    def _compiled(self, config: Any) -> Callable[..., None]:
        """Compile a configuration; the result takes the arguments of the program."""
        described = self.described
        meta = described.triton_meta
        values: dict[str, Any] = {**meta["constants"], **config.kwargs}
        parameters = [each.name for each in self._source.parameters]
        constant = {each.name for each in self._source.parameters if each.is_constexpr}
        for name in ("num_warps", "num_stages"):
            if name in constant:
                values.setdefault(name, getattr(config, name))
        signature = {name: meta["signature"][name] for name in parameters if name not in values}
        run = self._launcher.for_types(
            signature, {name: values[name] for name in parameters if name in values}, debug=True
        )
        # What the program gives: also values that the kernel was compiled for.
        given = [name for name in parameters if not (name in constant and name in values)]
        given.extend(described.inductor_meta.get("extra_launcher_args", ()))
        slots = [f"{name}.data_ptr()" if str(signature[name]).startswith("*") else name for name in signature]
        return _launch_function(given, slots, self._grid(config), run)

    def _grid(self, config: Any) -> Any:
        """Return the expressions of the three sizes of the grid, and what they want computed before."""
        expressions: Any = import_module("torch._inductor.runtime.triton_heuristics").GridExpr
        return expressions.from_meta(self.described.inductor_meta, config)

    def _tune(self, args: Sequence[Any]) -> None:
        """Keep the fastest configuration; those that can't be compiled are left out."""
        others, self._left = self._left, []
        written: set[str] = set(self.described.mutated_arg_names or ())
        names = [each.name for each in self._source.parameters if not each.is_constexpr]
        copies = [
            value.clone() if name in written and hasattr(value, "clone") else value
            for name, value in zip(names, args, strict=False)
        ]
        copies += args[len(copies) :]
        timed = [(_time(self._launch, copies), self.config, self._launch)]
        for config in others:
            try:
                launch = self._compiled(config)
            except CompilationError as error:
                LOG.info("%s: %s was left out: %s", self._source.name, config, error.message)
                continue
            timed.append((_time(launch, copies), config, launch))
        _, self.config, self._launch = min(timed, key=lambda each: each[0])


def _time(launch: Callable[..., None], args: Sequence[Any]) -> float:
    return do_bench(partial(launch, *args), _WARMUP_MS, _REP_MS, return_mode="min")


def _launch_function(
    given: Sequence[str], slots: Sequence[str], grid: Any, run: Callable[..., None]
) -> Callable[..., None]:
    """Return a function of the arguments `given` that runs a kernel.

    It is written for the kernel, as inductor does: a launch of a short one is mostly what happens around it.
    """
    lines = [
        f"def launch({', '.join(given)}):",
        *(f"    {line}" for line in grid.prefix),
        f"    run(({''.join(f'{each}, ' for each in slots)}), ({grid.x_grid}, {grid.y_grid}, {grid.z_grid}))",
    ]
    scope: dict[str, Any] = {"run": run}
    exec("\n".join(lines), scope)
    return scope["launch"]
