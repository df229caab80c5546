"""The compiler, top to bottom: the passes that turn the frontend's module into TTGIR."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, NoneAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from tlx_xdsl.analysis.some_threads import store_by_some_threads
from tlx_xdsl.dialects import ttg
from tlx_xdsl.text.profiles import PROFILES, Profile

from .registry import pass_class

NEWEST = PROFILES[-1]
"""The newest version of Triton that has a profile."""


def _pass(name: str, **options: bool) -> ModulePass:
    return pass_class(name)(**options)


def ttgir_pipeline(profile: Profile | None = None, *, check_budget: bool = True) -> tuple[ModulePass, ...]:
    """The passes from the frontend's module to TTGIR for stock Triton, in order.

    `profile` is that of a Triton version. Without one the passes are those for the newest version, but cluster launch
    control becomes PTX. Without `check_budget` what can't fit the target goes on, too: for looking at it, for it can
    never launch.
    """
    has_clc = profile is not None and profile.has_clc
    version = profile or NEWEST
    return (
        # --- refuse: what can't work, while the user's operations are there to point at ---
        # What the target lacks.
        _pass("tlx-check-target"),
        # What no target can do; sets the launch attributes that the other passes read.
        _pass("triton-tlx-fixup"),
        # Uses of registers that the tensor cores still write.
        _pass("tlx-check-dots-in-flight"),
        # --- complete: what the user's operations need, before any other pass looks at the whole ---
        # Barriers where the CTAs of a cluster start and end using each other's memory.
        _pass("tlx-insert-cluster-barriers"),
        # --- layouts of buffers: sizes in memory depend on them ---
        # Requirements of operations become operations.
        _pass("tlx-insert-require-layout"),
        # Requirements reach the allocations, and layouts that the user pins reach the uses.
        _pass("tlx-propagate-layout"),
        # Layouts that depend on the number of warps are computed in each partition.
        _pass("tlx-resolve-placeholder-layouts"),
        # No later pass changes a layout of the user's, so the marks go.
        _pass("tlx-finalize-user-layouts"),
        # --- legalize: what upstream Triton refuses or leaves to the user ---
        # It allows one buffer of scales in an allocation.
        _pass("tlx-lower-scale-arrays"),
        # It copies a matrix of scales, not the lines that the hardware copies.
        _pass("tlx-lower-scale-copies"),
        # It refuses copies that no `cp.async` can make; threads write these themselves, so fences come later.
        _pass("tlx-legalize-async-copies"),
        # It adds no fence between writes of threads and TMA or the tensor cores of another task.
        _pass("tlx-insert-proxy-fences"),
        # It lets an atomic operation release what TMA stores have not written yet.
        _pass("tlx-finish-stores"),
        # It drops requests for registers that do not add up.
        _pass("tlx-rebalance-setmaxnreg"),
        # --- aliasing: buffers become views of allocations ---
        # A kernel that does not fit is refused with the sizes of the user's buffers.
        *((_pass("tlx-storage-budget"),) if check_budget else ()),
        # Sizes and offsets of buffers that share storage.
        _pass("tlx-storage-alias-lowering"),
        # Upstream Triton has no op for `tlx.local_alias`.
        _pass("tlx-rewrite-local-alias", whole_views=version.views_fill_allocations),
        # Upstream Triton has no layout for accumulators of 64 rows in each CTA of a pair.
        _pass("tlx-lower-pair-accumulators"),
        # --- expand what older Triton versions lack ---
        # No version converts between all pairs of float types.
        _pass("expand-float-conversions"),
        # 3.6 and 3.7 do not lower `arith.negf`.
        _pass("expand-negf"),
        # 3.6 gathers from registers only, and does not scatter.
        *(() if version.has_local_gathers else (_pass("expand-local-gather"), _pass("expand-local-scatter"))),
        # Before 3.9 there is no operation for dependent launches.
        *(() if version.has_dependent_launches else (_pass("expand-dependent-launches"),)),
        # Before 3.9 what other threads have stored may come after the release of a lock.
        *(() if version.synchronized_atomics else (_pass("tlx-insert-barriers-at-atomics"),)),
        # What upstream Triton would take for aligned, for a dot, or for a loop that runs.
        *_misjudged(version),
        # --- synchronisation of clusters: while each buffer shows which CTA owns it ---
        # Barriers of the cluster at which all warps arrive.
        _pass("tlx-lower-cluster-barriers"),
        # Weaker memory ordering for arrivals at other CTAs' mbarriers, where it suffices.
        _pass("tlx-relax-remote-arrivals"),
        # --- to PTX, and to TTGIR ---
        # PTX for single instructions; its tensors get layouts like all others.
        _pass("tlx-lower-to-ptx"),
        # Upstream Triton's order of reducing an accumulator's row delays the exponentials of a softmax.
        _pass("tlx-chain-reductions"),
        # Layouts for all tensors, and conversions between them.
        _pass("convert-triton-to-tritongpu"),
        # PTX for single operations that depends on layouts.
        _pass("tlx-lower-to-ptx-with-layouts", native=has_clc, cached_loads=version.cached_loads),
        # MMAs of two CTAs change the types of all accumulators of the module.
        _pass("tlx-lower-2cta-mma"),
        # Accesses to other CTAs' memory; neighbouring arrivals share a fence.
        _pass("tlx-lower-remote-memory"),
        # Parts of buffers at run-time offsets, after the passes that turn such parts into addresses.
        _pass("tlx-lower-dynamic-subslices"),
        # Numbers for the user's named barriers, beside Triton's own.
        _pass("tlx-lower-named-barriers"),
        # --- lifetimes: when all uses of buffers exist ---
        # Upstream Triton reuses the memory of an mbarrier that was not invalidated.
        _pass("tlx-end-barrier-lifetimes"),
        # Upstream Triton sees no use of a buffer in PTX.
        _pass("tlx-extend-buffer-lifetimes"),
        # --- work around single Triton versions ---
        # 3.6 and 3.7 assert at a select of buffers, which MLIR makes of a bare branch.
        *(() if version.selects_buffers else (_pass("tlx-keep-memdesc-branches"),)),
        # 3.8 can't lower calls in kernels with tasks.
        *(() if version.calls_beside_tasks else (_pass("tlx-inline-calls-with-tasks"),)),
        # 3.6 asserts at accesses that control never gets to.
        *(() if version.dead_accesses else (_pass("tlx-fold-branches"),)),
        # 3.6 stores captures over what slower warps still read.
        *(() if version.synchronized_captures else (_pass("tlx-insert-barrier-before-tasks"),)),
        # 3.6 and 3.7 know no order of warps in tensor memory.
        *(() if version.synchronized_tensor_memory else (_pass("tlx-insert-tensor-memory-barriers"),)),
        # --- report ---
        # The layouts that the user prints or asserts: last, when they are final.
        _pass("tlx-dump-layout"),
    )


_OURS = ("tlx.", "ttg.", "ttng.")
"""Prefixes of operations that stock Triton's passes would not leave as the user wrote them."""


