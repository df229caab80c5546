"""`triton-tlx-fixup`: check what can't be compiled, and say in the module how it is launched.

Before:
```mlir
builtin.module { tt.func public @k() { %0 = ttg.local_alloc : ... tt.return } }
```
After `triton-tlx-fixup{num_warps=4 target="cuda:90" cluster_dims=2,1,1}`:
```mlir
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90",
    "ttg.threads-per-warp" = 32 : i32, "ttg.cluster-dim-x" = 2 : i32, ..., tlx.has_explicit_local_mem_access} { ... }
```

The attributes that begin with `tlx.` say what a module has: `tlx.has_tlx_ops` operations of our own,
`tlx.has_explicit_local_mem_access` buffers that the user allocates, `tlx.has_warp_spec_ops` tasks, and
`tlx.enable_paired_cta_mma` products of pairs of CTAs. The text for Triton leaves them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, TensorType, UnitAttr, i32
from xdsl.ir import Attribute, Operation

from tlx_xdsl.analysis.module_attrs import CLUSTER_DIMS, NUM_CTAS, NUM_WARPS, TARGET, THREADS_PER_WARP
from tlx_xdsl.dialects import tlx, ttg, ttng
from tlx_xdsl.dialects.base import Space, accesses_of, module_integer
from tlx_xdsl.text.diagnostics import error_at, location_of, source_location

from ..fold_branches import FoldBranchesPass
from ..rewriting import Pass, ops_of, replace


@dataclass(frozen=True)
class TritonTLXFixupPass(Pass):
    """Set the launch attributes that the module lacks, and refuse what no later pass could repair."""

    name = "triton-tlx-fixup"

    num_warps: int = 4
    """Warps of the kernel outside of partitions."""
    num_ctas: int = 1
    """CTAs of a cluster that work on one tensor."""
    threads_per_warp: int = 32
    """Threads of a warp: 32 on every NVIDIA GPU."""
    target: str = "cuda:90"
    """The compute capability, as Triton writes it."""
    cluster_dims: tuple[int, ...] | None = None
    """CTAs of a cluster along x, y and z, each with tensors of its own."""

    def run(self, op: ModuleOp) -> None:
        """Check and annotate the module."""
        if self.cluster_dims is not None and len(self.cluster_dims) != len(CLUSTER_DIMS):
            raise error_at(op, f"Expected 3 cluster dimensions, got {len(self.cluster_dims)}")
        launch: dict[str, Attribute] = {
            NUM_CTAS: IntegerAttr(self.num_ctas, i32),
            NUM_WARPS: IntegerAttr(self.num_warps, i32),
            TARGET: StringAttr(self.target),
            THREADS_PER_WARP: IntegerAttr(self.threads_per_warp, i32),
        }
        for name, size in zip(CLUSTER_DIMS, self.cluster_dims or (), strict=False):
            launch[name] = IntegerAttr(size, i32)
        for name, value in launch.items():
            op.attributes.setdefault(name, value)
        found = _Found.of(op)
        if found.remote and not _has_clusters(op):
            _fold_ranks(op)
            found = _Found.of(op)
        _check_tasks(found)
        _check_pairs(found, op)
        _check_remote_views(found, op)
        for name, present in found.properties.items():
            if present:
                op.attributes.setdefault(name, UnitAttr())


@dataclass(frozen=True)
class _Found:
    """The operations of a module that there is something to say about."""

    tasks: Sequence[ttg.WarpSpecializeOp]
    products: Sequence[ttng.TCGen5MMAOp | ttng.TCGen5MMAScaledOp]
    remote: Sequence[tlx.MapToRemoteOp]
    has_tlx_ops: bool
    has_local_memory: bool

    @staticmethod
    def of(module: ModuleOp) -> _Found:
        ops = list(module.walk())
        return _Found(
            ops_of(module, ttg.WarpSpecializeOp),
            ops_of(module, ttng.TCGen5MMAOp, ttng.TCGen5MMAScaledOp),
            ops_of(module, tlx.MapToRemoteOp),
            any(op.name.startswith("tlx.") for op in ops),
            any(access.space is not Space.GLOBAL for op in ops for access in accesses_of(op) or ()),
        )

    @property
    def pairs(self) -> list[ttng.TCGen5MMAOp | ttng.TCGen5MMAScaledOp]:
        """The products of pairs of CTAs."""
        return [op for op in self.products if op.two_ctas is not None]

    @property
    def properties(self) -> dict[str, bool]:
        """The features of the module, by the names of the attributes that record them."""
        return {
            "tlx.has_tlx_ops": self.has_tlx_ops,
            "tlx.has_explicit_local_mem_access": self.has_local_memory,
            "tlx.has_warp_spec_ops": bool(self.tasks),
            "tlx.enable_paired_cta_mma": bool(self.pairs),
        }


def _check_tasks(found: _Found) -> None:
    for op in found.tasks:
        for capture in op.partitions.explicit_captures:
            if isinstance(capture.type, TensorType):
                # The warps of a partition are others: they do not hold the registers of the block.
                raise error_at(
                    location_of(capture),
                    "WarpSpecializeOp should not capture RankedTensorType. Try moving tensor computation into specific "
                    "async task.",
                )
        if "tlx.exclusive" in op.attributes and len(found.tasks) > 1:
            others = [_note(other, "another one") for other in found.tasks if other is not op]
            raise error_at(
                op,
                "tlx.async_tasks(exclusive=True) requires exactly one warp_specialize op in the module, but found "
                f"{len(found.tasks)}",
                others,
            )


def _check_pairs(found: _Found, module: ModuleOp) -> None:
    """Check that all products are of pairs of CTAs, of which each has tensors of its own, or none."""
    if not (pairs := found.pairs):
        return
    if (ctas := module_integer(module, NUM_CTAS)) != 1:
        raise error_at(pairs[0], "num_ctas should not be set for TLX 2cta mode", [f"{NUM_CTAS} is {ctas}"])
    alone = next((op for op in found.products if op.two_ctas is None), None)
    if alone is not None:
        raise error_at(
            alone,
            "Expecting all dot ops to be 2cta together or 1cta together",
            [_note(pairs[0], "a product of a pair of CTAs")],
        )


def _has_clusters(module: ModuleOp) -> bool:
    return prod(module_integer(module, name) or 1 for name in (*CLUSTER_DIMS, NUM_CTAS)) > 1


def _fold_ranks(module: ModuleOp) -> None:
    """Leave out what only other CTAs of a cluster would do: a kernel for any number of them is launched with one."""
    for operation, value in ((tlx.ClusterCTARankOp, 0), (tlx.ClusterSizeOp, 1)):
        for op in ops_of(module, operation):
            replace(op, ConstantOp(IntegerAttr(value, i32)))
    FoldBranchesPass().run(module)


def _check_remote_views(found: _Found, module: ModuleOp) -> None:
    """Another CTA's memory is reached in clusters only: here or, where CTAs share tensors, by Triton.

    A CTA of a launch without clusters can't reach its own memory so, either: on an H200 `st.async` to CTA 0 was an
    illegal instruction there.
    """
    if found.remote and not _has_clusters(module):
        raise error_at(
            found.remote[0],
            "Unexpected buffer remote view in 1cta mode",
            ["a kernel with a cluster is compiled for its sizes along x, y and z (ctas_per_cga)"],
        )


def _note(op: Operation, what: str) -> str:
    place = source_location(op.location)
    return what if place is None else f"{place}: {what}"
