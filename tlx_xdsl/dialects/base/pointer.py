"""Memory spaces and orders of accesses, and the pointer type of `tt` (TritonTypes.td, TritonTypeEnums.td)."""

from __future__ import annotations

from enum import Enum, Flag, auto
from typing import Literal, TypeAlias

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from .enums import Keyword

OldSpelling: TypeAlias = Literal[
    "cache_policy_as_keywords",  # `cacheModifier = cg evictionPolicy = evict_first` for `cachePolicy` (3.6 to 3.8)
    "tmem_cta_splits",  # `CTASplitM = 2` for `CGALayout = [[1, 0]]` of tensor memory (3.6, 3.7)
    "tmem_subslice_n",  # `N = 32` for `offset = 32` of `ttng.tmem_subslice` (3.6 to 3.8)
    "pointer_space_as_number",  # `!tt.ptr<f32, 0>` for `!tt.ptr<f32, "descriptor">` (3.6 to 3.8)
    "to_tensor_of_memref",  # `to_tensor %m : memref<4xf32>`, without `to tensor<4xf32>` (MLIR of LLVM 19)
    "to_memref",  # `bufferization.to_memref %t : memref<4xf32>` for `to_buffer %t : tensor<4xf32> to memref<4xf32>`
]


def spells(printer: Printer, spelling: OldSpelling) -> bool:
    """True if `printer` writes for a version with this old spelling.

    It then has a `profile`, or an `mlir` one, with these flags; any other printer, and any other flag, means the
    spelling of the newest version. Reading understands every spelling.
    """
    return any(getattr(getattr(printer, each, None), spelling, False) for each in ("profile", "mlir"))


class Space(Enum):
    """The memory that a pointer, a descriptor or a buffer refers to."""

    GLOBAL = auto()
    SHARED = auto()
    CLUSTER = auto()
    """The shared memory of another CTA of the cluster."""
    TENSOR = auto()


class Sync(Flag):
    """The ordering that an operation establishes (PTX ISA, "Memory Consistency Model")."""

    NONE = 0
    RELEASE = auto()
    """Other threads may acquire everything that this thread has done before: an arrival, a release at a flag."""
    ACQUIRE = auto()
    """This thread sees what others have released: a wait, an acquire at a flag."""
    FENCE = auto()
    """A fence that gives operations after it the power to release; alone it signals nothing."""
    FENCE_PROXY = auto()
    """Earlier accesses through the generic proxy become visible to the async proxy."""
    NAMED = auto()
    """The release or acquire is at a named barrier of the thread block."""
    CLUSTER = auto()
    """The release or acquire is at the barrier of the cluster."""
    ORDERED = auto()
    """Nothing is ordered for other threads, but the operation must not be merged, moved or dropped."""
    THREADS = auto()
    """All threads that run the region take part, or none goes on."""


class PtrAddrSpace(Keyword):
    """The address space of a pointer; 3, shared memory, has no name."""

    Global = 1
    Descriptor = 0
    Constant = 4


GLOBAL_ADDRESS_SPACE = PtrAddrSpace.Global.value
"""The address space of a pointer that names none."""
SHARED_ADDRESS_SPACE = 3
"""The address space of shared memory."""


@irdl_attr_definition
class PointerType(ParametrizedAttribute, TypeAttribute):
    """A pointer to `pointee`: `!tt.ptr<f16>`, or `!tt.ptr<f16, "constant">` (from Triton 3.9 on)."""

    name = "tt.ptr"

    pointee: Attribute = param_def()
    address_space: IntAttr = param_def()

    @property
    def space(self) -> Space:
        """The memory that it points into."""
        return Space.SHARED if self.address_space.data == SHARED_ADDRESS_SPACE else Space.GLOBAL

    @staticmethod
    def get(pointee: Attribute, address_space: int = GLOBAL_ADDRESS_SPACE) -> PointerType:
        """A pointer into `address_space` (1: global, 0: a tensor descriptor, 4: constant, 3: shared memory)."""
        return PointerType(pointee, IntAttr(address_space))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        """Parse `<pointee (, address space)?>`."""
        with parser.in_angle_brackets():
            pointee = parser.parse_type()
            space = GLOBAL_ADDRESS_SPACE
            if parser.parse_optional_punctuation(",") is not None:
                space = _parse_space(parser)
        return [pointee, IntAttr(space)]

    def print_parameters(self, printer: Printer) -> None:
        """Print what `parse_parameters` reads."""
        space = self.address_space.data
        as_number = spells(printer, "pointer_space_as_number")
        name = next((case.keyword for case in PtrAddrSpace if case.value == space), None)
        with printer.in_angle_brackets():
            printer.print_attribute(self.pointee)
            # Up to 3.8 a pointer that is only read is like others; 4 is LLVM's constant memory, of 32-bit addresses.
            if space != GLOBAL_ADDRESS_SPACE and not (as_number and space == PtrAddrSpace.Constant.value):
                printer.print_string(f", {space}" if as_number or name is None else f', "{name}"')


def _parse_space(parser: AttrParser) -> int:
    position = parser.pos
    if (name := parser.parse_optional_str_literal()) is None:
        return parser.parse_integer(allow_boolean=False)
    case = next((case for case in PtrAddrSpace if case.keyword == name), None)
    if case is None:
        expected = ", ".join(f'"{case.keyword}"' for case in PtrAddrSpace)
        parser.raise_error(f'expected one of {expected}, found "{name}"', position)
    return case.value
