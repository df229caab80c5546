"""The target that a module is for."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr

from tlx_xdsl.errors import InputError
from tlx_xdsl.targets import Target, target_of
from tlx_xdsl.text.diagnostics import error_at

TARGET = "ttg.target"
"""The module attribute that says it, in Triton's spelling: "cuda:90"."""


def module_target(module: ModuleOp) -> Target | None:
    """The target that a module names, or None where it names none.

    Raises CompilationError for what is no target.
    """
    named = module.attributes.get(TARGET)
    if named is None:
        return None
    text = named.data if isinstance(named, StringAttr) else str(named)
    capability = text.removeprefix("cuda:")
    if capability == text or not capability.isdigit():
        raise error_at(module, f'expected a target such as "cuda:90" in \'{TARGET}\', found "{text}"')
    try:
        return target_of(int(capability))
    except InputError as error:
        raise error_at(module, str(error)) from error
