"""Writing MLIR text: xDSL's printer with attribute aliases, location aliases and a Triton version's spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from io import StringIO
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntegerAttr,
    ModuleOp,
    NameLoc,
    NoneAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue, TypeAttribute
from xdsl.printer import Printer as XDSLPrinter

from .diagnostics import LOCATIONS, FileLineColRange, error_at
from .profiles import NEUTRAL, MlirProfile, Profile, ascii_name

_OUR_ATTRIBUTES = "tlx."
"""Prefixes of the names of attributes that stock Triton has no use for."""
_PAIR_PRODUCT = "tcgen05.mma.cta_group::2"

_ALIAS_PREFIX: dict[str, str] = {
    "affine_map": "map",
    "ttg.blocked": "blocked",
    "ttg.generic_linear": "generic_linear",
    "ttg.linear": "linear",
    "ttg.nvidia_mma": "mma",
    "ttg.nvmma_shared": "shared",
    "ttg.padded_shared": "shared",
    "ttg.shared_linear": "shared",
    "ttg.shared_memory": "smem",
    "ttg.swizzled_shared": "shared",
    "ttng.tensor_memory_encoding": "tmem",
    "ttng.tensor_memory_scales_encoding": "tmem_scales",
}
"""Names of the attributes that get an alias, with Triton's or MLIR's name for it.

By name, because importing the attributes would load every operation of their dialects.
"""


_ESCAPED = re.compile(r'[^ -~]|["\\]')


def _escape(match: re.Match[str]) -> str:
    """A byte of a literal as MLIR spells it."""
    return "\\\\" if match[0] == "\\" else f"\\{ord(match[0]):02X}"


class Printer(XDSLPrinter):
    """Prints a module whose layouts, affine maps and locations are aliases; `header()` and `footer()` define them."""

    def __init__(
        self,
        stream: StringIO,
        profile: Profile | MlirProfile | None = None,
        *,
        locations: bool = True,
        generic: bool = False,
    ):
        super().__init__(stream, print_debuginfo=locations, print_generic_format=generic)
        self.mlir = profile if isinstance(profile, MlirProfile) else None
        """The release of upstream MLIR that the text is for."""
        self.profile = profile if isinstance(profile, Profile) else NEUTRAL
        self.strict = isinstance(profile, Profile)
        """True if the text is for a Triton version, and not for ourselves."""
        self._aliases: dict[Attribute, str] = {}
        self._alias_counts: dict[str, int] = {}
        self._location_aliases: dict[Attribute, str] = {}
        self._rendered: dict[Attribute, str] = {}

    # --- text ----------------------------------------------------------------------------------------------------

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        """Print `text`; most of it is a word in a line, for which xDSL's way takes half of the time of a print."""
        if "\n" in text:
            super().print_string(text, indent=indent)
            return
        self._current_column += len(text)
        assert self.stream is not None
        self.stream.write(text)

    def print_bytes_literal(self, bytestring: bytes) -> None:
        """Print a literal at once, and not byte by byte: file names are in every location."""
        self.print_string(f'"{_ESCAPED.sub(_escape, bytestring.decode("latin-1"))}"')

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
        # xDSL takes the numeric ending off a hint, and so all of `_0`.
        if not hint:
            return self._get_new_valid_name_id()
        hint = ascii_name(hint)
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
        """Print `op`, or refuse it when the version that the text is for has no such operation."""
        if self.mlir is not None and (reason := self._why_not_upstream(op, self.mlir)) is not None:
            raise error_at(op, reason)
        if self.strict and self.profile.gpu_barriers and op.name == "ttg.barrier":
            from tlx_xdsl.dialects.gpu import BarrierOp

            wider = BarrierOp()
            wider.location, op = op.location, wider
        if self.strict and (reason := self.profile.why_missing(op.name)) is not None:
            raise error_at(op, reason)
        if self.strict and (reason := self._why_no_pair(op)) is not None:
            raise error_at(op, reason)
        if self.mlir is not None and self.mlir.spelling_of(op.name) != op.name and not self.print_generic_format:
            self._print_renamed(op, self.mlir.spelling_of(op.name))
        else:
            super().print_op(op)

    def _print_renamed(self, op: Operation, name: str) -> None:
        """Print `op`, which holds no regions, under another name."""
        self._print_results(op)
        self.print_string(name)
        op.print(self)
        if self.print_debuginfo:
            self.print_string(" ")
            self.print_attribute(op.location)

    def _why_not_upstream(self, op: Operation, mlir: MlirProfile) -> str | None:
        """Return why a release of upstream MLIR can't express `op`."""
        kind = op.properties.get("kind")
        if op.name == "memref.atomic_rmw" and isinstance(kind, IntegerAttr) and kind.value.data >= mlir.kinds_of_update:
            return f"LLVM {mlir.name} has no 'memref.atomic_rmw' of this kind"
        return mlir.why_missing(op.name)

    def _why_no_pair(self, op: Operation) -> str | None:
        """Return why the version can't compile a product of a pair of CTAs, when `op` is the PTX of one."""
        code = op.properties.get("ptxCode")
        if self.profile.allocates_for_pairs or not isinstance(code, StringAttr) or _PAIR_PRODUCT not in code.data:
            return None
        return (
            "a product of a pair of CTAs (two_ctas=True) needs tensor memory that is allocated for pairs: Triton "
            f"{self.profile.name} can't where each CTA has tensors of its own, 3.8 is the first version that can"
        )

    def print_op_attributes(
        self,
        attributes: Mapping[str, Attribute],
        *,
        reserved_attr_names: Iterable[str] = (),
        print_keyword: bool = False,
    ) -> bool:
        """Print the attribute dictionary of an operation, without what the profile has it say in keywords.

        Attributes of ours are for our passes and the interpreter, no text for a Triton version has them.
        """
        if self.strict:
            attributes = {name: value for name, value in attributes.items() if not name.startswith(_OUR_ATTRIBUTES)}
        policy = attributes.get("cachePolicy") if self.profile.cache_policy_as_keywords else None
        if policy is not None and policy.name == "tt.cache_policy":
            reserved_attr_names = (*reserved_attr_names, "cachePolicy")
        return super().print_op_attributes(
            attributes, reserved_attr_names=reserved_attr_names, print_keyword=print_keyword
        )

    # --- attributes --------------------------------------------------------------------------------------------

    def print_attribute(self, attribute: Attribute) -> None:
        """Print `attribute`, through its alias where it has one."""
        if isinstance(attribute, LOCATIONS):
            alias = self._location_alias(attribute)
            self.print_string(alias if self.printing_location else f"loc({alias})")
        elif (prefix := _ALIAS_PREFIX.get(attribute.name)) is not None:
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
        if attribute.name == "tt.tensordesc" and self.profile.tensordesc_wraps_tensor:
            block: Any = attribute
            self.print_string("!tt.tensordesc<")
            self.print_attribute(TensorType(block.element_type, block.shape, block.encoding))
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
            # MLIR reads alias definitions in order: what a location refers to must be defined before it.
            for part in _parts(location):
                self._location_alias(part)
            number = len(self._location_aliases)
            alias = self._location_aliases[location] = f"#loc{number or ''}"
        return alias

    # --- alias definitions -------------------------------------------------------------------------------------

    def header(self) -> str:
        """The definitions of the attribute aliases, for the top of the text."""
        return "".join(f"{alias} = {self._definition(attribute)}\n" for attribute, alias in self._aliases.items())

    def footer(self) -> str:
        """The definitions of the location aliases, for the end of the text."""
        return "".join(f"{alias} = {self._definition(loc)}\n" for loc, alias in list(self._location_aliases.items()))

    def _definition(self, attribute: Attribute) -> str:
        if self.strict and isinstance(attribute, FileLineColLoc | FileLineColRange):
            attribute = _in_line_table(attribute)
        stream, self.stream = self.stream, StringIO()
        super().print_attribute(attribute)
        text = self.stream.getvalue()
        self.stream = stream
        return text


