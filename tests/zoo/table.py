"""The whole zoo, by areas."""

from tests.zoo import (
    bounds,
    clusters,
    flags,
    grids,
    handshakes,
    locks,
    pairs,
    persistent,
    products,
    rings,
    stores,
    tensor_memory,
    transactions,
)
from tests.zoo.bugs import Bug, Cage


def _bugs(*modules: object) -> list[Bug]:
    cages: list[Cage] = [cage for module in modules for cage in module.CAGES]  # pyright: ignore
    return [bug for cage in cages for bug in cage.bugs]


AREAS = {
    "hopper": _bugs(rings, transactions, stores, products, handshakes, persistent),
    "clusters": _bugs(clusters),
    "blackwell": _bugs(tensor_memory, pairs),
    "global memory": _bugs(flags, locks, grids),
    "bounds": _bugs(bounds),
}
"""The bugs of each area."""
