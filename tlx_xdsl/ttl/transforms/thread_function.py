"""A thread as a function: what its arguments are in the driver, and values that it computes once, at its beginning."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, UnrealizedConversionCastOp, i32
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import OpT, ops_of

from ..dialects.ttkernel.base import TTKernelOp
from ..dialects.ttkernel.noc import MyLogicalXOp, MyLogicalYOp, MyXOp, MyYOp
from ..dialects.ttkernel.types import CBType
from ..dialects.ttl.kernel import KernelDriverOp, LaunchThreadOp
from ..dialects.ttl.types import CBType as TTLCBType
from .emitter import Constants, Emitter


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
        to = cb_type(buffer.type)
        return self.hoisted(
            ("cb", buffer), user, lambda emit: emit.result(UnrealizedConversionCastOp.get([buffer], [to]))
        )

    def virtual(self, user: Operation) -> tuple[SSAValue, SSAValue]:
        """The core's coordinates on the network on chip."""
        return self._coordinate(MyXOp, user), self._coordinate(MyYOp, user)

    def logical(self, user: Operation) -> tuple[SSAValue, SSAValue]:
        """The core's coordinates in the grid."""
        return self._coordinate(MyLogicalXOp, user), self._coordinate(MyLogicalYOp, user)

    def _coordinate(self, class_: type[TTKernelOp], user: Operation) -> SSAValue:
        return self.hoisted(class_, user, lambda emit: emit.result(class_(result_types=[i32])))


class _Prologue(Emitter):
    """Emits at the beginning of a function, after what was emitted there before."""

    def add_op(self, op: OpT) -> OpT:
        """Insert an operation."""
        return self.constants.insert_after(op, self.location)


def thread_functions(module: ModuleOp) -> Iterator[ThreadFunction]:
    """The functions that the drivers of a module launch, in this order."""
    functions = {each.sym_name.data: each for each in ops_of(module, func.FuncOp)}
    for driver in ops_of(module, KernelDriverOp):
        for launch in ops_of(driver, LaunchThreadOp):
            name = launch.callee.root_reference.data
            if name not in functions:
                raise error_at(launch, f"there is no function '@{name}' to launch as a thread")
            yield ThreadFunction(driver, launch, functions[name])
