"""All kernels of several ranks, with their mistakes."""

from tests.zoo.bugs import Bug, Cage
from tests.zoo.ranks import copies, exchanges, gathers, published, rings, sums

CAGES: list[Cage] = [
    cage for module in (gathers, sums, rings, exchanges, copies, published) for cage in module.CAGES
]  # fmt: skip
BUGS: list[Bug] = [bug for cage in CAGES for bug in cage.bugs]
"""The mistakes."""


def twins() -> list[Bug]:
    """Return the first of the mistakes with the same twin."""
    known: dict[tuple[object, ...], Bug] = {}
    for bug in BUGS:
        given = bug.twin_arguments or bug.arguments
        known.setdefault((bug.kernel, str(bug.twin), bug.grid, str(bug.constants), bug.ranks, given), bug)
    return [*known.values()]
