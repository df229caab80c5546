"""Decisions by rule, where nothing is known of a launch: what experts choose for kernels of this form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation

from tlx_xdsl.analysis.module_attrs import module_target
from tlx_xdsl.dialects import tt
from tlx_xdsl.targets import Feature
from tlx_xdsl.transforms.rewriting import constant_integer

DEPTHS = (None, 4, 3, 2)
"""Slots of a ring that are tried where no depth is given: as many as the pass finds room for, and fewer where other
memory of the kernel leaves less than it expects."""

FALLBACKS = (("persistent", False), ("split_masks", False), ("groups", 1))
"""Decisions that are tried one after the other where those of the rules are refused, or not proved: tiles that follow
each other and loops that are split leave the proof two counters of one ring, and not all rows can be shared."""

LEAST_ROWS, MOST_ROWS = 64, 128
"""Rows of a consumer's product: those of one warp group's instruction, and of two of them."""


FEW_TURNS = 4
"""Turns of a loop up to which its loads are not ahead of its products for long: as many as a ring has slots."""

REASONS = {
    "persistent": "a tile's loads and stores run beside other tiles' products where a program does nothing but add "
    "products up, or turns a few times",
    "groups": "two where each has 64 or 128 rows of the products (128 in tensor memory), and otherwise one",
}
"""Why a rule decides, by the decision."""


def by_rule(decisions: Any, module: ModuleOp) -> Any:
    """Return the decisions with what experts choose in the place of none.

    There are two consumers where each has rows for its product. Programs take several tiles, so that a tile's store
    runs beside the next one's products, where loops only add products up, or turn a few times.
    """
    target = module_target(module)
    if (
        decisions.persistent is None
        and target is not None
        and target.has(Feature.WGMMA)
        and (_adds_up(module) or _is_short(module))
    ):
        decisions = replace(decisions, persistent=True)
    if decisions.groups is not None:
        return decisions
    rows = list(_rows(module))
    # An accumulator in tensor memory of 64 rows leaves half of its lanes idle.
    least = MOST_ROWS if target is not None and target.has(Feature.TENSOR_MEMORY) else LEAST_ROWS
    splits = bool(rows) and all(not each % 2 and least <= each // 2 <= MOST_ROWS for each in rows)
    return replace(decisions, groups=2 if splits else 1)


def _adds_up(module: ModuleOp) -> bool:
    """True if each product is the next sum of a loop, in a kernel whose programs take one tile each."""
    products = [op for op in module.walk() if isinstance(op, tt.DotOp)]
    return bool(products) and all(
        isinstance(loop := op.parent_op(), scf.ForOp)
        and not isinstance(loop.parent_op(), scf.ForOp | scf.WhileOp)
        and all(isinstance(use.operation, scf.YieldOp) for use in op.d.uses)
        for op in products
    )


def _is_short(module: ModuleOp) -> bool:
    """True if a program has products, and ends before loads ahead of a loop would pay off."""
    loops = [op for op in module.walk() if isinstance(op, scf.ForOp | scf.WhileOp)]
    return any(isinstance(op, tt.DotOp) for op in module.walk()) and all(map(_turns_a_few_times, loops))


def _turns_a_few_times(loop: Operation) -> bool:
    if not isinstance(loop, scf.ForOp):
        return False
    lower, upper, step = (constant_integer(value) for value in (loop.lb, loop.ub, loop.step))
    return lower is not None and upper is not None and bool(step) and upper - lower <= FEW_TURNS * step


def _rows(module: ModuleOp) -> Iterator[int]:
    """Yield the rows of each product."""
    for op in module.walk():
        if isinstance(op, tt.DotOp) and isinstance(type_ := op.results[0].type, TensorType):
            yield type_.get_shape()[-2]
