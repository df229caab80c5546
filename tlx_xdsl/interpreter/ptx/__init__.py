"""PTX of a straight line, as it stands in inline assembly, run for many threads at once."""

from .program import Program as Program
from .text import UnknownInstruction as UnknownInstruction
