"""`linalg-lower-accesses`: loads and stores through pointers become accesses to boxes of memory.

The pointer analysis gives each access a base and offsets that are linear in the position, as far as they are, and the
mask analysis the positions that its mask leaves (`analysis/structure/`). What is linear becomes one view with strides;
along other dimensions rows or single elements are visited. Elements that the mask leaves out are never touched;
a load, or an atomic operation, gives 0 for them if it does not say what else.

Before:
```mlir
%p = tt.addptr %bases, %offsets : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
%v = tt.load %p, %mask, %zeros : tensor<128x!tt.ptr<f32>>
```
After, where `%offsets` are `%start` and the position, and `%mask` is true below `%n`:
```mlir
%alloc = memref.alloc() : memref<128xf32>
linalg.fill ins(%zero : f32) outs(%alloc : memref<128xf32>)
%box = memref.reinterpret_cast %x to offset: [%start], sizes: [128], strides: [1]
    : memref<*xf32> to memref<128xf32, strided<[1], offset: ?>>
%from = memref.subview %box[0] [%n] [1] : ...
%to = memref.subview %alloc[0] [%n] [1] : ...
memref.copy %from, %to : memref<?xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1]>>
%v = bufferization.to_tensor %alloc restrict writable : memref<128xf32> to tensor<128xf32>
```

What the analysis takes for granted:

- **Offsets of 32 bits do not wrap around inside of one access.** Else its elements would lie 2^32 elements apart, so
  that some would lie 2^31 before the base. `check-addresses` asserts it.
- **What a mask compares does not wrap around inside of its tensor**: this is proved, or asserted before the access.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatchmethod

from xdsl.context import Context
from xdsl.dialects import affine, cf, func, scf
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    DenseIntOrFPElementsAttr,
    Float32Type,
    Float64Type,
    IntegerType,
    ModuleOp,
    UnrankedMemRefType,
    UnrealizedConversionCastOp,
    f32,
    i1,
    i8,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import SymbolTable
from xdsl.transforms.dead_code_elimination import region_dce

from tlx_xdsl.analysis.integers.transfer import shape_of
from tlx_xdsl.analysis.structure.analysis import Structure
from tlx_xdsl.analysis.structure.digits import DigitDomain
from tlx_xdsl.analysis.structure.domain import widened
from tlx_xdsl.analysis.structure.values import ZERO, Linear, Mask, full
from tlx_xdsl.dialects import arith, bufferization, linalg, memref, tt
from tlx_xdsl.dialects.base import as_tensor, scalar_type
from tlx_xdsl.dialects.base.tensors import splat_number
from tlx_xdsl.text.diagnostics import report_remark, source_location
from tlx_xdsl.transforms.rewriting import constant, insert_after_definition, insert_before, ops_of

from .access_plan import AccessPlan, Box, Claims, Grade, boxes
from .atomics import compare_and_swap, read_modify_write
from .emitter import INDEX, Emitter, Index, refuse
from .scalars import Scalars


@dataclass(frozen=True)
class LowerAccessesPass(ModulePass):
    """Lower all accesses of a module through pointers that `linalg-split-pointers` has split."""

    name = "linalg-lower-accesses"

    check_addresses: bool = False
    """Assert that offsets do not wrap around inside of an access."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError for an access that has no lowering.
        """
        for function in ops_of(op, tt.FuncOp):
            _Accesses(function, check_addresses=self.check_addresses).run()


@dataclass(frozen=True)
class Address:
    """The base of an access, and its offsets."""

    base: SSAValue
    offset: SSAValue | None


def address_of(pointer: SSAValue) -> Address:
    """The base and the offsets of a pointer, in the form that `linalg-split-pointers` gives it."""
    offset: SSAValue | None = None
    if isinstance(pointer.owner, tt.AddPtrOp):
        pointer, offset = pointer.owner.ptr, pointer.owner.offset
    if as_tensor(pointer.type) is not None and isinstance(pointer.owner, tt.SplatOp):
        pointer = pointer.owner.src
    return Address(pointer, offset)


def plan_of(structure: Structure, op: Operation, pointer: SSAValue, mask: SSAValue | None) -> AccessPlan:
    """The structure of an access."""
    shape = shape_of(pointer)
    address = address_of(pointer)
    if address.offset is None:
        offset = Linear(shape, 64, ZERO, (ZERO,) * len(shape))
    else:
        state = structure.of(address.offset)
        assert isinstance(state, Linear), "offsets are numbers"
        offset = widened(state, 64, signed=True)
    found = full(shape) if mask is None else structure.of(mask)
    assert isinstance(found, Mask), "masks are bits"
    if found.shape != shape:
        found = found.rearranged(shape, (None,) * len(shape))
    return AccessPlan(shape, offset, found)


class _Accesses:
    """Lowers the accesses of a function."""

    def __init__(self, function: tt.FuncOp, *, check_addresses: bool):
        self.function = function
        self.check_addresses = check_addresses
        self.structure = Structure(function, DigitDomain())
        self.scalars = Scalars(function, INDEX)
        self.claims = Claims()
        self.memories: dict[SSAValue, SSAValue] = {}
        self.lowered: list[tuple[Operation, SSAValue | None]] = []

    def run(self) -> None:
        """Rewrite the function."""
        for op in list(self.function.walk()):
            self._lower(op)
        # States hold values as they were: what was loaded is replaced when all is emitted.
        for op, result in self.lowered:
            if result is not None:
                op.results[0].replace_all_uses_with(result)
            Rewriter.erase_op(op)
        region_dce(self.function.body)

    @singledispatchmethod
    def _lower(self, op: Operation) -> None:
        """Other operations stay."""

    # Loads and stores ------------------------------------------------------------------------------------------------

    @_lower.register
    def _(self, op: tt.LoadOp) -> None:
        plan, emit = self._planned(op, op.ptr, op.mask)
        memory = self._memory(op, op.ptr)
        if as_tensor(op.result.type) is None:
            result = self._load_scalar(op, plan, emit, memory)
        else:
            result = self._load(op, plan, emit, memory)
        self._finish(op, result)

    def _load(self, op: tt.LoadOp, plan: AccessPlan, emit: Emitter, memory: SSAValue) -> SSAValue:
        element = _element_type(memory)
        buffer = emit.buffer(plan.shape, element)
        if not plan.is_full:
            self._initialise(emit, buffer, op.other)
        # An empty box can be read where it lies, and a branch around a copy keeps the copy.
        with boxes(plan, emit, op, may_be_empty=True) as box:
            if box.is_element:
                value = self._read(emit, memory, box.offset)
                emit.store(value, buffer, box.positions)
            elif not box.is_empty_in(plan.shape):
                source, target = self._view(emit, plan, memory, box), emit.part(buffer, box.positions, box.sizes)
                emit.add(memref.CopyOp(source, target))
        return emit.value(bufferization.ToTensorOp(buffer, restrict=True, writable=True))

    def _load_scalar(self, op: tt.LoadOp, plan: AccessPlan, emit: Emitter, memory: SSAValue) -> SSAValue:
        offset = self._scalar_offset(plan, emit, op)
        pointee = op.result.type
        if op.mask is None:
            return self._as_pointee(emit, self._read(emit, memory, offset), pointee)
        # Where the mask is off nothing is read, and the value is `other`, or 0.
        then, otherwise = Block(), Block()
        branch = scf.IfOp(op.mask, [pointee], Region(then), Region(otherwise))
        emit.add(branch)
        with emit.inside(then):
            emit.add(scf.YieldOp(self._as_pointee(emit, self._read(emit, memory, offset), pointee)))
        with emit.inside(otherwise):
            emit.add(scf.YieldOp(op.other if op.other is not None else self._zero(emit, pointee)))
        return branch.results[0]

    @_lower.register
    def _(self, op: tt.StoreOp) -> None:
        plan, emit = self._planned(op, op.ptr, op.mask)
        memory = self._memory(op, op.ptr)
        if as_tensor(op.value.type) is None:
            offset = self._scalar_offset(plan, emit, op)
            with emit.when(op.mask):
                self._write(emit, memory, offset, self._as_memory(emit, op.value))
        else:
            with boxes(plan, emit, op, keep_last=True) as box:
                if box.is_element:
                    self._write(emit, memory, box.offset, emit.element(op.value, box.positions))
                elif not box.is_empty_in(plan.shape):
                    target = self._view(emit, plan, memory, box)
                    value = emit.slice(op.value, box.positions, box.sizes)
                    emit.add(bufferization.MaterializeInDestinationOp(value, target, writable=True))
        self.lowered.append((op, None))

    # Atomic accesses -------------------------------------------------------------------------------------------------

    @_lower.register
    def _(self, op: tt.AtomicRMWOp) -> None:
        def access(emit: Emitter, cell: SSAValue, given: Sequence[SSAValue]) -> SSAValue:
            return read_modify_write(op, emit, cell, given[0])

        self._atomic(op, op.ptr, op.mask, [op.val], access)

    @_lower.register
    def _(self, op: tt.AtomicCASOp) -> None:
        def access(emit: Emitter, cell: SSAValue, given: Sequence[SSAValue]) -> SSAValue:
            return compare_and_swap(emit, cell, *given)

        self._atomic(op, op.ptr, None, [op.cmp, op.val], access)

    @_lower.register
    def _(self, op: tt.AtomicLoadOp) -> None:
        plain = insert_before(op, tt.LoadOp(op.ptr, op.mask))
        self.lowered.append((op, plain.result))
        self._lower(plain)

    @_lower.register
    def _(self, op: tt.AtomicStoreOp) -> None:
        plain = insert_before(op, tt.StoreOp(op.ptr, op.value, op.mask))
        self.lowered.append((op, None))
        self._lower(plain)

    def _atomic(
        self,
        op: Operation,
        pointer: SSAValue,
        mask: SSAValue | None,
        given: Sequence[SSAValue],
        access: Callable[[Emitter, SSAValue, Sequence[SSAValue]], SSAValue],
    ) -> None:
        """One access for each element; the old value of what is masked is 0."""
        plan, emit = self._planned(op, pointer, mask)
        memory = self._memory(op, pointer)
        buffer = emit.buffer(plan.shape, _element_type(memory))
        if op.results[0].uses and not plan.is_full:
            self._initialise(emit, buffer, None)
        one_by_one = AccessPlan(plan.shape, plan.offset, plan.mask, by_elements=True)
        with boxes(one_by_one, emit, op) as box:
            values = [emit.element(each, box.positions) for each in given]
            old = access(emit, self._cell(emit, memory, box.offset), values)
            emit.store(old, buffer, box.positions)
        result: SSAValue
        if as_tensor(op.results[0].type) is None:
            result = emit.load(buffer, [])
        else:
            result = emit.value(bufferization.ToTensorOp(buffer, restrict=True, writable=True))
        self._finish(op, result)

    @_lower.register
    def _(self, op: tt.AtomicPollOp) -> None:
        raise refuse(op, "it waits for other programs, which run one after the other")

    # Reports of the program ------------------------------------------------------------------------------------------

    @_lower.register
    def _(self, op: tt.AssertOp) -> None:
        emit = Emitter(self.scalars, op)
        place = source_location(op.location)
        message = op.message.data if place is None else f"{place}: {op.message.data}"
        with emit.elements(shape_of(op.condition)) as positions:
            emit.add(cf.AssertOp(emit.element(op.condition, positions), message))
        self.lowered.append((op, None))

    @_lower.register
    def _(self, op: tt.PrintOp) -> None:
        emit = Emitter(self.scalars, op)
        for value, is_signed in zip(op.args, op.is_signed.get_values(), strict=True):
            with emit.elements(shape_of(value)) as positions:
                element = emit.element(value, positions)
                printed, name = _printable(emit, element, op, is_signed=bool(is_signed))
                emit.add(func.CallOp(self._declared(name, printed.type), [printed], []))
                emit.add(func.CallOp(self._declared("printNewline"), [], []))
        self.lowered.append((op, None))

    def _declared(self, name: str, *types: Attribute) -> str:
        """The name of a function of MLIR's runner library, which the module declares."""
        module = self.function.parent_op()
        assert isinstance(module, ModuleOp)
        if SymbolTable.lookup_symbol(module, name) is None:
            module.body.block.add_op(func.FuncOp.external(name, list(types), []))
        return name

    # What they share -------------------------------------------------------------------------------------------------

    def _planned(self, op: Operation, pointer: SSAValue, mask: SSAValue | None) -> tuple[AccessPlan, Emitter]:
        plan = plan_of(self.structure, op, pointer, mask)
        if plan.grade is not Grade.STRUCTURED:
            report_remark(op, f"'{op.name}' is {plan.grade.value}: {plan.reason()}")
        emit = Emitter(self.scalars, op)
        place = source_location(op.location)
        where = "" if place is None else f"{place}: "
        self.claims.check(plan.mask, emit, op, f"{where}what a mask compares")
        if self.check_addresses:
            self.claims.check(plan.offset, emit, op, f"{where}an offset")
        return plan, emit

    def _finish(self, op: Operation, result: SSAValue) -> None:
        result.name_hint = op.results[0].name_hint
        self.lowered.append((op, result))

    def _memory(self, op: Operation, pointer: SSAValue) -> SSAValue:
        """The memory of a base, seen once, after its definition."""
        base = address_of(pointer).base
        if (found := self.memories.get(base)) is None:
            type_ = base.type
            if not isinstance(type_, tt.PointerType):
                raise refuse(op, "its pointers have no common base")
            cast = UnrealizedConversionCastOp.get([base], [UnrankedMemRefType.from_type(memory_element(type_.pointee))])
            found = self.memories[base] = insert_after_definition(base, cast).results[0]
            found.name_hint = base.name_hint
        return found

    def _scalar_offset(self, plan: AccessPlan, emit: Emitter, op: Operation) -> Index:
        number = plan.offset.base.number
        return self.scalars.emit(plan.offset.base, 64, for_=op) if number is None else number

    def _initialise(self, emit: Emitter, buffer: SSAValue, other: SSAValue | None) -> None:
        number = self._zero(emit, _element_type(buffer)) if other is None else self._splat_number(emit, other)
        if number is not None:
            emit.add(linalg.FillOp([number], [buffer], res=()))
        elif other is not None:
            emit.add(bufferization.MaterializeInDestinationOp(other, buffer, restrict=True, writable=True))

    def _splat_number(self, emit: Emitter, other: SSAValue) -> SSAValue | None:
        """The number that all elements of a tensor are."""
        owner = other.owner
        if isinstance(owner, tt.SplatOp) and as_tensor(owner.src.type) is None:
            return owner.src
        if (
            isinstance(owner, ConstantOp)
            and isinstance(owner.value, DenseIntOrFPElementsAttr)
            and owner.value.is_splat()
        ):
            return emit.value(constant(splat_number(owner.value), scalar_type(other.type)))
        return None

    def _view(self, emit: Emitter, plan: AccessPlan, memory: SSAValue, box: Box) -> SSAValue:
        """A box of global memory: a part of the block where that begins at its first position."""
        whole = [
            size if position != 0 else extent
            for position, size, extent in zip(box.positions, box.sizes, plan.shape, strict=True)
        ]
        # The types of LLVM 19 have no stride of 0: it is a number that is known when it runs.
        strides = [emit.operand(0) if stride == 0 else stride for stride in box.strides]
        view = emit.value(memref.ReinterpretCastOp(memory, box.offset, whole, strides))
        return view if whole == list(box.sizes) else emit.part(view, [0] * len(whole), box.sizes)

    def _cell(self, emit: Emitter, memory: SSAValue, offset: Index) -> SSAValue:
        return emit.value(memref.ReinterpretCastOp(memory, offset, [1], [1]))

    def _read(self, emit: Emitter, memory: SSAValue, offset: Index) -> SSAValue:
        return emit.value(affine.LoadOp(self._cell(emit, memory, offset), [], _FIRST))

    def _write(self, emit: Emitter, memory: SSAValue, offset: Index, value: SSAValue) -> None:
        emit.add(affine.StoreOp(value, self._cell(emit, memory, offset), [], _FIRST))

    def _as_pointee(self, emit: Emitter, value: SSAValue, pointee: Attribute) -> SSAValue:
        """A number in memory as the scalar that a pointer points to: pointers lie there as addresses."""
        if not isinstance(pointee, tt.PointerType):
            return value
        return emit.value(tt.IntToPtrOp.create(operands=[value], result_types=[pointee]))

    def _as_memory(self, emit: Emitter, value: SSAValue) -> SSAValue:
        if not isinstance(value.type, tt.PointerType):
            return value
        return emit.value(tt.PtrToIntOp.create(operands=[value], result_types=[i64]))

    def _zero(self, emit: Emitter, type_: Attribute) -> SSAValue:
        if isinstance(type_, tt.PointerType):
            return self._as_pointee(emit, self._zero(emit, i64), type_)
        return emit.value(constant(0, type_))


