"""The base of the operations of `tt`, `ttg` and `ttng`, their traits, their needs of a GPU, the faults of verifiers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import NamedTuple, TypeAlias, TypeVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, NoneAttr, TensorType
from xdsl.ir import Attribute, Dialect, Operation, TypeAttribute
from xdsl.irdl import IRDLOperation, ParsePropInAttrDict, traits_def
from xdsl.traits import OpTrait
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.layouts.conversion.distributed import rank_of
from tlx_xdsl.layouts.encodings import DistributedLayout, Ints
from tlx_xdsl.layouts.validity import holders_of
from tlx_xdsl.targets import Feature as Feature

from .effects import DeclaredEffects
from .layouts import LayoutAttr, bare
from .tensors import as_tensor, tensor_type


class OverBudgetException(VerifyException):
    """An operation alone requires more of a resource than a thread block can have; becomes an `OverBudgetError`."""

    def __init__(self, message: str, *, resource: str, required: int, limit: int):
        super().__init__(message)
        self.resource = resource
        self.required = required
        self.limit = limit


OpT = TypeVar("OpT", bound=Operation)


def outermost(op: Operation) -> Operation:
    """The operation around all others, such as the module."""
    while (parent := op.parent_op()) is not None:
        op = parent
    return op


class ClusterType(TypeAttribute):
    """Base of the types of what may be spread over the CTAs of a cluster."""

    def fault_in_cluster(self, ctas: int) -> str | None:
        """Return the error in the layout for code that `ctas` CTAs run together, or None."""
        raise NotImplementedError


class Holders(NamedTuple):
    """Threads, warps and CTAs that run an operation; None where nothing says so."""

    threads: int | None
    """Threads of a warp."""
    warps: int | None
    ctas: int | None
    """Thread blocks of a cluster that tensors span."""


def holders_around(op: Operation) -> Holders:
    """Return what runs `op`."""
    holder, warps = _holder_of_warps(op)
    root = outermost(holder)
    threads = module_integer(root, "ttg.threads-per-warp")
    return Holders(32 if threads is None else threads, warps, module_integer(root, "ttg.num-ctas"))


MAX_TENSOR_ELEMENTS = 1 << 20
"""Most elements that a tensor of Triton may have."""


def enclosing(op: Operation | None, *classes: type[OpT]) -> OpT | None:
    """`op` or the innermost operation around it that is of one of `classes`."""
    while op is not None and not isinstance(op, classes):
        op = op.parent_op()
    return op


def num_warps_of(op: Operation) -> int | None:
    """Warps that run `op`: those of its partition, its function or the module; None where nothing says so."""
    return _holder_of_warps(op)[1]


def _holder_of_warps(op: Operation) -> tuple[Operation, int | None]:
    """The operation around `op` that states the number of its warps, or the outermost one, and this number."""
    child: Operation = op
    while (parent := child.parent_op()) is not None:
        if parent.name == "ttg.warp_specialize.partitions" and (holder := parent.parent_op()) is not None:
            region = child.parent_region()
            counts = holder.properties.get("partitionNumWarps")
            if region is not None and isinstance(counts, DenseArrayBase):
                warps: Ints = tuple(counts.get_values())  # pyright: ignore[reportAssignmentType]
                index = parent.get_region_index(region)
                return holder, warps[index] if index < len(warps) else None
        if parent.name == "tt.func" and (own := module_integer(parent, "ttg.num-warps")) is not None:
            # A function that a partition calls.
            return parent, own
        child = parent
    return child, module_integer(child, "ttg.num-warps")


def module_integer(module: Operation, name: str) -> int | None:
    """The integer attribute `name` of a module or function, or None."""
    value = module.attributes.get(name)
    return value.value.data if isinstance(value, IntegerAttr) else None


LAUNCH_COUNTS = (
    "ttg.num-warps", "ttg.num-ctas", "ttg.threads-per-warp", "ttg.maxnreg",
    "ttg.cluster-dim-x", "ttg.cluster-dim-y", "ttg.cluster-dim-z",
)  # fmt: skip
"""Integer attributes of modules and functions that count what a launch has."""


def verify_launch_counts(op: Operation) -> None:
    """Check that a launch, as far as the attributes of a module or function state it, has some of everything.

    Raises VerifyException for a number below 1.
    """
    for name in LAUNCH_COUNTS if op.attributes else ():
        if (number := module_integer(op, name)) is not None and number < 1:
            raise VerifyException(f"'{name}' must be at least 1, found {number}")


def num_ctas_of(op: Operation) -> int | None:
    """Thread blocks of a cluster that tensors span; None where nothing says so."""
    return module_integer(outermost(op), "ttg.num-ctas")


@lru_cache(maxsize=4096)
def _size_fault(type_: TensorType[Attribute]) -> str | None:
    """The error in the number of elements of a tensor, or None."""
    count = prod(type_.get_shape())
    if count > MAX_TENSOR_ELEMENTS:
        return f"a tensor may have at most {MAX_TENSOR_ELEMENTS} elements, {type_} has {count}"
    if count < 1 or count & (count - 1):
        return f"the number of elements of a tensor must be a power of two, {type_} has {count}"
    return None


@lru_cache(maxsize=4096)
def _layout_fault(type_: TensorType[Attribute], around: Holders) -> str | None:
    """The error in the layout of a tensor in code that `around` runs, or None."""
    encoding = bare(type_.encoding)
    if not isinstance(encoding, LayoutAttr):
        return None
    layout = encoding.data
    if not isinstance(layout, DistributedLayout):
        return f"the layout of {type_} is one of buffers, a tensor needs one of registers"
    rank = rank_of(layout)
    if rank is not None and rank != len(type_.get_shape()):
        return f"the layout of {type_} has {rank} dimensions, the tensor has {len(type_.get_shape())}"
    threads, warps, ctas = holders_of(layout)
    if around.warps is not None and warps not in (None, around.warps):
        return f"the layout of {type_} is for {warps} warps, but {around.warps} run this code"
    if around.warps is not None and threads not in (None, around.threads):
        return f"the layout of {type_} is for warps of {threads} threads, they have {around.threads} here"
    if around.ctas is not None and ctas not in (None, around.ctas):
        return f"the layout of {type_} is for {ctas} CTAs, 'ttg.num-ctas' is {around.ctas}"
    return None


class TensorsFit(OpTrait):
    """Tensors have a legal size, and their layouts and those of buffers fit the warps and CTAs that run the code."""

    def verify(self, op: Operation) -> None:
        """Check the operands and the results of `op`."""
        encoded: list[TensorType[Attribute]] = []
        buffers: list[ClusterType] = []
        for type_ in (*op.operand_types, *op.result_types):
            if (tensor := as_tensor(type_)) is not None:
                if (fault := _size_fault(tensor)) is not None:
                    raise VerifyException(fault)
                if not isinstance(tensor.encoding, NoneAttr):
                    encoded.append(tensor)
            elif isinstance(type_, ClusterType):
                buffers.append(type_)
        if not encoded and not buffers:
            return
        around = holders_around(op)
        for tensor in encoded:
            if (fault := _layout_fault(tensor, around)) is not None:
                raise VerifyException(fault)
        for buffer in buffers:
            if around.ctas is not None and (fault := buffer.fault_in_cluster(around.ctas)) is not None:
                raise VerifyException(fault)


def dialect_of(name: str, members: Mapping[str, object]) -> Dialect:
    """The dialect `name`: those of a package's `members` whose names are in it, operations and attributes."""
    classes = [each for _, each in sorted(members.items()) if isinstance(each, type)]
    own = [each for each in classes if str(getattr(each, "name", "")).startswith(f"{name}.")]
    # `issubclass` of an abstract base class asks all of its subclasses before it says no.
    operations = [each for each in own if Operation in each.__mro__]
    return Dialect(name, operations, [each for each in own if Attribute in each.__mro__])


