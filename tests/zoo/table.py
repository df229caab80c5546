"""The whole zoo, by areas."""

from typing import Any

from tests.zoo import (
    bounds,
    clusters,
    dependent,
    descriptors,
    flags,
    grids,
    handshakes,
    locks,
    pairs,
    persistent,
    products,
    proxies,
    right_between_programs,
    right_in_a_block,
    rings,
    stores,
    tensor_memory,
    threads,
    transactions,
)
from tests.zoo.bugs import Bug, Cage, Clean


def _cages(*modules: Any) -> list[Cage]:
    return [cage for module in modules for cage in module.CAGES]


_CAGES = {
    "hopper": _cages(rings, transactions, stores, products, handshakes, persistent),
    "clusters": _cages(clusters),
    "blackwell": _cages(tensor_memory, pairs),
    "global memory": _cages(flags, locks, grids, proxies, dependent),
    "bounds": _cages(bounds, threads),
    "descriptors": _cages(descriptors),
    "right": _cages(right_in_a_block, right_between_programs),
}
AREAS: dict[str, list[Bug]] = {area: [bug for cage in cages for bug in cage.bugs] for area, cages in _CAGES.items()}
"""The mistakes of each area."""
CLEAN: list[Clean] = [run for cages in _CAGES.values() for cage in cages for run in cage.clean_runs]
"""Runs without mistakes, beside the twins."""
