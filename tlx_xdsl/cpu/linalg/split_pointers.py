"""`linalg-split-pointers`: a pointer becomes a base, which is one pointer for all elements, and integer offsets.

Bases and offsets go through control flow side by side: an `scf.for` that advances a tensor of pointers carries a tensor
of offsets, and the base as well if it changes. A pointer that is chosen for each element among several bases becomes
an access for each of them, with a mask. After the pass tensors of pointers occur in one form only, right before the
access: `tt.addptr (tt.splat %base), %offsets`.

Before:
```mlir
%p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
%q = tt.addptr %p, %range : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
%r = tt.addptr %q, %step : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
%v = tt.load %r : tensor<64x!tt.ptr<f32>>
```
After:
```mlir
%o = arith.addi %range, %step : tensor<64xi64>  // each sign-extended before
%p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
%r = tt.addptr %p, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi64>
%v = tt.load %r : tensor<64x!tt.ptr<f32>>
```
Offsets count elements of the pointee. Sums of offsets have 64 bits, as the addresses of `tt.addptr` have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace as with_changes
from functools import singledispatchmethod

from xdsl.dialects import arith as upstream
from xdsl.dialects.builtin import FunctionType, ModuleOp, i1, i8, i32, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.analysis.integers.transfer import bytes_of, is_pointer, pointee_bytes
from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.dialects.base import as_tensor, integer_bits, pointee_type, scalar_type, with_element_type
from tlx_xdsl.transforms.rewriting import (
    Pass,
    constant,
    functions_of,
    insert_after_definition,
    insert_before,
    ops_of,
    retype,
)

from .blocks import splat_as
from .emitter import refuse
from .pointer_bases import Bases, bases_of, rearranges
from .slots import Slot, add_neighbour, drop_inputs, drop_operands, set_operand, slots_of


class SplitPointersPass(Pass):
    """Split all pointers of a module."""

    name = "linalg-split-pointers"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError at a pointer whose bases are unknown.
        """
        # A file may hold several modules.
        for module in ops_of(op, ModuleOp):
            functions = functions_of(module)
            names = {call.callee.string_value() for call in ops_of(module, tt.CallOp)}
            called = {name: function for name, function in functions.items() if name in names}
            parameters = {name: _split_parameters(function) for name, function in called.items()}
            for function in functions.values():
                _Splitter(function, parameters).run()


@dataclass(frozen=True)
class Part:
    """A base with offsets, and the elements for which they are the pointer: all, without a condition.

    Offsets count elements of what the base points to, which may be narrower than what the pointer points to.
    """

    base: SSAValue
    offset: SSAValue | None = None
    condition: SSAValue | None = None


Parts = tuple[Part, ...]


def _offset_type(pointer: Attribute) -> Attribute:
    return with_element_type(pointer, i64)


def _split_parameters(function: tt.FuncOp) -> list[int]:
    """Give a function that is called an offset for each pointer, after its arguments; gives the pointers' numbers."""
    entry = function.body.blocks[0]
    numbers = [number for number, argument in enumerate(entry.args) if is_pointer(argument)]
    for number in numbers:
        argument = entry.args[number]
        entry.insert_arg(_offset_type(argument.type), len(entry.args), argument.location)
    if any(isinstance(scalar_type(type_), tt.PointerType) for type_ in function.function_type.outputs.data):
        raise refuse(function, "it returns a pointer")
    return numbers


@dataclass(frozen=True)
class _Neighbours:
    """Slots that one becomes: offsets, and the base if it changes, or for each element the number of one."""

    bases: Bases
    changing: Slot | None
    number: Slot | None
    offsets: Slot