class TritonOp(IRDLOperation):
    """Base of the operations: properties are in the attribute dictionary, tensors fit, effects are declared."""

    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(TensorsFit(), DeclaredEffects())


def _tensors(types: Iterable[Attribute]) -> list[TensorType[Attribute]]:
    return [tensor for type_ in types if (tensor := as_tensor(type_)) is not None]


@dataclass(frozen=True)
class SameShapeAndLayout(OpTrait):
    """All tensors among the operands and results have one shape and one layout (or no layout)."""

    def verify(self, op: Operation) -> None:
        """Compare every tensor with the first."""
        first, *others = _tensors((*op.operand_types, *op.result_types)) or [None]
        for other in others:
            assert first is not None and other is not None
            if other.get_shape() != first.get_shape():
                raise VerifyException(f"operands and results must have one shape, found {first} and {other}")
            if other.encoding != first.encoding:
                raise VerifyException(f"operands and results must have one layout, found {first} and {other}")


@dataclass(frozen=True)
class Elementwise(OpTrait):
    """Computes each element on its own: either everything is a tensor, of one shape and layout, or nothing is."""

    def verify(self, op: Operation) -> None:
        """Check that scalars and tensors do not mix."""
        types = (*op.operand_types, *op.result_types)
        if 0 < len(_tensors(types)) < len(types):
            raise VerifyException("scalars and tensors cannot be mixed")
        SameShapeAndLayout().verify(op)


