"""Decisions by rule, where nothing is known of a launch: what experts choose for kernels of this form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil, inf
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

FALLBACKS = (("join", False), ("persistent", False), ("split_masks", False), ("groups", 1))
"""Decisions that are tried one after the other where those of the rules are refused, or not proved: tiles that follow
each other and loops that are split leave the proof two counters of one ring, and not all rows can be shared."""

LEAST_ROWS, MOST_ROWS = 64, 128
"""Rows of a consumer's product: those of one warp group's instruction, and of two of them."""

COLUMNS_OF_THREE = 192
"""Columns of all results of a loop's products that the registers of three warp groups hold: 96 elements a thread."""

FEW_TURNS = 4
"""Turns of a loop up to which its loads are not ahead of its products for long: as many as a ring has slots."""

REASONS = {
    "outer_depth": "two for joined programs",
    "join": "programs side by side load the same blocks, and each has the rows of one group of warps",
    "order": "programs with many turns come first, so that all multiprocessors end together",
    "persistent": "a tile's loads and stores run beside other tiles' products where a program does nothing but add "
    "products up, or turns a few times",
    "groups": "two where each has 64 or 128 rows of the products (128 in tensor memory), and otherwise one; three with "
    "programs of their own, or two where registers hold no more",
}
"""Why a rule decides, by the decision."""


def by_rule(decisions: Any, module: ModuleOp) -> Any:
    """Return the decisions with what experts choose in the place of none.

    There are two consumers where each has rows for its product. Programs take several tiles, so that a tile's store
    runs beside the next one's products, where loops only add products up, or turn a few times. Where a program has rows
    for one consumer, two or three consumers have a program each, if these load the same blocks.
    """
    target = module_target(module)
    is_hopper = target is not None and target.has(Feature.WGMMA)
    shapes = list(_shapes(module))
    is_short = bool(shapes) and _most_turns(module) <= FEW_TURNS
    if decisions.cluster:
        needed = {"persistent": True, "join": False}
        decisions = replace(
            decisions, **{name: how for name, how in needed.items() if getattr(decisions, name) is None}
        )
    if decisions.persistent is None and not decisions.split and is_hopper and (_adds_up(module) or is_short):
        decisions = replace(decisions, persistent=True)
    rows = [each for each, _ in shapes]
    if is_hopper and set(rows) == {LEAST_ROWS} and _may_join(decisions):
        decisions = _joined(decisions, module, sum(columns for _, columns in shapes))
    if decisions.groups is not None:
        return decisions
    # An accumulator in tensor memory of 64 rows leaves half of its lanes idle.
    least = MOST_ROWS if target is not None and target.has(Feature.TENSOR_MEMORY) else LEAST_ROWS
    splits = bool(rows) and all(not each % 2 and least <= each // 2 <= MOST_ROWS for each in rows)
    return replace(decisions, groups=2 if splits else 1)


def _may_join(decisions: Any) -> bool:
    takes_several = decisions.persistent is not False and not decisions.split
    return takes_several and decisions.join is not False and decisions.groups != 1


def _joined(decisions: Any, module: ModuleOp, columns: int) -> Any:
    """Return the decisions with programs of their own for groups of warps, in kernels such as attention."""
    from tlx_xdsl.transforms.warp_specialize.growth import growth
    from tlx_xdsl.transforms.warp_specialize.joined_programs import shared_axis
    from tlx_xdsl.transforms.warp_specialize.products.turns import computes

    function = next(op for op in module.walk() if isinstance(op, tt.FuncOp) and op.is_kernel)
    loops = {op.parent_op() for op in module.walk() if isinstance(op, tt.DotOp)}
    if not all(isinstance(loop, scf.ForOp) and loop.parent_op() is function and computes(loop) for loop in loops):
        return decisions
    if shared_axis(function) is None:
        return decisions
    grow = any(
        growth(loop.ub, lambda value: isinstance(value.owner, tt.GetProgramIdOp)) != 0
        for loop in loops
        if isinstance(loop, scf.ForOp)
    )
    chosen = {
        "join": True,
        "groups": 3 if columns <= COLUMNS_OF_THREE else 2,
        "order": 2 if grow else None,
        "outer_depth": 2,
    }
    return replace(decisions, **{name: value for name, value in chosen.items() if getattr(decisions, name) is None})


def _adds_up(module: ModuleOp) -> bool:
    """True if each product is the next sum of a loop, in a kernel whose programs take one tile each."""
    products = [op for op in module.walk() if isinstance(op, tt.DotOp)]
    return bool(products) and all(
        isinstance(loop := op.parent_op(), scf.ForOp)
        and not isinstance(loop.parent_op(), scf.ForOp | scf.WhileOp)
        and all(isinstance(use.operation, scf.YieldOp) for use in op.d.uses)
        for op in products
    )


def _most_turns(module: ModuleOp) -> float:
    """Return the turns of the loop that turns most, 0 for none; without a bound where one is not known."""
    return max((_turns(op) for op in module.walk() if isinstance(op, scf.ForOp | scf.WhileOp)), default=0)


def _turns(loop: Operation) -> float:
    if isinstance(loop, scf.ForOp):
        lower, upper, step = (constant_integer(value) for value in (loop.lb, loop.ub, loop.step))
        if lower is not None and upper is not None and step:
            return ceil((upper - lower) / step)
    return inf


def _shapes(module: ModuleOp) -> Iterator[Sequence[int]]:
    """Yield the rows and columns of each product."""
    for op in module.walk():
        if isinstance(op, tt.DotOp) and isinstance(type_ := op.results[0].type, TensorType):
            yield type_.get_shape()[-2:]
