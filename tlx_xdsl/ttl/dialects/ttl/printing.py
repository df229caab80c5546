"""Text that a thread writes while it runs, for whoever looks for a fault."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from .base import TTLOp

PROCESSORS = ("unpack", "math", "pack")
"""The processors of a compute thread."""


@irdl_op_definition
class PrintOp(TTLOp):
    """Write a text with values in the place of each `{}`: `ttl.print "i = {}"(%i : index)`.

    Values are integers, and at last a circular buffer, whose state is written, or a block, whose elements are.
    `thread` is the processor of a compute thread that writes it.
    """

    name = "ttl.print"

    values = var_operand_def()
    format = prop_def(StringAttr)
    thread = opt_prop_def(StringAttr)

    assembly_format = "$format (`(` $values^ `:` type($values) `)`)? attr-dict"

    def __init__(self, format: str, values: Sequence[SSAValue], thread: str | None = None) -> None:
        properties = {"format": StringAttr(format), "thread": None if thread is None else StringAttr(thread)}
        super().__init__(operands=[list(values)], properties=properties)

    def verify_(self) -> None:
        """Check that there is a place for each value."""
        if self.format.data.count("{}") != len(self.values):
            raise VerifyException(
                f"expected a '{{}}' for each of {len(self.values)} values, found '{self.format.data}'"
            )
        if self.thread is not None and self.thread.data not in PROCESSORS:
            raise VerifyException(f"'thread' is one of {', '.join(PROCESSORS)}, found '{self.thread.data}'")
