"""A thread as a function: what its arguments are in the driver, and values that it computes once, at its beginning."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    MemRefType,
    ModuleOp,
    TensorType,
    UnknownLoc,
    UnrealizedConversionCastOp,
    i32,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import OpT, constant, constant_integer, forward, ops_of

from ..dialects.ttcore import TileType, element_bytes
from ..dialects.ttkernel import noc
from ..dialects.ttkernel.base import CBType, TensorAccessorArgsType, TensorAccessorType, TTKernelOp, noc_of
from ..dialects.ttl.base import block_shape
from ..dialects.ttl.buffers import BindCBOp
from ..dialects.ttl.kernel import KernelDriverOp, LaunchThreadOp, TensorAccessorOp as TTLTensorAccessorOp
from ..dialects.ttl.types import (
    CBType as TTLCBType,
    LayoutKind,
    TensorAccessorType as TTLTensorAccessorType,
    encoding_of,
)

# Emits integer arithmetic, with the constants of a function at its beginning.
#
# A number is a Python integer as long as it is known, so that `row * 1 + 0` emits nothing.

Number = SSAValue | int
"""An integer, as a Python one if it is known."""
Scalar = IndexType | IntegerType
INDEX = IndexType()


def known(number: Number) -> Number:
    """A number as a Python integer, if it is a constant."""
    if isinstance(number, int):
        return number
    found = constant_integer(number)
    return number if found is None else found


class Constants:
    """The integer constants of a thread function: each once, at the beginning of its body."""

    def __init__(self, block: Block):
        self._block = block
        self._last: Operation | None = None
        self._known: dict[tuple[int, Scalar], SSAValue] = {}
        for op in [*block.ops]:
            if isinstance(op, arith.ConstantOp) and (number := constant_integer(op.result)) is not None:
                self._keep(op, number)

    def _keep(self, op: arith.ConstantOp, number: int) -> None:
        """Move a constant of an earlier pass to the beginning, or let its users take the one that is there."""
        key = number, cast(Scalar, op.result.type)
        if key in self._known:
            forward(op, self._known[key])
            return
        op.detach()
        self._known[key] = self.insert_after(op, op.location).result

    def get(self, number: int, type_: Scalar, location: LocationAttr) -> SSAValue:
        """The constant; a new one is located where it is needed first."""
        if (number, type_) not in self._known:
            self._known[number, type_] = self.insert_after(constant(number, type_), location).result
        return self._known[number, type_]

    def insert_after(self, op: OpT, location: LocationAttr) -> OpT:
        """Insert an operation that every place of the function shall see, after the constants and others like it."""
        op.location = location
        at = InsertPoint.at_start(self._block) if self._last is None else InsertPoint.after(self._last)
        Rewriter.insert_op(op, at)
        self._last = op
        return op


class Emitter:
    """Emits operations at one place, located there."""

    def __init__(self, constants: Constants, anchor: Operation, point: InsertPoint | None = None):
        self.constants = constants
        self.location: LocationAttr = anchor.location
        self.point = InsertPoint.before(anchor) if point is None else point

    def add_op(self, op: OpT) -> OpT:
        """Insert an operation; it and what is inside of it get the location, unless they have one."""
        for inner in op.walk():
            if isinstance(inner.location, UnknownLoc):
                inner.location = self.location
        Rewriter.insert_op(op, self.point)
        return op

    def result(self, op: Operation) -> SSAValue:
        """Insert an operation with one result."""
        return self.add_op(op).results[0]

    def value(self, number: Number, type_: Scalar) -> SSAValue:
        """A number as a value of this type."""
        if isinstance(number, int):
            return self.constants.get(number, type_, self.location)
        if number.type == type_:
            return number
        assert isinstance(number.type, IndexType) or isinstance(type_, IndexType)
        return self.result(arith.IndexCastOp(number, type_))

    def index(self, number: Number) -> SSAValue:
        """A number as an index."""
        return self.value(number, INDEX)

    def i32(self, number: Number) -> SSAValue:
        """A number as an i32."""
        return self.value(number, i32)

    def add(self, left: Number, right: Number, type_: Scalar = INDEX) -> Number:
        """The sum."""
        left, right = known(left), known(right)
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if left == 0 or right == 0:
            return right if left == 0 else left
        return self.result(arith.AddiOp(self.value(left, type_), self.value(right, type_)))

    def sub(self, left: Number, right: Number, type_: Scalar = INDEX) -> Number:
        """The difference."""
        left, right = known(left), known(right)
        if isinstance(left, int) and isinstance(right, int):
            return left - right
        if right == 0 or left is right:
            return left if right == 0 else 0
        return self.result(arith.SubiOp(self.value(left, type_), self.value(right, type_)))

    def mul(self, left: Number, right: Number, type_: Scalar = INDEX) -> Number:
        """The product."""
        left, right = known(left), known(right)
        if isinstance(left, int) and isinstance(right, int):
            return left * right
        if left == 0 or right == 0:
            return 0
        if left == 1 or right == 1:
            return right if left == 1 else left
        return self.result(arith.MuliOp(self.value(left, type_), self.value(right, type_)))

    def div(self, left: Number, right: int, type_: Scalar = INDEX) -> Number:
        """The quotient of a number that is not negative and a positive one."""
        left = known(left)
        if isinstance(left, int):
            return left // right
        return left if right == 1 else self.result(arith.DivSIOp(left, self.value(right, type_)))

    def mod(self, left: Number, right: int, type_: Scalar = INDEX) -> Number:
        """The remainder of a number that is not negative by a positive one."""
        left = known(left)
        if isinstance(left, int):
            return left % right
        return 0 if right == 1 else self.result(arith.RemSIOp(left, self.value(right, type_)))

    def compare(self, predicate: str, left: Number, right: Number, type_: Scalar = INDEX) -> SSAValue:
        """Return whether `left` is `predicate` (`eq`, `sge`, ...) `right`."""
        return self.result(arith.CmpiOp(self.value(left, type_), self.value(right, type_), predicate))

    def true(self) -> SSAValue:
        """The condition that holds."""
        return self.constants.get(1, IntegerType(1), self.location)

    def all_of(self, conditions: Sequence[SSAValue]) -> SSAValue:
        """Return whether all of these hold."""
        if not conditions:
            return self.true()
        found, *rest = conditions
        for condition in rest:
            found = self.result(arith.AndIOp(found, condition))
        return found

    def loop(self, count: int) -> tuple[SSAValue, Emitter]:
        """A loop over 0 to `count - 1`: its index, and what emits in its body."""
        end = scf.YieldOp()
        body = Block([end], arg_types=[INDEX])
        body.args[0].location = self.location
        self.add_op(scf.ForOp(self.index(0), self.index(count), self.index(1), [], Region(body)))
        return body.args[0], Emitter(self.constants, end)


def integer(number: int, type_: Scalar = i32) -> IntegerAttr[Scalar]:
    """An integer attribute."""
    return IntegerAttr(number, type_)


def cb_type(type_: Attribute) -> CBType:
    """The type that a circular buffer of `ttl` has in TT-Metalium: it counts pages."""
    assert isinstance(type_, TTLCBType)
    return CBType.get(type_.num_pages, type_.element_type)


@dataclass(eq=False)
class ThreadFunction:
    """A function that a driver launches as a thread of each core."""

    driver: KernelDriverOp
    launch: LaunchThreadOp
    function: func.FuncOp
    constants: Constants = field(init=False)
    _hoisted: dict[Hashable, SSAValue] = field(default_factory=dict[Hashable, SSAValue])

    def __post_init__(self) -> None:
        self.constants = Constants(self.function.body.block)

    def origin(self, value: SSAValue) -> SSAValue:
        """The driver's value that an argument of the function is; any other value itself."""
        if isinstance(value, BlockArgument) and value.block is self.function.body.block:
            return self.launch.arguments[value.index]
        return value

    def emitter(self, op: Operation) -> Emitter:
        """Emits before an operation."""
        return Emitter(self.constants, op)

    def hoisted(self, key: Hashable, user: Operation, make: Callable[[Emitter], SSAValue]) -> SSAValue:
        """A value that is computed once, at the beginning of the function; located where it is needed first."""
        if key not in self._hoisted:
            self._hoisted[key] = make(_Prologue(self.constants, user))
        return self._hoisted[key]

    def cb(self, buffer: SSAValue, user: Operation) -> SSAValue:
        """A circular buffer as TT-Metalium has it."""
        return self.hoisted(
            ("cb", buffer),
            user,
            lambda emit: emit.result(UnrealizedConversionCastOp.get([buffer], [cb_type(buffer.type)])),
        )

    @property
    def noc(self) -> int:
        """The number of the network on chip of the thread's processor."""
        return noc_of(self.function)

    def virtual(self, user: Operation) -> tuple[SSAValue, SSAValue]:
        """The core's coordinates on the network on chip."""
        return self._coordinate(noc.MyXOp, user), self._coordinate(noc.MyYOp, user)

    def logical(self, user: Operation) -> tuple[SSAValue, SSAValue]:
        """The core's coordinates in the grid."""
        return self._coordinate(noc.MyLogicalXOp, user), self._coordinate(noc.MyLogicalYOp, user)

    def _coordinate(self, class_: type[TTKernelOp], user: Operation) -> SSAValue:
        return self.hoisted(class_, user, lambda emit: emit.result(class_(result_types=[i32])))


