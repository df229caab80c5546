"""The builders of all instructions, by name."""

from __future__ import annotations

from tlx_xdsl.ptx import compute
from tlx_xdsl.ptx.ops import BUILDERS
from tlx_xdsl.ptx.steps import NOTHING, Context, Step


def build_step(context: Context) -> Step | None:
    """The step of an instruction; None for one that does nothing here.

    Raises PtxError for an instruction that is not known.
    """
    name = context.instruction.name
    if (builder := BUILDERS.get(name)) is not None:
        step = builder(context)
    else:
        step = compute.build(context)
        if step is None:
            raise context.refuse()
    return None if step is NOTHING else step
