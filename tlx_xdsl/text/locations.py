"""A location that xDSL lacks: a range of source text."""

from __future__ import annotations

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, FusedLoc, IntAttr, NameLoc, StringAttr, UnknownLoc
from xdsl.ir import BuiltinAttribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.printer import Printer


@irdl_attr_definition
class FileLineColRange(ParametrizedAttribute, BuiltinAttribute):
    """From a position to another one in a file: `loc("f.py":1:2 to 3:4)`; lines and columns count from 1."""

    name = "tlx.file_line_col_range"

    filename: StringAttr = param_def()
    line: IntAttr = param_def()
    column: IntAttr = param_def()
    end_line: IntAttr = param_def()
    end_column: IntAttr = param_def()

    def print_builtin(self, printer: Printer) -> None:
        """Print the location, with the end line only where it differs."""
        with printer.in_location():
            printer.print_attribute(self.filename)
            end_line = "" if self.end_line == self.line else str(self.end_line.data)
            printer.print_string(f":{self.line.data}:{self.column.data} to {end_line}:{self.end_column.data}")


LOCATIONS = (FileLineColLoc, FileLineColRange, CallSiteLoc, NameLoc, FusedLoc, UnknownLoc)
"""Every class of location."""
