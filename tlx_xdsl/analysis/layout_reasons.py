"""Reasons for the layouts of values, deduced from the module as it stands.

Layouts are tied: what a loop carries has one layout, an elementwise operation gives its result that of its operands, a
reduction drops a dimension, and so on. Some operations want a certain layout (`_anchor`). The reason for a layout is
the shortest way along such ties to what wants it; if nothing does, it is the default. A conversion ties nothing: it
stands where the reasons of two layouts meet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from tlx_xdsl.dialects import tlx, tt, ttg, ttng
from tlx_xdsl.dialects.base import (
    as_tensor,
    bare,
    chosen_layout,
    is_elementwise,
    num_warps_of,
    pointers_of,
    shape_of_tensor,
    tensor_type,
)
from tlx_xdsl.errors import InputError, SourceLocation
from tlx_xdsl.layouts.distributed import default_blocked_layout
from tlx_xdsl.layouts.encodings import BlockedLayout, Layout, SharedLayout
from tlx_xdsl.layouts.shared import default_shared_layout
from tlx_xdsl.text.diagnostics import source_location

from .layout_costs import BufferAccess, FunctionBuffers
from .value_classes import ValueClasses, visible

DEFAULT_WARPS = 4
"""Warps of a kernel that does not say how many it wants."""

Hints = Mapping[Attribute, SourceLocation]
"""Encodings that the program asks for, and where."""


@dataclass(frozen=True)
class Step:
    """One step of a reason."""

    words: str
    value: SSAValue | None = None
    """The value that the step leads to; None at the end of the way."""


class LayoutReasons:
    """Reasons for the layouts in one function."""

    def __init__(self, func: tt.FuncOp, hints: Hints):
        self._classes = ValueClasses.of(func, TensorType)
        self._buffers = FunctionBuffers(func)
        self._hints = hints

    def of(self, value: SSAValue) -> list[Step]:
        """The steps from `value`, a tensor or buffer with a layout, to the reason for its layout.

        Raises ValueError for a value without one.
        """
        if isinstance(value.type, ttg.MemDescType):
            return self._of_buffer(value)
        if layout_of_value(value) is None:
            raise InputError(f"has no layout, it is of type {value.type}")
        return self._of_tensor(value)

    # --- tensors -------------------------------------------------------------------------------------------------

    def _of_tensor(self, value: SSAValue) -> list[Step]:
        """Breadth first, so that the shortest way is found; an end of lower rank only where no better one is."""
        came: dict[SSAValue, tuple[SSAValue, str] | None] = {value: None}
        pending = deque([value])
        best: tuple[int, SSAValue, str] | None = None
        while pending:
            at = pending.popleft()
            found = self._anchor(at)
            if best is None or found[0] < best[0]:
                best = (found[0], at, found[1])
                if best[0] == 0:
                    break
            for words, other in self._ties(at):
                if other not in came:
                    came[other] = (at, words)
                    pending.append(other)
        assert best is not None
        steps = [Step(best[2])]
        at = best[1]
        while (step := came[at]) is not None:
            steps.insert(0, Step(step[1], at))
            at = step[0]
        return steps

    def _anchor(self, value: SSAValue) -> tuple[int, str]:
        """Return the reason for the layout of `value` itself, and its rank: 0 where an operation or the user wants the
        layout, 1 where a choice was made, 2 where nothing else is known.
        """
        owner, encoding = value.owner, tensor_type(value.type).encoding
        if encoding in self._hints:
            return 0, f"the program asks for this layout, line {self._hints[encoding].line}"
        if isinstance(owner, ttng.WarpGroupDotOp):
            return 0, f"the accumulator of the dot{_line(owner)}: wgmma leaves it so in registers"
        if isinstance(owner, ttng.TMEMLoadOp):
            return 0, f"tcgen05.ld{_line(owner)} brings it so from tensor memory"
        for use in value.uses:
            if (words := _wanted_by(use.operation, value)) is not None:
                return 0, words
        shape, layout = shape_of_tensor(value.type), layout_of_value(value)
        if layout == default_blocked_layout(shape, _warps(value)):
            return 1, f"the default for {_warps(value)} warps: nothing asked for another"
        for op in (owner, *(use.operation for use in value.uses)):
            if isinstance(op, Operation) and pointers_of(op) is not None and isinstance(layout, BlockedLayout):
                return 1, f"chosen for '{op.name}'{_line(op)}: neighbours in memory for one thread, and for its warp"
        return 2, "it stands so in the module"

    def _ties(self, value: SSAValue) -> Iterator[tuple[str, SSAValue]]:
        """Values whose layouts and that of `value` follow from each other, and how."""
        owner = value.owner
        if isinstance(owner, Operation):
            yield from _ties_of(owner, value)
        for use in value.uses:
            yield from _ties_of(use.operation, value)
        for other in self._classes.members(value):
            if other is not value:
                yield self._carriage(value), other

    def _carriage(self, value: SSAValue) -> str:
        """The operation that carries or produces `value`, in words."""
        forwarding = self._classes.forwarded_by(value)
        if forwarding is None:
            owner = value.owner
            forwarding = owner.parent_op() if isinstance(value, BlockArgument) else owner
        assert isinstance(forwarding, Operation)
        kind = "the loop" if isinstance(forwarding, scf.ForOp | scf.WhileOp) else f"'{visible(forwarding).name}'"
        return f"carried by {kind}{_line(forwarding)}:"

    # --- buffers -------------------------------------------------------------------------------------------------

    def _of_buffer(self, value: SSAValue) -> list[Step]:
        root = self._buffers.root(value)
        steps = [] if root is value else [Step("a view of", root)]
        type_ = ttg.memdesc_type(root.type)
        layout = chosen_layout(type_.encoding)
        users = _by_words(self._buffers.accesses(root))
        if layout is not None and _is_default(layout, type_):
            steps.append(Step(f"the default for a buffer of {_elements(type_)}"))
        elif type_.encoding in self._hints:
            steps.append(Step(f"the program asks for this layout, line {self._hints[type_.encoding].line}"))
        elif isinstance(layout, SharedLayout):
            steps.append(Step("not the default: what accesses it wants this layout"))
        else:
            steps.append(Step("how tensor memory holds it"))
        return [*steps, *(Step(words) for words in users)]


def layout_of_value(value: SSAValue) -> Layout | None:
    """The layout of a tensor or buffer; None for what has none."""
    encoding = _encoding_of(value.type)
    return chosen_layout(encoding)


def _encoding_of(type_: Attribute) -> Attribute | None:
    if isinstance(type_, ttg.MemDescType):
        return type_.encoding
    tensor = as_tensor(type_)
    return None if tensor is None else tensor.encoding


def hints_of(module: ModuleOp) -> dict[Attribute, SourceLocation]:
    """The encodings that a program asks for, with the first place, in what the frontend makes of it.

    Those are what `tlx.require_layout` pins, and the layouts of allocations that are marked as the user's.
    """
    found: dict[Attribute, SourceLocation] = {}
    for op in module.walk():
        pinned = isinstance(op, tlx.RequireLayoutOp) and op.pin is not None
        place = source_location(op.location)
        if place is None or not (pinned or isinstance(op, ttg.LocalAllocOp | tlx.StorageAliasLocalAllocOp)):
            continue
        encoding = _encoding_of(op.results[0].type)
        if encoding is not None and (pinned or isinstance(encoding, tlx.UserLayoutAttr)):
            found.setdefault(bare(encoding), place)
    return found


def _wanted_by(op: Operation, value: SSAValue) -> str | None:
    """The instruction that wants `value`, an operand of `op`, in a layout of its own."""
    match op:
        case ttng.WarpGroupDotOp() if op.a is value:
            return f"operand A of the dot{_line(op)}: wgmma takes it so from registers"
        case ttng.TMEMStoreOp() | ttng.TMEMAllocOp() if op.src is value:
            return f"tcgen05.st{_line(op)} takes it so to tensor memory"
        case tt.DotOp() if value in (op.a, op.b):
            return f"operand {'A' if op.a is value else 'B'} of the dot{_line(op)}"
        case ttng.AsyncTMAGatherOp() | ttng.AsyncTMAScatterOp() if op.x_offsets is value:
            return f"row numbers of the TMA copy{_line(op)}, which takes four of each warp"
        case _:
            return None


_SIDES: dict[type[Operation], str] = {
    tt.BroadcastOp: "broadcast",
    tt.ExpandDimsOp: "with one dimension more or less",
    tt.JoinOp: "in the same registers",
    tt.ReduceOp: "reduced",
    tt.ReshapeOp: "in the same registers",
    tt.SplitOp: "in the same registers",
    tt.TransOp: "in the same registers",
}
"""Operations whose results have a layout that follows from that of their operands, or the other way round."""


def _ties_of(op: Operation, value: SSAValue) -> Iterator[tuple[str, SSAValue]]:
    """Operands and results of `op` whose layouts follow from that of `value`, or the other way round."""
    if isinstance(op, ttng.WarpGroupDotWaitOp):
        for before, after in zip(op.inputs, op.outputs, strict=True):
            if value in (before, after) and isinstance(before.type, TensorType):
                yield f"passed on by the wait{_line(op)}:", after if value is before else before
    elif isinstance(op, ttng.WarpGroupDotOp):
        if value in (op.c, op.d):
            yield f"accumulated to by the dot{_line(op)}:", op.d if value is op.c else op.c
    elif isinstance(op, tt.ReshapeOp) and op.allow_reorder is not None:
        # With the order of elements free it ties nothing.
        return
    elif (words := _SIDES.get(type(op))) is not None:
        others = op.results if value in op.operands else op.operands
        words = f"{words} by '{op.name}'{_line(op)}:"
        yield from ((words, other) for other in others if isinstance(other.type, TensorType))
    elif is_elementwise(op):
        encoding = tensor_type(value.type).encoding
        for other in (*op.operands, *op.results):
            tensor = as_tensor(other.type)
            if other is not value and tensor is not None and tensor.encoding == encoding:
                yield f"element by element in '{op.name}'{_line(op)}:", other


def _is_default(layout: Layout, type_: ttg.MemDescType) -> bool:
    if not isinstance(layout, SharedLayout):
        return False
    # An array of buffers has one dimension more than its layout.
    return any(layout == default_shared_layout(shape, type_.element_bits) for shape in (type_.shape, type_.shape[1:]))


def _elements(type_: ttg.MemDescType) -> str:
    return "x".join(map(str, type_.shape)) + f" elements of {type_.element_bits} bits"


def _by_words(accesses: tuple[BufferAccess, ...]) -> list[str]:
    """The accesses to a buffer, each kind once, with its lines."""
    lines: dict[str, list[int]] = {}
    for access in accesses:
        found = lines.setdefault(access.does, [])
        if access.line is not None and access.line not in found:
            found.append(access.line)
    return [f"{does}{_lines(found)}" for does, found in lines.items()]


def _lines(numbers: list[int]) -> str:
    if not numbers:
        return ""
    return f", line{'s' if len(numbers) > 1 else ''} {', '.join(map(str, sorted(numbers)))}"


def _line(op: Operation) -> str:
    place = source_location(op.location)
    return "" if place is None else f" at line {place.line}"


def _warps(value: SSAValue) -> int:
    """The warps that run the code of `value`; as many as Triton's default where nothing says so."""
    op = value.owner if isinstance(value.owner, Operation) else value.owner.first_op
    return (None if op is None else num_warps_of(op)) or DEFAULT_WARPS
