"""What single versions of stock Triton miscompile, in one table: since when, until when, and what is done about it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Handling: TypeAlias = Literal["mended", "refused", "warned"]
"""`mended`: a pass, or a change of stock Triton's text, puts it right. `refused`: an error at the line. `warned`: a
warning at the line, with the release that has it right."""


@dataclass(frozen=True)
class Defect:
    """A miscompilation that some supported version has."""

    name: str
    """The name of its minimal kernel, too."""
    upstream: Sequence[str]
    """Issues and pull requests of Triton, such as `triton-lang/triton#9610`."""
    what: str
    """What the version does wrong, in the words after "stock Triton 3.6.0": `leaves out the proxy fence ...`."""
    versions: Sequence[str]
    """The releases that have it."""
    mended_in: str
    """The first release that has it right; empty where none has."""
    handling: Handling
    where: str
    """The pass or the change that handles it."""
    reports: Sequence[str] = ()
    """Regular expressions of what the PTX machine says where it is not handled."""

    def sentence(self, version: str) -> str:
        """Say what goes wrong, and which release has it right."""
        mended = f"; mended in {self.mended_in}" if self.mended_in else ""
        return f"stock Triton {version} {self.what} ({', '.join(self.upstream)}){mended}"


DEFECTS: tuple[Defect, ...] = (
    Defect(
        "cp_async_before_wgmma",
        ("triton-lang/triton#9610", "triton-lang/triton#10537"),
        "leaves out the proxy fence between cp.async and the product that reads what it wrote",
        ("3.6.0", "3.7.0"),
        "3.7.1",
        "mended",
        "backend/mends.py",
        (r"fence\.proxy\.async",),
    ),
    Defect(
        "fence_before_copies",
        ("triton-lang/triton#9514", "triton-lang/triton#9530"),
        "writes registers of a product after its wgmma.fence",
        ("3.7.0", "3.7.1"),
        "3.8.0",
        "mended",
        "backend/mends.py",
        (r"written after the last wgmma\.fence",),
    ),
    Defect(
        "shared_operand_of_two_groups",
        ("triton-lang/triton#11047",),
        "leaves out the barrier before the overwrite of an operand that another warp group may still multiply",
        ("3.6.0", "3.7.0", "3.7.1", "3.8.0"),
        "3.9.0",
        "mended",
        "backend/mends.py",
        (r"read by the wgmma",),
    ),
    Defect(
        "left_operand_in_registers",
        ("triton-lang/triton#8997",),
        "loads the next left operand into registers from which a product in flight still takes it",
        ("3.6.0", "3.7.0", "3.7.1"),
        "3.8.0",
        "mended",
        "backend/mends.py",
        (r"writes a register that a wgmma may still read",),
    ),
    Defect(
        "tensor_memory_read_in_loop",
        ("triton-lang/triton#8732",),
        "lets the next product overwrite an accumulator in tensor memory that other warps still read",
        ("3.6.0",),
        "3.7.0",
        "mended",
        "backend/mends.py",
        (r"tensor memory, and nothing orders it after what was read by the tcgen05\.ld",),
    ),
    Defect(
        "tensor_memory_in_two_shapes",
        ("facebookexperimental/triton#1992", "triton-lang/triton#10263"),
        "leaves out the barrier between accesses of eight warps to tensor memory in two shapes",
        ("3.6.0", "3.7.0", "3.7.1"),
        "3.8.0",
        "mended",
        "tlx-insert-tensor-memory-barriers",
        (r"tensor memory, and nothing orders it after what was (?:read|written) by the tcgen05\.(?:ld|st)",),
    ),
    Defect(
        "scale_of_byte_zero",
        ("triton-lang/triton#11624",),
        "decodes the scale byte 0 of a tl.dot_scaled as 0.0, not as 2**-127",
        ("3.6.0", "3.7.0", "3.7.1", "3.8.0"),
        "3.9.0",
        "mended",
        "backend/mends.py",
    ),
    Defect(
        "registers_of_a_task_that_prints",
        ("triton-lang/triton#10417",),
        "gives a task that prints or asserts fewer than the 32 registers that the driver needs for it",
        ("3.6.0", "3.7.0", "3.7.1"),
        "3.8.0",
        "mended",
        "tlx-rebalance-setmaxnreg",
    ),
)


def cause_of(message: str, version: str) -> Defect | None:
    """Return the defect of a Triton release that makes the PTX machine say `message`; None for what is not known."""
    for defect in DEFECTS:
        if version in defect.versions and any(re.search(each, message) for each in defect.reports):
            return defect
    return None
