"""Mutants that are as right as the kernel itself, each with the argument why.

What stands here is checked, too: such a mutant must run without a report, and with the right numbers, in every
schedule; and it must still be there.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Benign:
    """Mutants of one kernel that are right."""

    case: str
    mutation: str
    text: str
    """Begins the source line."""
    argument: str
    task: str = ""
    """Only the operations of this task, where it is given."""
    which: tuple[int, ...] = ()
    """Only these of the same line, task and mutation, in program order; all where it is empty."""
    order: str = ""
    """Only under this `tensor_core_order`, where it is given."""


_TURN = (
    "Partition 0 has waited for the same phase before it hands on the turn, and the named barrier hands on what it "
    "knows: partition 1 always comes second. Dropped in partition 0, it is a race."
)
_PERMUTED = (
    "The same consumer gives back the two slots in the other order: the producer waits for them in turn, and by the "
    "time that it fills either of them the MMA that reads it has released the other one, after its own end. "
    "Buffers are given back later than they could be, never sooner."
)
_COMMITTED = (
    "Group 1's barrier completes after all MMAs that were issued before, those of group 0 among them: it comes "
    "later than the barrier that is meant, never sooner."
)
_RELEASED = (
    "The cluster's barrier after it is not relaxed: arriving releases, and waiting acquires, at the scope of the "
    "cluster, so it orders the initialisation as well. The fence is what a relaxed arrival needs."
)

_ISSUED = (
    "Only PTX requires this wait: the MMA after it writes where the one before it reads its operand, and by "
    "their issue the two are in order. Threads observe the end of either by commits after them."
)

BENIGN = (
    Benign(
        "gemm_pipelined", "drop", "tlx.fence_async_shared()",
        "What cp.async writes needs no proxy fence before the tensor cores read it: stock Triton puts none there for "
        "its own pipelined loops. The example keeps it for the letter of the PTX ISA.",
    ),
    Benign("attention_pingpong", "drop", "tlx.barrier_wait(k_full", _TURN, "partition 1"),
    Benign("attention_pingpong", "drop", "tlx.barrier_wait(v_full", _TURN, "partition 1"),
    Benign(
        "attention_pingpong", "next barrier for operand 0", "tlx.barrier_arrive(k_empty[k_stage])", _PERMUTED,
        "partition 1",
    ),
    Benign(
        "attention_pingpong", "next barrier for operand 0", "tlx.barrier_arrive(v_empty[v_stage])", _PERMUTED,
        which=(0, 2),
    ),
    Benign(
        "blackwell_attention", "drop", "tlx.barrier_wait(o_full[each], (n - 1) & 1)",
        "The factors of block n come after its scores, and the MMA task issues their product only when it has itself "
        "waited for o_full of block n - 1.",
        "the default task",
    ),
    Benign(
        "blackwell_attention", "next barrier for operand 0", "tlx.barrier_wait(o_full[each], (n - 1) & 1)",
        "As where the wait is dropped: what it waits for is over already, and so is what it waits for now.",
        "the default task", (0,),
    ),
    Benign(
        "blackwell_attention", "next barrier for operand 0", "tlx.barrier_wait(o_full[each], (num_blocks - 1) & 1)",
        _COMMITTED, which=(0,),
    ),
    Benign(
        "blackwell_attention", "next barrier for operand 0", "tlx.barrier_wait(s_full[group], n & 1)", _COMMITTED,
        "partition 0",
    ),
    Benign(
        "blackwell_attention", "next barrier for operand 0", "tlx.barrier_wait(o_ready[group], n & 1)",
        "The correction task arrives for group 0 before it does for group 1.", which=(0, 2),
    ),
    Benign(
        "blackwell_attention", "next barrier for operand 0", "tlx.barrier_wait(p_full[index], n & 1)",
        "A group writes its first slice, and arrives for it, before the second one.", which=(0, 2, 4, 6),
    ),
    Benign(
        "blackwell_attention", "drop", "tlx.barrier_wait(o_full[group], (n - 1) & 1)", _ISSUED, "partition 2",
        order="issue",
    ),
    Benign(
        "blackwell_attention", "next barrier for operand 0", "tlx.barrier_wait(o_full[group], (n - 1) & 1)",
        f"{_ISSUED} Group 0's barrier completes for group 1, too: its product is issued before. Group 0 would wait for "
        "group 1's, which is issued after it: a deadlock.",
        "partition 2", (1,), order="issue",
    ),
    Benign("cluster_gemm", "drop", "tlx.fence_mbarrier_init_cluster()", _RELEASED),
    Benign("cluster_pair", "drop", "tlx.fence_mbarrier_init_cluster()", _RELEASED),
)  # fmt: skip
