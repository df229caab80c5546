"""Warnings at the end of a program or a buffer: copies in flight, barriers with a phase under way, unread results."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from tlx_xdsl.text.diagnostics import report_warning

from .deadlock import barrier_notes
from .faults import fault_at, place_note
from .machine import Cluster, ThreadBlock
from .mbarrier import Mbarrier

WAITED_FOR = ("TMA store", "cp.async", "wgmma")
"""Asynchronous operations that a task waits for itself: they read its memory, or write it, until they are done."""


def check_end(cluster: Cluster) -> None:
    """Warn of what a run has left unfinished: barriers with a phase under way, copies in flight, unread results.

    Raises Fault for a use of a thread block's memory that the block need not have lived to see.
    """
    if any(block.main is not None and block.main.left for block in cluster.blocks):
        return  # who gives up says so, and leaves things undone
    for queue in cluster.queues:
        if queue.kind in WAITED_FOR and queue.waited < queue.issued and queue.last is not None:
            _warn(
                cluster,
                queue.last,
                f"{queue.owner} ends without waiting for {queue.issued - queue.waited} of its {queue.kind}s",
                ("their data is written all the same, as on today's GPUs; PTX does not promise it",)
                if queue.outlives
                else (),
            )
    for core in cluster.tensor_cores:
        main = cluster.blocks[core.rank].main
        assert main is not None
        for agent, (number, op) in core.last.items():
            if not main.clock.knows(agent, number):
                _warn(cluster, op, f"{core.queue.owner} ends, and nothing has waited for this to be complete")
    for block in cluster.blocks:
        assert block.main is not None
        for agent, (step, op) in block.visits.items():
            if not block.main.clock.knows(agent, step):
                raise fault_at(
                    op,
                    f"the memory of CTA {block.rank} is used, and nothing keeps that CTA from ending before",
                    ("a tlx.cluster_barrier() at the end of the kernel does",),
                )
        _check_barriers(cluster, block)
        for named in block.named_barriers.values():
            if named.arrived:
                _warn(
                    cluster,
                    op := next(iter(named.ops.values())),
                    f"named barrier {named.number} ends with {named.arrived} of {named.threads} threads arrived",
                    named.others(op),
                )


def _check_barriers(cluster: Cluster, block: ThreadBlock) -> None:
    """Warn of the mbarriers that a thread block leaves."""
    for barrier in block.shared.barriers.values():
        check_barrier(cluster, barrier)
        if (ended := block.shared.ended) is not None:
            _warn(
                cluster,
                barrier.op,
                f"the lifetime of '{barrier.name}' does not end (mbarrier.inval), as that of others does: stock "
                "Triton may give its memory to another buffer while it is in use",
                (place_note("such as at", ended),),
            )


def check_barrier(cluster: Cluster, barrier: Mbarrier) -> None:
    """Warn of a barrier at the end of its lifetime: of a phase under way, and of data that no task has waited for."""
    if barrier.is_armed:
        _warn(
            cluster,
            barrier.op,
            f"'{barrier.name}' ends in the middle of its phase {barrier.phase}, which lacks {barrier.missing}",
            barrier_notes(barrier),
        )
    elif barrier.data_phase >= barrier.waited:
        _warn(
            cluster,
            barrier.op,
            f"no task has waited for phase {barrier.data_phase} of '{barrier.name}', which asynchronous copies "
            "have completed",
            barrier_notes(barrier),
        )


def _warn(cluster: Cluster, op: Operation, message: str, notes: Sequence[str] = ()) -> None:
    report_warning(op, message, (*notes, cluster.note))
