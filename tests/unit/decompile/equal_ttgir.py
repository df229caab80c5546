"""Equality of a specialised kernel's source with its module, up to what the source can't say."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp

from tests.gallery.plain.family import Family
from tests.oracle.compare import difference_of_modules
from tlx_xdsl.decompile.host import PlainKernel
from tlx_xdsl.decompile.specialised import source_of_specialised
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.dialects.tt import FuncOp
from tlx_xdsl.runtime.driver.compilation import Specialization, frontend_module, passes_for
from tlx_xdsl.runtime.driver.defaults import KernelDefaults, kernel_defaults
from tlx_xdsl.runtime.specialize.rules import by_rule
from tlx_xdsl.text.diagnostics import collected_diagnostics
from tlx_xdsl.transforms.registry import pass_class
from tlx_xdsl.transforms.warp_specialize.specialize import Decisions, specialize


def table_of(family: Family, constants: Mapping[str, Any] | None = None) -> KernelDefaults:
    """Return the defaults that the file of a plain kernel declares, with some other constants."""
    module = sys.modules[family.kernel.source.fn.__module__]
    found = kernel_defaults(str(module.__file__), vars(module), family.name)
    return replace(found, constexprs={**found.constexprs, **(constants or {})})


def specialised(family: Family, constants: Mapping[str, Any] | None = None, **decisions: int | bool) -> ModuleOp:
    """The module of a plain kernel after all passes but the last one."""
    table = table_of(family, constants)
    module = frontend_module(family.kernel.source, Specialization(table.signature, table.constexprs, **table.options))
    with collected_diagnostics():
        specialize(module, make_context(), by_rule(Decisions(**decisions), module), replicate=False)
    return module


def source_of(family: Family, module: ModuleOp, constants: Mapping[str, Any] | None = None) -> str:
    """The source that is written for it."""
    plain = PlainKernel([each.name for each in family.kernel.source.parameters], table_of(family, constants).constexprs)
    text, refused = source_of_specialised(module, f"{family.name}, specialised.", plain)
    assert [op.name for op in refused] == []
    return text


def difference_from_source(module: ModuleOp, again: ModuleOp, *, passes: bool = False) -> str | None:
    """Say how a specialised module differs from what the frontend makes of its source; None if it does not.

    With `passes` after all passes of the compiler, and otherwise before them.
    """
    both = [module.clone(), again.clone()]
    pass_class("tlx-ws-replicate-tasks")().apply(make_context(), both[0])
    for each in both:
        _drop_what_is_said(each)
        for step in passes_for(plain=False) if passes else ():
            step.apply(make_context(), each)
    return difference_of_modules(*both)


def _drop_what_is_said(module: ModuleOp) -> None:
    """Remove reasons, and what the host does: they are comments and Python in the source."""
    for op in module.walk():
        for name in ("tlx.note", "tlx.launch_conditions", "tlx.split"):
            op.attributes.pop(name, None)
        if isinstance(op, FuncOp) and op.arg_attrs is not None:
            kept = [{k: v for k, v in each.data.items() if not k.startswith("tlx.host")} for each in op.arg_attrs.data]
            op.arg_attrs = ArrayAttr([DictionaryAttr(each) for each in kept])
