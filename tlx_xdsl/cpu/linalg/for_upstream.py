"""`linalg-for-upstream`: linalg that MLIR's own passes lower without a runtime library, and that says what it knows.

MLIR's passes make a call of `memrefCopy` of a copy between views, of `__truncsfbf2` and its like of a conversion to a
short float, and have no lowering of most conversions of 8-bit floats. The first becomes `linalg.copy`, the others
integer arithmetic, with the bits that machine code of `--target cpu` gives (`codegen/conversions.py`).

An array that nothing writes through an argument is `llvm.readonly`. That two arrays do not overlap no kernel says:
Triton's may be the same. Who knows it of the launches says `distinct`, and all are `llvm.noalias`. Upstream puts
attributes of an unranked memref on the address of its descriptor, in the interface for C alone. Both of these hold
there, since descriptors are only read; `llvm.writeonly`, and `llvm.align` for `tt.divisibility`, would not.

Before:
```mlir
func.func @kernel(%x: memref<*xf32>, ...
memref.copy %view, %tile : memref<?xf32, strided<[1]>> to memref<?xf32, strided<[1]>>
%1 = arith.truncf %0 : f64 to bf16
```
After:
```mlir
func.func @kernel(%x: memref<*xf32> {llvm.readonly}, ...
linalg.copy ins(%view : memref<?xf32, strided<[1]>>) outs(%tile : memref<?xf32, strided<[1]>>)
%2 = arith.truncf %0 : f64 to f32
...
%1 = arith.bitcast %9 : i16 to bf16
```
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects import arith as upstream, func, math
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DictionaryAttr,
    Float16Type,
    IntegerType,
    MemRefType,
    ModuleOp,
    NoneAttr,
    UnitAttr,
    f16,
    f32,
    f64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.dialects import arith, linalg, memref
from tlx_xdsl.dialects.base import scalar_type
from tlx_xdsl.dialects.base.tensors import element_bits
from tlx_xdsl.dialects.func import program_arguments
from tlx_xdsl.dialects.memref import is_memref
from tlx_xdsl.transforms.rewriting import Pass, constant, forward, ops_of, replace

from ..codegen import conversions
from ..codegen.builder import F32, F64, Builder, Externals, Value, register_type
from ..codegen.forwarding import is_only_read
from ..codegen.host import Features
from .tensors.emitter import Emitter

_FEATURES = Features(hardware_half=True, vector_bytes=16, registers=32)
"""LLVM lowers conversions between f16 and f32 everywhere: by instructions, or itself."""


@dataclass(frozen=True)
class ForUpstreamPass(Pass):
    """Expand copies between views and conversions of short floats, and mark the arguments of kernels."""

    name = "linalg-for-upstream"

    saturating: bool = False
    """A float out of an integer's range becomes the nearest integer, as on GPUs; to MLIR the result is undefined."""
    distinct: bool = False
    """No two arrays of a launch overlap, which is a promise of whoever launches."""

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for each in ops_of(op, linalg.MatmulOp, linalg.BatchMatmulOp):
            _widen_operands(each)
        for each in list(op.walk()):
            match each:
                case memref.CopyOp():
                    _copy(each)
                case arith.CastOp() if isinstance(each.result.type, AnyFloat):
                    if _needs_runtime(each):
                        _convert(each)
                case arith.CastOp() if isinstance(each.input.type, AnyFloat):
                    if self.saturating or element_bits(each.input.type) == 8:
                        _convert(each)
                case func.FuncOp() if program_arguments(each):
                    each.arg_attrs = ArrayAttr(map(self._marks, each.body.blocks[0].args))
                case _:
                    pass

    def _marks(self, argument: SSAValue) -> DictionaryAttr:
        holds = {"llvm.noalias": self.distinct and is_memref(argument.type), "llvm.readonly": is_only_read(argument)}
        return DictionaryAttr({name: UnitAttr() for name, is_so in holds.items() if is_so})


def _widen_operands(op: linalg.MatmulOp | linalg.BatchMatmulOp) -> None:
    """Let a product take f32 where its own body would convert 8-bit floats."""
    emit = Emitter.before(op)
    inputs = [
        emit.mapped([each], f32, lambda inner, values: inner.result(arith.ExtFOp(values[0], f32)))
        if _float_bits(scalar_type(each.type)) == 8
        else each
        for each in op.inputs
    ]
    if inputs != [*op.inputs]:
        replace(op, type(op)(inputs, [*op.outputs]))


def _copy(op: memref.CopyOp) -> None:
    views = [cast(MemRefType[Attribute], each.type) for each in op.operands]
    if all(isinstance(each.layout, NoneAttr) for each in views):
        return
    replace(op, linalg.CopyOp(op.operands[:1], op.operands[1:], res=()))