def _in_line_table(location: FileLineColLoc | FileLineColRange) -> FileLineColLoc | FileLineColRange:
    """`location` in a file that the line table of PTX can name: ptxas reads no escape of a double quote."""
    if '"' not in location.filename.data:
        return location
    _, *others = location.parameters
    return type(location).new([StringAttr(location.filename.data.replace('"', "'")), *others])


def _parts(location: Attribute) -> Iterable[Attribute]:
    """The locations inside of `location`."""
    match location:
        case NameLoc():
            return () if isinstance(location.location, NoneAttr) else (location.location,)
        case CallSiteLoc():
            return location.callee, location.caller
        case FusedLoc():
            return cast(ArrayAttr[Attribute], location.locations)
        case _:
            return ()


def print_module(
    module: ModuleOp,
    *,
    profile: Profile | MlirProfile | None = None,
    locations: bool = True,
    generic: bool = False,
) -> str:
    """The text of `module`, with a final newline: in the spelling of `profile`, or in our own without one.

    Raises CompilationError when the version can't express the module.
    """
    body = StringIO()
    printer = Printer(body, profile, locations=locations, generic=generic)
    printer.print_op(module)
    body.write("\n")
    return printer.header() + body.getvalue() + printer.footer()


def locations_first(text: str) -> str:
    """The text of a module with the definitions of its locations above it.

    Triton prints them below and MLIR reads either order; plain xDSL reads only what is defined before its use.
    """
    lines = text.splitlines(keepends=True)
    definitions = [line for line in lines if line.startswith("#loc")]
    return "".join([*definitions, *(line for line in lines if not line.startswith("#loc"))])
