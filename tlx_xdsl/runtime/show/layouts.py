"""Layouts of a module's values, to be drawn: those that a user names, and those that `tlx.dump_layout` asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from tlx_xdsl.analysis.layout_costs import BufferAccess, FunctionBuffers, allocation_of
from tlx_xdsl.analysis.layout_reasons import layout_of_value
from tlx_xdsl.analysis.named_values import NamedValue, printed_names, value_with_layout
from tlx_xdsl.dialects.base import chosen_layout, element_bits, scalar_type, shape_of_tensor, tensor_type
from tlx_xdsl.dialects.tlx import DumpLayoutOp
from tlx_xdsl.dialects.tt import FuncOp
from tlx_xdsl.dialects.ttg import ConvertLayoutOp, MemDescType
from tlx_xdsl.errors import InputError
from tlx_xdsl.layouts.encodings import DistributedLayout, SharedLayout
from tlx_xdsl.text.diagnostics import error_at

from .layout_svg import Access, Drawn, layouts_as_svg


def layouts_of(module: ModuleOp, names: Sequence[str], option: str) -> list[Drawn]:
    """The layouts of the values that `names` name, as `value_with_layout` reads them.

    A tensor that is converted comes with the flow to each of the layouts that it is converted to.
    Raises CompilationError as that does.
    """
    return [each for name in names for each in _drawn(value_with_layout(module, name, option))]


def dumped_layouts(module: ModuleOp) -> list[Drawn]:
    """The layouts that the kernel asks for by `tlx.dump_layout`, where they are chosen already."""
    names = printed_names(module)
    found: list[Drawn] = []
    for func in (op for op in module.walk() if isinstance(op, FuncOp)):
        for op in func.walk():
            if isinstance(op, DumpLayoutOp) and layout_of_value(op.src) is not None:
                found += _drawn(NamedValue(op.src, func, names))
    return found


def layouts_picture(layouts: Sequence[Drawn], module: ModuleOp) -> str:
    """The text of an SVG file. Raises CompilationError where a layout does not fit its shape."""
    try:
        return layouts_as_svg(layouts)
    except InputError as error:
        raise error_at(module, str(error)) from error


def _drawn(named: NamedValue) -> Iterator[Drawn]:
    value, layout = named.value, layout_of_value(named.value)
    assert layout is not None
    if isinstance(value.type, MemDescType):
        buffers = FunctionBuffers(named.func)
        root = buffers.root(value)
        accesses = _grouped(buffers.accesses(root)) if isinstance(layout, SharedLayout) else ()
        title = str(named) if root is value else f"{named}, a part of %{named.names[root]}"
        yield Drawn(title, layout, value.type.shape, value.type.element_bits, accesses)
        return
    shape, bits = shape_of_tensor(tensor_type(value.type)), element_bits(scalar_type(value.type))
    before = _layout_before(value)
    yield Drawn(str(named), layout, shape, bits, comes_from=before)
    seen = {layout}
    for use in value.uses:
        if isinstance(use.operation, ConvertLayoutOp) and isinstance(layout, DistributedLayout):
            result = use.operation.result
            wanted = layout_of_value(result)
            if wanted is not None and wanted not in seen:
                seen.add(wanted)
                yield Drawn(str(NamedValue(result, named.func, named.names)), wanted, shape, bits, comes_from=layout)


def _layout_before(value: SSAValue) -> DistributedLayout | None:
    """The layout that the tensor was converted from."""
    if not isinstance(value.owner, ConvertLayoutOp):
        return None
    before = layout_of_value(value.owner.src)
    return before if isinstance(before, DistributedLayout) else None


def _grouped(accesses: Sequence[BufferAccess]) -> list[Access]:
    """The accesses, those that are alike as one with all of their lines."""
    lines: dict[Access, list[int]] = {}
    for each in accesses:
        found = Access(str(each))
        if each.registers is not None and each.view is not None and each.cost is not None:
            view = each.view
            layout = chosen_layout(view.encoding)
            assert isinstance(layout, SharedLayout)
            matrices = each.cost.instruction != "vector"
            whole = allocation_of(view)
            found = Access(str(each), each.registers, layout, view.shape, whole, view.element_bits, matrices)
        lines.setdefault(found, []).extend([] if each.line is None else [each.line])
    return [_at(access, sorted(set(numbers))) for access, numbers in lines.items()]


def _at(access: Access, lines: Sequence[int]) -> Access:
    where = f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}: " if lines else ""
    return replace(access, words=where + access.words)