class _Prologue(Emitter):
    """Emits at the beginning of a function, after what was emitted there before."""

    def add_op(self, op: OpT) -> OpT:
        """Insert an operation."""
        return self.constants.insert_after(op, self.location)


def thread_functions(module: ModuleOp) -> Iterator[ThreadFunction]:
    """The functions that the drivers of a module launch, in this order."""
    functions = {each.sym_name.data: each for each in module.ops if isinstance(each, func.FuncOp)}
    for driver in [each for each in module.ops if isinstance(each, KernelDriverOp)]:
        for launch in ops_of(driver, LaunchThreadOp):
            name = launch.callee.root_reference.data
            if name not in functions:
                raise error_at(launch, f"there is no function '@{name}' to launch as a thread")
            yield ThreadFunction(driver, launch, functions[name])


# The accessors of a kernel's tensors in its threads, and the layout of the arguments that they read.
#
# Arguments at compile time, the same for all threads that move data: the numbers of all circular buffers, then a word
# for each tensor of the kernel that describes its layout (`TensorAccessorArgs`). Arguments at run time that all cores
# have in common, of one thread: the addresses of the tensors that it has accessors of, in the order of its arguments.


def tensor_of(thread: ThreadFunction, accessor: SSAValue) -> int:
    """The number of the tensor that an accessor is of, among the kernel's."""
    origin = thread.origin(accessor).owner
    if not isinstance(origin, TTLTensorAccessorOp) or origin.tensor not in thread.driver.args:
        raise error_at(accessor, "expected the accessor of a tensor of the kernel: make it outside of the threads")
    return list(thread.driver.args).index(origin.tensor)