def is_plain(module: ModuleOp) -> bool:
    """True if the module is plain Triton, without an operation or a layout below the level of `tt`.

    Stock Triton's own way from TTIR to TTGIR, with its software pipelining, serves such a module best.
    """
    return first_beyond_plain(module) is None


def first_beyond_plain(module: ModuleOp, *, barriers: bool = False) -> Operation | None:
    """The first operation of the module that is not plain Triton, if there is one.

    With `barriers` those are plain, too, that `tl.debug_barrier` makes: a lowering in which a program is one thread
    needs none.
    """
    for op in module.walk():
        if barriers and isinstance(op, ttg.BarrierOp):
            continue
        if op.name.startswith(_OURS):
            return op
        for value in op.results:
            if (type_ := ttg.as_tensor(value.type)) is not None and not isinstance(type_.encoding, NoneAttr):
                return op
    return store_by_some_threads(module)


def plain_pipeline(profile: Profile | None = None, *, as_stock: bool = False) -> tuple[ModulePass, ...]:
    """The passes that plain Triton needs before stock Triton of a version gets it.

    With `as_stock` the version gets what its own frontend would make, and so gets wrong what it gets wrong by itself.
    """
    version = profile or NEWEST
    return (
        _pass("tlx-check-target", plain=True),
        _pass("expand-float-conversions"),
        _pass("expand-negf", from_zero=as_stock and version.negates_from_zero),
        *(() if version.has_dependent_launches else (_pass("expand-dependent-launches"),)),
        *(() if as_stock or version.synchronized_atomics else (_pass("tlx-insert-barriers-at-atomics"),)),
        *(() if as_stock else _misjudged(version)),
    )


def _misjudged(version: Profile) -> tuple[ModulePass, ...]:
    """The passes that keep a version from what it would take for granted, and is not so."""
    return (
        _pass("tlx-check-miscompiled", **dict.fromkeys(version.miscompiles, True)),
        _pass("tlx-hide-alignment", **dict.fromkeys(version.misjudges, True)),
        *(() if version.keeps_sums_of_products else (_pass("tlx-keep-sums-of-products"),)),
        *(() if version.rounds_to_e5m2 else (_pass("tlx-round-to-e5m2", halves=not version.converts_halves),)),
        *((_pass("tlx-guard-flattened-loops"),) if version.runs_empty_loops else ()),
    )


def run_pipeline(
    module: ModuleOp,
    passes: tuple[ModulePass, ...],
    context: Context,
    after_each: Callable[[ModulePass, ModuleOp], None] = lambda _pass, _module: None,
) -> None:
    """Run `passes` over `module` in place, calling `after_each` after every one.

    Raises CompilationError, located in the user's source, when a pass refuses the module.
    """
    for module_pass in passes:
        module_pass.apply(context, module)
        after_each(module_pass, module)
