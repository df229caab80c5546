"""The state of the conversion of one thread's function: which value of `emitc` stands for which value."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, IntegerType, Signedness, StringAttr, i32
from xdsl.dialects.emitc import EmitC_CallOpaqueOp, EmitC_OpaqueAttr, EmitC_OpaqueType, EmitC_PtrDiffT, EmitC_SizeT
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import OpT
from tlx_xdsl.ttl.cpp.profiles import CppProfile
from tlx_xdsl.ttl.dialects.emitc.expressions import CastOp, ConstantOp
from tlx_xdsl.ttl.dialects.ttcore import register_bytes
from tlx_xdsl.ttl.dialects.ttkernel import (
    CBType,
    GetCompileTimeArgValOp,
    PackTileBlockOp,
    PackTileOp,
    TensorAccessorArgsOp,
    ThreadKind,
)
from tlx_xdsl.ttl.dialects.ttkernel.base import THREAD, ThreadAttr
from tlx_xdsl.ttl.dialects.ttl.kernel import KernelDriverOp

from ..thread_function import circular_buffers

SIZE = EmitC_SizeT()
SIGNED_SIZE = EmitC_PtrDiffT()
ADDRESS = IntegerType(32, Signedness.UNSIGNED)
"""Addresses and what else the API has as `uint32_t`."""
PACKS = (PackTileOp, PackTileBlockOp)
"""What writes registers to a circular buffer."""


class Conversion:
    """Makes `emitc` of the operations of one function, in the order of the program."""

    def __init__(self, function: FuncOp, profile: CppProfile, driver: KernelDriverOp | None) -> None:
        self.function = function
        self.profile = profile
        buffers = [] if driver is None else circular_buffers(driver)
        self.buffer_count = len(buffers)
        """The circular buffers of the kernel; 0 where no driver says how many there are."""
        self._buffer_names = {op.cb_index.value.data: op.result.name_hint for op in buffers}
        self._tensors = () if driver is None else driver.args
        kind = function.attributes[THREAD]
        assert isinstance(kind, ThreadAttr)
        self.is_compute = kind.data is ThreadKind.COMPUTE
        self.block = Block()
        self.callees: set[str] = set()
        self.broadcast: tuple[Block, SSAValue, str] | None = None
        """The broadcast that the unpacker is set up for: where, of which buffer, and in which direction."""
        self.reduced: SSAValue | None = None
        """The buffer that the last reduction reads."""
        used = {value for op in function.walk() for value in op.operands if isinstance(value.type, CBType)}
        formats = {data_type(value) for value in used}
        self.mixes_formats = len(formats) > 1
        """Whether circular buffers differ in their data formats, so that the units must be set again."""
        self.has_wide_registers = any(register_bytes(each) > 2 for each in formats) or (
            driver is not None and driver.fp32_dest_acc_en
        )
        packed = {data_type(op.cb) for op in function.walk() if isinstance(op, PACKS)}
        self.packs_formats = len(packed) > 1
        """Whether the buffers that are packed to do."""
        self.network: SSAValue | None = None
        """The object of the network, where the profile has objects."""
        self.objects: dict[SSAValue, SSAValue] = {}
        """The objects of circular buffers that have numbers, too."""
        self._values: dict[SSAValue, SSAValue] = {}
        self._origin: Operation = function

    def buffer_name(self, op: GetCompileTimeArgValOp) -> str:
        """The name of a circular buffer in the program, else one with its number."""
        number = op.index.value.data
        return op.result.name_hint or self._buffer_names.get(number) or f"cb{number}"

    def tensor_name(self, args: TensorAccessorArgsOp) -> str | None:
        """The name of the tensor with these arguments."""
        number = args.cta.value.data - self.buffer_count
        return self._tensors[number].name_hint if number < len(self._tensors) else None

    def at(self, op: Operation) -> None:
        """Take `op` as the origin of what is emitted from now on."""
        self._origin = op

    def set(self, old: SSAValue, new: SSAValue) -> None:
        """Let `new` stand for `old`, with its name."""
        if new.name_hint is None and old.name_hint is not None:
            new.name_hint = old.name_hint
        self._values[old] = new

    def has(self, old: SSAValue) -> bool:
        """Return whether something stands for a value."""
        return old in self._values

    def value(self, old: SSAValue) -> SSAValue:
        """Return what stands for a value."""
        if old not in self._values:
            raise error_at(old, "expected a value of the thread's function: run ttl-lower-synchronization first")
        return self._values[old]

    def emit(self, op: OpT) -> OpT:
        """Append an operation, located where the one comes from that is converted."""
        op.location = self._origin.location
        self.block.add_op(op)
        return op

    def number(self, number: int, type_: Attribute = SIZE) -> SSAValue:
        """A constant."""
        # The result's type need not be one that a number can have in MLIR.
        value: Attribute = IntegerAttr(number, i32) if type_ == i32 else IntegerAttr.from_index_int_value(number)
        return self.emit(ConstantOp(value, type_)).result

    def cast(self, value: SSAValue, type_: Attribute) -> SSAValue:
        """The value in another type."""
        return value if value.type == type_ else self.emit(CastOp(value, type_)).result

    def call(
        self,
        callee: str,
        operands: Sequence[SSAValue] = (),
        result: Attribute | None = None,
        *,
        template: Sequence[str] = (),
        arguments: Sequence[Attribute] | None = None,
    ) -> SSAValue | None:
        """Call a function of the API. `arguments` are those that are no operands, and indices of operands."""
        self.callees.add(callee)
        op = EmitC_CallOpaqueOp(
            callee,
            operands,
            [] if result is None else [result],
            args=None if arguments is None else ArrayAttr(arguments),
            template_args=ArrayAttr([EmitC_OpaqueAttr(StringAttr(each)) for each in template]) if template else None,
        )
        self.emit(op)
        return op.results[0] if op.results else None

    def result(
        self,
        callee: str,
        operands: Sequence[SSAValue],
        result: Attribute,
        *,
        template: Sequence[str] = (),
        arguments: Sequence[Attribute] | None = None,
    ) -> SSAValue:
        """Call a function that gives something."""
        value = self.call(callee, operands, result, template=template, arguments=arguments)
        assert value is not None
        return value


def opaque(text: str) -> EmitC_OpaqueType:
    """A type that is written as it is."""
    return EmitC_OpaqueType(StringAttr(text))


def opaque_value(text: str) -> EmitC_OpaqueAttr:
    """An argument that is written as it is."""
    return EmitC_OpaqueAttr(StringAttr(text))


def data_type(buffer: SSAValue) -> Attribute:
    """The type of the numbers in a circular buffer."""
    assert isinstance(buffer.type, CBType)
    return buffer.type.data_type