def common_arguments(thread: ThreadFunction) -> dict[int, SSAValue]:
    """The numbers of the tensors whose addresses the thread takes, in order, with their accessors in the driver."""
    found: dict[int, SSAValue] = {}
    for argument in thread.function.body.block.args:
        if isinstance(argument.type, TTLTensorAccessorType):
            found.setdefault(tensor_of(thread, argument), thread.origin(argument))
    return found


def circular_buffers(driver: KernelDriverOp) -> list[BindCBOp]:
    """The circular buffers of a kernel by their numbers."""
    return sorted(ops_of(driver, BindCBOp), key=lambda op: op.cb_index.value.data)


def element_of(type_: Attribute) -> Attribute:
    """The type of the elements of a tensor."""
    assert isinstance(type_, TensorType | MemRefType)
    return cast(Attribute, type_.element_type)  # pyright: ignore[reportUnknownMemberType]


def page_of(type_: Attribute) -> tuple[Attribute, int]:
    """Return what a page of a tensor consists of, a tile or elements, and its bytes.

    Raises VerifyException for a type that does not say where the tensor is.
    """
    element = element_of(type_)
    if encoding_of(type_).layout.kind is LayoutKind.INTERLEAVED:
        return element, block_shape(type_)[-1] * element_bytes(element)
    tile = TileType.get(element)
    return tile, tile.bytes


def lower_accessor(thread: ThreadFunction, accessor: SSAValue, user: Operation) -> SSAValue:
    """The accessor as TT-Metalium has it, made at the beginning of the function."""
    tensor = tensor_of(thread, accessor)
    type_ = thread.driver.args[tensor].type
    try:
        element, page_bytes = page_of(type_)
    except VerifyException as error:
        raise error_at(user, str(error)) from error
    crta = integer([*common_arguments(thread)].index(tensor))
    cta = integer(len(circular_buffers(thread.driver)) + tensor)

    def make(emit: Emitter) -> SSAValue:
        args = noc.TensorAccessorArgsOp(properties={"cta": cta, "crta": crta}, result_types=[TensorAccessorArgsType()])
        base = noc.GetCommonArgValOp(properties={"index": crta}, result_types=[i32])
        return emit.result(
            noc.TensorAccessorOp(
                operands=[emit.result(args), emit.result(base), emit.i32(page_bytes)],
                properties={
                    "layout": encoding_of(type_).layout,
                    "shape": ArrayAttr([integer(size) for size in block_shape(type_)]),
                    "element": element,
                },
                result_types=[TensorAccessorType()],
            )
        )

    return thread.hoisted(("accessor", tensor), user, make)