@dataclass(frozen=True)
class EachElement(OpTrait):
    """Combines an element of a tensor with the same element of the others only."""


@dataclass(frozen=True)
class StaysInThreads(OpTrait):
    """Gives a thread elements that it has already, where source and result have layouts that fit each other."""


def stays_in_threads(op: Operation) -> bool:
    """True if no value changes hands between the threads that hold the tensors of `op`."""
    traits = (Elementwise, EachElement, StaysInThreads)
    return op.name.startswith(("arith.", "math.")) or any(op.has_trait(t, value_if_unregistered=False) for t in traits)


def is_elementwise(op: Operation) -> bool:
    """True if all tensors that `op` takes and gives have one layout: upstream's arith and math have no trait for it."""
    traits = (Elementwise, SameShapeAndLayout)
    return op.name.startswith(("arith.", "math.")) or any(op.has_trait(t, value_if_unregistered=False) for t in traits)


def verify_places(
    source: Attribute, result: Attribute, fault: Callable[[DistributedLayout, DistributedLayout], str | None]
) -> None:
    """Check the layouts of two tensors of which one follows from the other, where both are chosen.

    Raises VerifyException with what `fault` says about them, or when only one of them has a layout.
    """
    before, after = tensor_type(source).encoding, tensor_type(result).encoding
    if isinstance(before, NoneAttr) != isinstance(after, NoneAttr):
        raise VerifyException(f"both tensors need a layout, or neither: from {source} to {result}")
    if not isinstance(before, LayoutAttr) or not isinstance(after, LayoutAttr):
        return
    first, second = before.data, after.data
    if isinstance(first, DistributedLayout) and isinstance(second, DistributedLayout):
        try:
            found = fault(first, second)
        except ValueError as error:
            found = str(error)
        if found is not None:
            raise VerifyException(f"{found}: from {source} to {result}")


class FaultAt(VerifyException):
    """A fault that the verifier of an operation finds at `op` inside of it."""

    def __init__(self, op: Operation, message: str, other: Operation | None = None, about_other: str = "") -> None:
        super().__init__(message)
        self.op = op
        self.other = other
        """Another operation that has a part in it, for a note which says `about_other`."""
        self.about_other = about_other


Features: TypeAlias = tuple[Feature, ...]


@dataclass(frozen=True, init=False)
class Needs:
    """The requirements of every use of an operation, which declares them beside its name, with its display name.

        NEEDS: ClassVar = Needs("tlx.async_descriptor_load", Feature.TMA)

    Where operands or attributes make a difference, the class has a method `also_needs` that gives the features needed
    beyond those.
    """

    display_name: str
    """The call in a kernel that gives the operation."""
    features: Features
    """All of them are required."""

    def __init__(self, display_name: str, *features: Feature) -> None:
        object.__setattr__(self, "display_name", display_name)
        object.__setattr__(self, "features", features)


def needs_of(op: Operation) -> Features:
    """The features that `op` needs, all of them."""
    needs: Needs | None = getattr(op, "NEEDS", None)
    more: Callable[[], Features] | None = getattr(op, "also_needs", None)
    return (() if needs is None else needs.features) + (() if more is None else more())


def why_not_compiled(op: Operation) -> str | None:
    """Return why no GPU has an instruction for `op`, or upstream Triton none of its meaning; None for most.

    Such an operation can be read, as stock Triton's parser does, and has a method `why_not_compiled`.
    """
    why: Callable[[], str | None] | None = getattr(op, "why_not_compiled", None)
    return None if why is None else why()


def display_name(op: Operation) -> str:
    """The call in a kernel that gives `op`, such as `tlx.async_dot`; the name of the operation where there is none."""
    needs: Needs | None = getattr(op, "NEEDS", None)
    return op.name if needs is None else needs.display_name
