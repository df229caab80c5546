"""Writing MLIR text: xDSL's printer with attribute aliases, location aliases and a Triton version's spelling."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO

from xdsl.dialects.builtin import (
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    ModuleOp,
    NameLoc,
    TensorType,
    UnknownLoc,
)
from xdsl.ir import Attribute, Operation, SSAValue, TypeAttribute
from xdsl.printer import Printer as XDSLPrinter

from tlx_xdsl.dialects.tt.types import TensorDescType
from tlx_xdsl.dialects.ttg.attrs import (
    BlockedEncodingAttr,
    NvidiaMmaEncodingAttr,
    NvmmaSharedEncodingAttr,
    SharedMemorySpaceAttr,
    SwizzledSharedEncodingAttr,
)
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.text.profiles import NEUTRAL, Profile

_ALIAS_PREFIX: dict[type[Attribute], str] = {
    BlockedEncodingAttr: "blocked",
    NvidiaMmaEncodingAttr: "mma",
    NvmmaSharedEncodingAttr: "shared",
    SwizzledSharedEncodingAttr: "shared",
    SharedMemorySpaceAttr: "smem",
}
"""Attributes that get an alias, with Triton's name for it."""

_LOCATIONS = (FileLineColLoc, CallSiteLoc, NameLoc, FusedLoc, UnknownLoc)


class Printer(XDSLPrinter):
    """Prints a module whose layouts and locations are aliases; `header()` and `footer()` define them."""

    def __init__(self, stream: StringIO, profile: Profile = NEUTRAL, *, locations: bool = True, generic: bool = False):
        super().__init__(stream, print_debuginfo=locations, print_generic_format=generic)
        self.profile = profile
        self._aliases: dict[Attribute, str] = {}
        self._alias_counts: dict[str, int] = {}
        self._location_aliases: dict[Attribute, str] = {}
        self._rendered: dict[Attribute, str] = {}

    # --- names -------------------------------------------------------------------------------------------------

    def print_ssa_value(self, value: SSAValue) -> str:
        """Print the name of `value`, choosing one on first sight.

        No two values of a function get one name, not even in regions that can't see each other: stock Triton reads
        a partition's names in the scope of the whole function.
        """
        name = self._ssa_values.get(value)
        if name is None:
            name = self._unused_name(value.name_hint)
            self._ssa_values[value] = name
        self.print_string(f"%{name}")
        return name

    def _unused_name(self, hint: str | None) -> str:
        if hint is None:
            return self._get_new_valid_name_id()
        names = self.ssa_names
        count = names.get(hint, 0)
        name = f"{hint}_{count}" if count else hint
        while count and name in names:
            count += 1
            name = f"{hint}_{count}"
        names[hint] = count + 1
        names.setdefault(name, 1)
        return name

    # --- operations --------------------------------------------------------------------------------------------

    def print_op(self, op: Operation) -> None:
        """Print `op`, or refuse it when the profile's Triton version has no such operation."""
        first_version = self.profile.missing_ops.get(op.name)
        if first_version is not None:
            major, minor = first_version
            raise error_at(
                op, f"'{op.name}' does not exist in Triton {self.profile.name}, it came with {major}.{minor}"
            )
        super().print_op(op)

    # --- attributes --------------------------------------------------------------------------------------------

    def print_attribute(self, attribute: Attribute) -> None:
        """Print `attribute`, through its alias where it has one."""
        if isinstance(attribute, _LOCATIONS):
            alias = self._location_alias(attribute)
            self.print_string(alias if self.printing_location else f"loc({alias})")
        elif (prefix := _ALIAS_PREFIX.get(type(attribute))) is not None:
            self.print_string(self._alias(attribute, prefix))
        elif isinstance(attribute, TypeAttribute):
            # The same few types stand in every line: each is rendered once.
            text = self._rendered.get(attribute)
            if text is None:
                text = self._rendered[attribute] = self._render(attribute)
            self.print_string(text)
        else:
            self._print_in_full(attribute)

    def _print_in_full(self, attribute: Attribute) -> None:
        if isinstance(attribute, TensorDescType) and self.profile.tensordesc_wraps_tensor:
            self.print_string("!tt.tensordesc<")
            self.print_attribute(TensorType(attribute.element_type, attribute.shape, attribute.encoding))
            self.print_string(">")
        else:
            super().print_attribute(attribute)

    def _render(self, attribute: Attribute) -> str:
        stream, self.stream = self.stream, StringIO()
        self._print_in_full(attribute)
        text = self.stream.getvalue()
        self.stream = stream
        # What was written elsewhere does not count for the position in this line.
        self._current_column -= len(text)
        return text

    def _alias(self, attribute: Attribute, prefix: str) -> str:
        alias = self._aliases.get(attribute)
        if alias is None:
            number = self._alias_counts.get(prefix, 0)
            self._alias_counts[prefix] = number + 1
            alias = f"#{prefix}{number or ''}"
            self._aliases[attribute] = alias
        return alias

    def _location_alias(self, location: Attribute) -> str:
        alias = self._location_aliases.get(location)
        if alias is None:
            number = len(self._location_aliases)
            alias = self._location_aliases[location] = f"#loc{number or ''}"
        return alias

    # --- alias definitions -------------------------------------------------------------------------------------

    def header(self) -> str:
        """The definitions of the attribute aliases, for the top of the text."""
        return "".join(f"{alias} = {self._definition(attribute)}\n" for attribute, alias in self._aliases.items())

    def footer(self) -> str:
        """The definitions of the location aliases, for the end of the text."""
        lines: list[str] = []
        # Defining a location may alias the locations inside it, which are appended while we go.
        for location in _growing(self._location_aliases):
            lines.append(f"{self._location_aliases[location]} = {self._definition(location)}\n")
        return "".join(lines)

    def _definition(self, attribute: Attribute) -> str:
        stream, self.stream = self.stream, StringIO()
        super().print_attribute(attribute)
        text = self.stream.getvalue()
        self.stream = stream
        return text


def _growing(table: dict[Attribute, str]) -> Iterable[Attribute]:
    done = 0
    while done < len(table):
        keys = list(table)
        yield from keys[done:]
        done = len(keys)


def print_module(module: ModuleOp, *, profile: Profile = NEUTRAL, locations: bool = True, generic: bool = False) -> str:
    """The text of `module` in the spelling of `profile`, with a final newline.

    Raises CompilationError when the version can't express the module.
    """
    body = StringIO()
    printer = Printer(body, profile, locations=locations, generic=generic)
    printer.print_op(module)
    body.write("\n")
    return printer.header() + body.getvalue() + printer.footer()