_FIRST = AffineMapAttr(AffineMap.constant_map(0))
"""The index 0, as the seed of affine accesses has it."""


def memory_element(pointee: Attribute) -> Attribute:
    """The type of the elements of memory: a pointer lies there as its address, an i1 as a byte."""
    if isinstance(pointee, tt.PointerType):
        return i64
    return i8 if pointee == i1 else pointee


def _printable(emit: Emitter, value: SSAValue, op: Operation, *, is_signed: bool) -> tuple[SSAValue, str]:
    """A number as the runner library prints it, and the function that does."""
    match value.type:
        case Float64Type():
            return value, "printF64"
        case Float32Type():
            return value, "printF32"
        case _ if isinstance(value.type, AnyFloat):
            return emit.value(arith.ExtFOp(value, f32)), "printF32"
        case IntegerType() if value.type == i64:
            return value, "printI64" if is_signed else "printU64"
        case IntegerType():
            wide = arith.ExtSIOp(value, i64) if is_signed and value.type != i1 else arith.ExtUIOp(value, i64)
            return emit.value(wide), "printI64" if is_signed else "printU64"
        case _:
            raise refuse(op, f"it prints a value of type {value.type}")


def _element_type(memory: SSAValue) -> Attribute:
    return memref.element_of(memory.type)