class _Splitter:
    """Splits the pointers of a function, in program order."""

    def __init__(self, function: tt.FuncOp, parameters: dict[str, list[int]]):
        self.function = function
        self.parameters = parameters
        self.parts: dict[SSAValue, Parts] = {}
        self.dead: list[Operation] = []
        self.casts: dict[tuple[SSAValue, Attribute], SSAValue] = {}
        self.aligned: dict[tuple[SSAValue, Attribute], tuple[SSAValue, SSAValue]] = {}

    def run(self) -> None:
        """Rewrite the function."""
        self._enter()
        for op in list(self.function.walk()):
            if isinstance(op, tt.LoadOp | tt.StoreOp) and scalar_type(pointee_type(op.ptr.type)) == i1:
                _access_bytes(op)
        slots = slots_of(self.function, is_pointer)
        bases = bases_of(slots)
        neighbours = [self._split_slot(slot, bases[slot]) for slot in slots]
        for op in list(self.function.walk()):
            self._visit(op)
        for slot, made in zip(slots, neighbours, strict=True):
            self._fill(slot, made)
        drop_operands(slots)
        for op in reversed(self.dead):
            if not any(result.uses for result in op.results):
                Rewriter.erase_op(op)
        drop_inputs(slots)

    def _enter(self) -> None:
        entry = self.function.body.blocks[0]
        name = self.function.sym_name.data
        split = self.parameters.get(name)
        if split is None:
            for argument in list(entry.args):
                if isinstance(argument.type, tt.PointerType):
                    self.parts[argument] = (Part(argument),)
                elif is_pointer(argument):
                    self._read_addresses(argument)
            self._update_type(entry)
            return
        for number, offset in zip(split, entry.args[len(entry.args) - len(split) :], strict=True):
            argument = entry.args[number]
            if as_tensor(argument.type) is not None:
                new = entry.insert_arg(scalar_type(argument.type), number, argument.location)
                self._replace_argument(argument, new, offset)
            else:
                self.parts[argument] = (Part(argument, offset),)
        self._update_type(entry)

    def _update_type(self, entry: Block) -> None:
        outputs = list(self.function.function_type.outputs.data)
        self.function.function_type = FunctionType.from_lists([argument.type for argument in entry.args], outputs)

    def _read_addresses(self, argument: BlockArgument) -> None:
        """Let a tensor of pointers among the arguments of a kernel be their addresses."""
        pointers = tt.IntToPtrOp.create(operands=[argument], result_types=[argument.type])
        argument.replace_all_uses_with(pointers.result)
        pointers.operands[0] = argument
        retype(argument, _offset_type(argument.type))
        insert_after_definition(argument, pointers)

    def _replace_argument(self, old: BlockArgument, new: BlockArgument, offset: SSAValue) -> None:
        """Let a tensor of pointers among the arguments be a splat of the new base, which is split like any other."""
        first = old.block.first_op
        assert first is not None
        pointers = insert_before(first, tt.AddPtrOp(splat_as(first, new, old.type), offset))
        old.replace_all_uses_with(pointers.result)
        old.block.erase_arg(old)
        self.parts[new] = (Part(new),)

    # Control flow ----------------------------------------------------------------------------------------------------

    def _split_slot(self, slot: Slot, bases: Bases) -> _Neighbours:
        type_ = slot.inputs[0].type
        changing = add_neighbour(slot, scalar_type(type_)) if not bases.known else None
        number = add_neighbour(slot, with_element_type(type_, i32)) if len(bases.known) > 1 else None
        offsets = add_neighbour(slot, _offset_type(type_))
        for at, input_ in enumerate(slot.inputs):
            offset = offsets.inputs[at]
            if changing is not None:
                self.parts[input_] = (Part(changing.inputs[at], offset),)
            elif number is None:
                self.parts[input_] = tuple(Part(base, offset) for base in bases.known)
            else:
                self.parts[input_] = tuple(
                    Part(base, offset, _equals(number.inputs[at], index)) for index, base in enumerate(bases.known)
                )
        return _Neighbours(bases, changing, number, offsets)

    def _fill(self, slot: Slot, neighbours: _Neighbours) -> None:
        """Set the operands of what a slot has become."""
        for at, (op, number) in enumerate(slot.operands):
            parts = self._parts(op, op.operands[number])
            type_ = slot.inputs[0].type
            if neighbours.number is None:
                part = self._single(op, op.operands[number])
                set_operand(neighbours.offsets.operands[at], self._wide(op, part.offset, type_))
                if neighbours.changing is not None:
                    set_operand(neighbours.changing.operands[at], part.base)
                continue
            offset, index = (self._wide(op, parts[0].offset, type_), self._number(op, parts[0], neighbours, type_))
            for part in parts[1:]:
                assert part.condition is not None, "one of several parts"
                offset = self._chosen(op, part.condition, self._wide(op, part.offset, type_), offset)
                index = self._chosen(op, part.condition, self._number(op, part, neighbours, type_), index)
            set_operand(neighbours.offsets.operands[at], offset)
            set_operand(neighbours.number.operands[at], index)

    def _number(self, op: Operation, part: Part, neighbours: _Neighbours, type_: Attribute) -> SSAValue:
        return self._constant(op, neighbours.bases.known.index(part.base), with_element_type(type_, i32))

    def _chosen(self, op: Operation, condition: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        return insert_before(op, arith.SelectOp(condition, yes, no)).result

    def _single(self, op: Operation, pointer: SSAValue) -> Part:
        part, *others = self._parts(op, pointer)
        if others:
            raise refuse(op, "it carries pointers whose elements have different bases")
        before, after = pointee_bytes(part.base), pointee_bytes(pointer)
        if part.offset is not None and before < after:
            raise refuse(op, f"its offsets in elements of {before} bytes may be no multiples of {after} bytes")
        type_ = scalar_type(pointer.type)
        assert isinstance(type_, tt.PointerType)
        return self._narrowed(op, part, type_)

    # Operations ------------------------------------------------------------------------------------------------------

    def _parts(self, op: Operation, pointer: SSAValue) -> Parts:
        if (parts := self.parts.get(pointer)) is None:
            raise refuse(op, f"the base of its pointer is not known (it comes from {_origin(pointer)})")
        return parts

    def _visit(self, op: Operation) -> None:
        if isinstance(op, tt.CallOp):
            self._call(op)
            return
        made = self._split(op) if any(is_pointer(result) for result in op.results) else None
        if made is not None:
            self.parts[op.results[0]] = made
            self.dead.append(op)
            return
        if op.regions or not any(is_pointer(operand) for operand in op.operands):
            return
        # What terminators carry is filled in at the end.
        if op.successors or op.next_op is None:
            return
        if isinstance(op, tt.PtrToIntOp) and as_tensor(op.src.type) is not None:
            self._addresses(op)
            return
        if any(operand in self.parts and len(self.parts[operand]) > 1 for operand in op.operands):
            self._access_parts(op)
            return
        for number, operand in enumerate(op.operands):
            if is_pointer(operand):
                (part,) = self._parts(op, operand)
                # An address is the same whatever lies there.
                type_ = part.base.type if isinstance(op, tt.PtrToIntOp) else operand.type
                op.operands[number] = self._pointer(op, part, type_)

    def _addresses(self, op: tt.PtrToIntOp) -> None:
        """The addresses of a tensor of pointers: those of the bases, and the bytes from there on."""
        found: SSAValue | None = None
        for part in self._parts(op, op.src):
            base = insert_before(op, tt.PtrToIntOp.create(operands=[part.base], result_types=[i64])).results[0]
            address = splat_as(op, base, op.result.type)
            if part.offset is not None:
                size = self._constant(op, pointee_bytes(part.base), op.result.type)
                bytes_ = insert_before(op, upstream.MuliOp(self._wide(op, part.offset, op.src.type), size)).result
                address = insert_before(op, upstream.AddiOp(address, bytes_)).result
            if found is not None and part.condition is not None:
                address = self._chosen(op, part.condition, address, found)
            found = address
        assert found is not None
        op.result.replace_all_uses_with(found)
        self._erase(op)

    @singledispatchmethod
    def _split(self, op: Operation) -> Parts | None:
        """The parts of the only result; None for results that are split as slots."""
        if op.regions:
            return None
        if rearranges(op):
            return tuple(
                Part(part.base, self._rearranged(op, part.offset), self._rearranged(op, part.condition))
                for part in self._parts(op, op.operands[0])
            )
        if as_tensor(op.results[0].type) is not None:
            raise refuse(op, "the bases of its pointers are not known")
        for number, operand in enumerate(op.operands):
            if is_pointer(operand):
                op.operands[number] = self._pointer(op, self._single(op, operand), operand.type)
        self.parts[op.results[0]] = (Part(op.results[0]),)
        return None

    def _rearranged(self, op: Operation, value: SSAValue | None) -> SSAValue | None:
        """The elements of `value`, which go with those of the pointers, where `op` puts them."""
        if value is None:
            return None
        type_ = with_element_type(op.results[0].type, scalar_type(value.type))
        new = type(op).create(
            operands=[value], result_types=[type_], properties=dict(op.properties), attributes=dict(op.attributes)
        )
        return insert_before(op, new).results[0]

    @_split.register
    def _(self, op: tt.AddPtrOp) -> Parts:
        def moved(part: Part) -> Part:
            step = op.offset
            if (ratio := pointee_bytes(op.result) // pointee_bytes(part.base)) > 1:
                wide = self._wide(op, step, step.type)
                step = insert_before(op, upstream.MuliOp(wide, self._constant(op, ratio, wide.type))).result
            return with_changes(part, offset=self._sum(op, part.offset, step))

        return tuple(map(moved, self._parts(op, op.ptr)))

    @_split.register
    def _(self, op: tt.BitcastOp) -> Parts:
        pointee = scalar_type(op.result.type)
        assert isinstance(pointee, tt.PointerType)
        return tuple(self._narrowed(op, part, pointee) for part in self._parts(op, op.src))

    def _narrowed(self, op: Operation, part: Part, pointee: tt.PointerType) -> Part:
        """A part whose base points to no wider type: offsets of a narrower base stay as they are."""
        before, after = pointee_bytes(part.base), bytes_of(pointee.pointee)
        offset = part.offset
        if offset is not None and before < after:
            return part
        if offset is not None and before != after:
            wide = self._wide(op, offset, offset.type)
            offset = insert_before(op, upstream.MuliOp(wide, self._constant(op, before // after, wide.type))).result
        return with_changes(part, base=self._cast(part.base, pointee), offset=offset)

    def _widened(self, op: Operation, part: Part, pointer: Attribute) -> Part:
        """A part whose base is of the pointer's type, for an access.

        An access is aligned to its type, so all offsets are multiples of it, but for what the base is away from one.
        """
        pointee = scalar_type(pointer)
        assert isinstance(pointee, tt.PointerType)
        size, narrow = bytes_of(pointee.pointee), pointee_bytes(part.base)
        if part.offset is None or narrow == size:
            return with_changes(part, base=self._cast(part.base, pointee))
        base, shift = self._aligned(part.base, pointee)
        wide = self._wide(op, part.offset, part.offset.type)
        if as_tensor(wide.type) is not None:
            shift = splat_as(op, shift, wide.type)
        rest = insert_before(op, upstream.SubiOp(wide, shift)).result
        bits = (size // narrow).bit_length() - 1
        offset = insert_before(op, upstream.ShRSIOp(rest, self._constant(op, bits, wide.type))).result
        return with_changes(part, base=base, offset=offset)

    def _aligned(self, base: SSAValue, pointee: tt.PointerType) -> tuple[SSAValue, SSAValue]:
        """A base, at the next address that is aligned to a wider type, and the elements up to there."""
        if (found := self.aligned.get((base, pointee))) is None:
            size = pointee_bytes(base)
            address = tt.PtrToIntOp.create(operands=[base], result_types=[i64])
            zero, mask = constant(0, i64), constant(bytes_of(pointee.pointee) - 1, i64)
            below = upstream.SubiOp(zero.result, address.result)
            bytes_ = upstream.AndIOp(below.result, mask.result)
            bits = constant(size.bit_length() - 1, i64)
            shift = upstream.ShRSIOp(bytes_.result, bits.result)
            moved = tt.AddPtrOp(base, shift.result)
            cast = tt.BitcastOp.create(operands=[moved.result], result_types=[pointee])
            last: SSAValue = base
            for each in (address, zero, mask, below, bytes_, bits, shift, moved, cast):
                last = insert_after_definition(last, each).results[0]
            self.parts[last] = (Part(last),)
            found = self.aligned[base, pointee] = (last, shift.result)
        return found

    @_split.register(tt.CatOp)
    @_split.register(tt.JoinOp)
    def _(self, op: tt.CatOp | tt.JoinOp) -> Parts:
        left, right = self._parts(op, op.lhs), self._parts(op, op.rhs)

        def joined(first: SSAValue, second: SSAValue) -> SSAValue:
            type_ = with_element_type(op.result.type, scalar_type(first.type))
            return insert_before(op, type(op).create(operands=[first, second], result_types=[type_])).results[0]

        def sides(part: Part, own: SSAValue, other: SSAValue) -> tuple[SSAValue, ...]:
            """The offsets of its side and of the other one, and where they are its elements."""
            bits = [with_element_type(each.type, i1) for each in (own, other)]
            condition = part.condition or self._constant(op, -1, bits[0])
            offsets = self._wide(op, part.offset, own.type), self._wide(op, None, other.type)
            return *offsets, condition, self._constant(op, 0, bits[1])

        if len(left) == len(right) == 1 and left[0].base is right[0].base:
            offsets = [self._wide(op, part.offset, side.type) for (part,), side in ((left, op.lhs), (right, op.rhs))]
            return (Part(left[0].base, joined(*offsets)),)
        found: list[Part] = []
        for part in left:
            offset, nothing, condition, never = sides(part, op.lhs, op.rhs)
            found.append(Part(part.base, joined(offset, nothing), joined(condition, never)))
        for part in right:
            offset, nothing, condition, never = sides(part, op.rhs, op.lhs)
            found.append(Part(part.base, joined(nothing, offset), joined(never, condition)))
        return tuple(found)

    @_split.register
    def _(self, op: tt.IntToPtrOp) -> Parts | None:
        if as_tensor(op.result.type) is None:
            self.parts[op.result] = (Part(op.result),)
            return None
        # Addresses count from null; a pointer is aligned to its pointee.
        pointer = scalar_type(op.result.type)
        null = self._constant(op, 0, i64)
        base = tt.IntToPtrOp.create(operands=[null], result_types=[pointer])
        insert_before(op, base)
        size = self._constant(op, pointee_bytes(op.result), op.src.type)
        return (Part(base.result, insert_before(op, upstream.DivSIOp(op.src, size)).result),)

    @_split.register
    def _(self, op: arith.SelectOp) -> Parts:
        yes, no = self._parts(op, op.true_value), self._parts(op, op.false_value)
        bases = {part.base for part in (*yes, *no)}
        if len(yes) == len(no) == 1 and (len(bases) == 1 or as_tensor(op.condition.type) is None):
            if yes == no:
                return yes
            narrowest = min((yes[0].base, no[0].base), key=pointee_bytes).type
            assert isinstance(narrowest, tt.PointerType)
            yes, no = ((self._narrowed(op, parts[0], narrowest),) for parts in (yes, no))
            offsets = [self._wide(op, parts[0].offset, op.result.type) for parts in (yes, no)]
            offset = insert_before(op, arith.SelectOp(op.condition, *offsets)).result
            if len(bases) == 1:
                return (Part(yes[0].base, offset),)
            base = insert_before(op, arith.SelectOp(op.condition, yes[0].base, no[0].base))
            return (Part(base.result, offset),)
        condition = op.condition
        if as_tensor(condition.type) is None:
            condition = splat_as(op, condition, with_element_type(op.result.type, condition.type))
        true = self._constant(op, -1, condition.type)
        inverse = insert_before(op, upstream.XOrIOp(condition, true)).result
        return (
            *(with_changes(part, condition=self._both(op, part.condition, condition)) for part in yes),
            *(with_changes(part, condition=self._both(op, part.condition, inverse)) for part in no),
        )

    def _call(self, op: tt.CallOp) -> None:
        split = self.parameters.get(op.callee.string_value())
        for number in split or ():
            part = self._single(op, op.operands[number])
            offset = self._wide(op, part.offset, op.operands[number].type)
            op.operands[number] = part.base
            op.operands = [*op.operands, offset]
        if any(is_pointer(result) for result in op.results):
            raise refuse(op, "it returns a pointer")

    # Accesses with several bases -------------------------------------------------------------------------------------

    def _access_parts(self, op: Operation) -> None:
        """Access through each base where its condition holds; what is loaded is chosen afterwards."""
        match op:
            case tt.LoadOp():
                value: SSAValue | None = None
                for part in self.parts[op.ptr]:
                    mask = self._both(op, part.condition, op.mask)
                    new = tt.LoadOp(
                        self._pointer(op, part, op.ptr.type), mask, op.other, cache_policy=op.cache_policy,
                        is_volatile=bool(op.is_volatile.value.data),
                    )  # fmt: skip
                    insert_before(op, new)
                    chosen = new.result
                    if value is not None and part.condition is not None:
                        chosen = insert_before(op, arith.SelectOp(part.condition, chosen, value)).result
                    value = chosen
                assert value is not None
                op.result.replace_all_uses_with(value)
                self.dead.append(op)
                self._erase(op)
            case tt.StoreOp():
                for part in self.parts[op.ptr]:
                    mask = self._both(op, part.condition, op.mask)
                    insert_before(
                        op,
                        tt.StoreOp(self._pointer(op, part, op.ptr.type), op.value, mask, cache_policy=op.cache_policy),
                    )
                self._erase(op)
            case _:
                raise refuse(op, "its pointers have different bases")

    def _erase(self, op: Operation) -> None:
        if op in self.dead:
            self.dead.remove(op)
        Rewriter.erase_op(op)

    # Values ----------------------------------------------------------------------------------------------------------

    def _pointer(self, op: Operation, part: Part, type_: Attribute) -> SSAValue:
        """A base and offsets as a pointer before `op`."""
        part = self._widened(op, part, type_)
        pointer = part.base
        if as_tensor(type_) is not None:
            pointer = splat_as(op, pointer, type_)
        return pointer if part.offset is None else insert_before(op, tt.AddPtrOp(pointer, part.offset)).result

    def _sum(self, op: Operation, first: SSAValue | None, second: SSAValue) -> SSAValue:
        if first is None:
            return second
        wide = upstream.AddiOp(self._wide(op, first, second.type), self._wide(op, second, second.type))
        return insert_before(op, wide).result

    def _both(self, op: Operation, first: SSAValue | None, second: SSAValue | None) -> SSAValue | None:
        if first is None or second is None:
            return first if second is None else second
        return insert_before(op, upstream.AndIOp(first, second)).result

    def _wide(self, op: Operation, offset: SSAValue | None, like: Attribute) -> SSAValue:
        """The offsets in 64 bits; zeros of the shape of `like` where there are none."""
        type_ = _offset_type(like)
        if offset is None:
            return self._constant(op, 0, type_)
        if integer_bits(scalar_type(offset.type)) == 64:
            return offset
        return insert_before(op, arith.ExtSIOp(offset, i64)).result

    def _constant(self, op: Operation, number: int, type_: Attribute) -> SSAValue:
        return insert_before(op, constant(number, type_)).result

    def _cast(self, base: SSAValue, type_: tt.PointerType) -> SSAValue:
        """A base as a pointer to another type, made once, after its definition."""
        if base.type == type_:
            return base
        if (found := self.casts.get((base, type_))) is None:
            cast = tt.BitcastOp.create(operands=[base], result_types=[type_])
            found = self.casts[base, type_] = insert_after_definition(base, cast).results[0]
            self.parts[found] = (Part(found),)
        return found


def _access_bytes(op: tt.LoadOp | tt.StoreOp) -> None:
    """Access bits as the bytes that they are in memory: all but 0 are true."""
    pointer = with_element_type(op.ptr.type, tt.PointerType.get(i8))
    bytes_ = insert_before(op, tt.BitcastOp.create(operands=[op.ptr], result_types=[pointer])).results[0]
    if isinstance(op, tt.StoreOp):
        value = insert_before(op, arith.ExtUIOp(op.value, i8)).result
        insert_before(op, tt.StoreOp(bytes_, value, op.mask, cache_policy=op.cache_policy))
    else:
        other = None if op.other is None else insert_before(op, arith.ExtUIOp(op.other, i8)).result
        is_volatile = bool(op.is_volatile.value.data)
        loaded = tt.LoadOp(bytes_, op.mask, other, cache_policy=op.cache_policy, is_volatile=is_volatile)
        zero = insert_before(op, constant(0, insert_before(op, loaded).result.type))
        op.result.replace_all_uses_with(insert_before(op, arith.CmpiOp("ne", loaded.result, zero.result)).result)
    Rewriter.erase_op(op)


def _origin(pointer: SSAValue) -> str:
    """Return what makes a pointer, for a message."""
    return f"'{pointer.owner.name}'" if isinstance(pointer.owner, Operation) else "an argument"


def _equals(number: SSAValue, index: int) -> SSAValue:
    """True where the number of the base is `index`, right after its definition."""
    wanted = insert_after_definition(number, constant(index, number.type))
    compared = arith.CmpiOp("eq", number, wanted.result)
    compared.location = wanted.location
    Rewriter.insert_op(compared, InsertPoint.after(wanted))
    return compared.result
