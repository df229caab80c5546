"""PTX of a straight line, as it stands in inline assembly, run for many threads at once."""

from tlx_xdsl.interpreter.ptx.program import Program as Program
from tlx_xdsl.interpreter.ptx.text import UnknownInstruction as UnknownInstruction