def _needs_runtime(op: Operation) -> bool:
    """True for all conversions of 8-bit floats, and for those to 16 bits that need more than one instruction."""
    source, result = op.operands[0].type, op.results[0].type
    if 8 in (_float_bits(source), _float_bits(result)):
        return True
    if isinstance(op, arith.ExtFOp) or _float_bits(result) != 16:
        return False
    return not (isinstance(result, Float16Type) and source == f32)


def _float_bits(type_: Attribute) -> int:
    return element_bits(type_) if isinstance(type_, AnyFloat) else 0


def _convert(op: Operation) -> None:
    source, result = op.operands[0], op.results[0].type
    b = _Instructions(op)
    value = b.given(source)
    if isinstance(op, arith.FPToSIOp | arith.FPToUIOp):
        wide = conversions.widen(b, value, source.type, _FEATURES)
        made = conversions.to_integer(b, wide, register_type(result), signed=isinstance(op, arith.FPToSIOp))
    elif isinstance(op, arith.SIToFPOp | arith.UIToFPOp):
        signed = isinstance(op, arith.SIToFPOp)
        made = conversions.from_integer(b, value, result, _FEATURES, signed=signed)
    else:
        made = conversions.narrow(b, conversions.widen(b, value, source.type, _FEATURES), result, _FEATURES)
    forward(op, b.taken(made, result))


_BINARY = {
    "add": upstream.AddiOp,
    "sub": upstream.SubiOp,
    "and": upstream.AndIOp,
    "or": upstream.OrIOp,
    "shl": upstream.ShLIOp,
    "lshr": upstream.ShRUIOp,
    "ashr": upstream.ShRSIOp,
    "fadd": upstream.AddfOp,
    "fsub": upstream.SubfOp,
    "fmul": upstream.MulfOp,
}
_CASTS = {
    "bitcast": upstream.BitcastOp,
    "sext": arith.ExtSIOp,
    "zext": arith.ExtUIOp,
    "trunc": arith.TruncIOp,
    "fpext": arith.ExtFOp,
    "fptrunc": arith.TruncFOp,
    "sitofp": arith.SIToFPOp,
    "uitofp": arith.UIToFPOp,
    "fptosi": arith.FPToSIOp,
    "fptoui": arith.FPToUIOp,
}
_FLOATS: dict[str, Attribute] = {"half": f16, F32: f32, F64: f64}


class _Instructions(Builder):
    """A builder of scalars whose instructions are operations of `arith` before another one."""

    def __init__(self, anchor: Operation):
        super().__init__(Externals())
        self._insert = Emitter.before(anchor).result
        self._values: dict[str, SSAValue] = {}

    def given(self, value: SSAValue) -> Value:
        """A scalar as the builder's registers hold it: a short float as its bits."""
        register = register_type(value.type)
        if _type(register) != value.type:
            value = self._insert(upstream.BitcastOp(value, _type(register)))
        return self._named(value, register)

    def taken(self, value: Value, type_: Attribute) -> SSAValue:
        """Return the scalar of a type that a register holds."""
        held = self._value(value)
        return held if held.type == type_ else self._insert(upstream.BitcastOp(held, type_))

    def binary(self, opcode: str, first: Value, second: Value) -> Value:
        """An operation on two numbers."""
        return self._named(self._insert(_BINARY[opcode](self._value(first), self._value(second))), first.element)

    def compare(self, predicate: str, first: Value, second: Value) -> Value:
        """A comparison."""
        kind, _, name = predicate.partition(" ")
        made = (arith.CmpiOp if kind == "icmp" else arith.CmpfOp)(name, self._value(first), self._value(second))
        return self._named(self._insert(made), "i1")

    def select(self, condition: Value, first: Value, second: Value) -> Value:
        """Choose between two numbers."""
        made = arith.SelectOp(*map(self._value, (condition, first, second)))
        return self._named(self._insert(made), first.element)

    def cast(self, opcode: str, value: Value, element: str) -> Value:
        """A conversion."""
        made: Any = _CASTS[opcode]
        return self._named(self._insert(made(self._value(value), _type(element))), element)

    def intrinsic(self, name: str, *values: Value) -> Value:
        """The absolute value, the one intrinsic of conversions."""
        assert name == "llvm.fabs", name
        return self._named(self._insert(math.AbsFOp(self._value(values[0]))), values[0].element)

    def _named(self, value: SSAValue, element: str) -> Value:
        name = f"%{self.name()}"
        self._values[name] = value
        return Value(name, element)

    def _value(self, value: Value) -> SSAValue:
        if value.text not in self._values:
            return self._insert(constant(_number(value.text), _type(value.element)))
        return self._values[value.text]


def _type(element: str) -> Attribute:
    return _FLOATS.get(element) or IntegerType(int(element[1:]))


def _number(text: str) -> float:
    """A constant's text in LLVM IR as a number."""
    if text.startswith("0x"):
        return struct.unpack(">d", bytes.fromhex(text[2:]))[0]
    return text == "true" if text in ("true", "false") else int(text)
