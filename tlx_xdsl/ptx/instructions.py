"""The builders of all instructions, by name."""

from __future__ import annotations

from . import compute
from .ops import BUILDERS
from .steps import NOTHING, Context, Step


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
