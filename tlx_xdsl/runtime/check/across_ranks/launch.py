"""The launch of a kernel on several ranks, as the proof takes it: what each rank gets for each of its launches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.frontend.python.source import KernelSource, Signature
from tlx_xdsl.grid import Grid, grid_of
from tlx_xdsl.interpreter.launch import RESIDENT
from tlx_xdsl.targets import target_named

from ...driver.host_values import is_constant, signature_of
from ...ranks.arguments import launches_of, of_ranks, ranks_of, typed_ranks
from ...ranks.simulated import SymmetricArray
from ...simulate.interpret import defaults_of
from ...simulate.options import Options
from .prove import Argument, RanksProof, prove_ranks


def proved_launch(
    source: KernelSource,
    grid: Grid,
    arguments: Mapping[str, Any],
    options: Options,
    module: ModuleOp,
    launches: int | None,
    types: Mapping[str, Signature] | None = None,
) -> RanksProof:
    """The proof of a launch with arguments by name; `module` is the kernel for arguments of these types.

    Raises as `interpret_source` does.
    """
    sizes = grid_of(grid, {**defaults_of(source), **arguments})
    ranks, named = ranks_of(arguments, options.ranks), launches_of(arguments) or 1
    of_each = of_ranks(arguments, ranks, named)
    # A number that happens to be 1, or to differ in what it divides, is a parameter like any other.
    loose = {
        parameter.name: signature_of(parameter.name, of_each[0][parameter.name])
        for parameter in source.parameters
        if parameter.name in arguments and not (parameter.is_constexpr or is_constant(of_each[0][parameter.name]))
    }
    found = typed_ranks(source, of_each, {**loose, **(types or {})})
    symmetric = {name: value for name, value in arguments.items() if isinstance(value, SymmetricArray)}
    values = [
        [
            _argument(name, [found[launch * ranks + rank].values[at][1] for launch in range(named)], symmetric, rank)
            for at, (name, _) in enumerate(found[0].values)
        ]
        for rank in range(ranks)
    ]
    target = target_named(options.target) if options.target else None
    resident = RESIDENT if target is None else target.multiprocessors
    return prove_ranks(module, sizes, values, launches=launches, resident=resident)


def _argument(name: str, values: list[Any], symmetric: Mapping[str, SymmetricArray], rank: int) -> Argument:
    """An argument of a rank, with its value for each launch that the host names."""
    for tensor, peers in symmetric.items():
        if values[0] is peers.tables[rank]:
            return Argument(tensor, values[:1], peers.arrays)
    return Argument(name, values)
