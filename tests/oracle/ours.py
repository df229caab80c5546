"""Our frontend on the oracle's kernels."""

from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tests.gallery.cases import Case, Constant
from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import profile_for
from tlx_xdsl.text.verify import verify_module


def build(case: Case) -> ModuleOp:
    """Return the verified module of a case, without the attributes of the launch.

    Raises CompilationError for every fault in the kernel.
    """
    module = launchable(case)
    # Stock's module knows the target only after these passes; one of them divides otherwise when it is known.
    for name in [name for name in module.attributes if name.startswith("ttg.")]:
        del module.attributes[name]
    return module


def launchable(case: Case, *, capability: int = 90) -> ModuleOp:
    """Return the verified module of a case for a GPU of compute `capability`, from which our passes go on.

    Raises CompilationError for every fault in the kernel.
    """
    signature, constexprs = argument_types(case)
    module = build_module(source(case.kernel), signature, constexprs, capability=capability)
    verify_module(module)
    return module


def argument_types(case: Case) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the types of a case's run-time arguments, and the values of the others."""
    signature: dict[str, Any] = {}
    constexprs: dict[str, Any] = {}
    for name, argument in case.arguments.items():
        if isinstance(argument, str) or (isinstance(argument, tuple) and all(isinstance(t, str) for t in argument)):
            signature[name] = argument
        else:
            constexprs[name] = argument.value if isinstance(argument, Constant) else argument
    return signature, constexprs


def text(case: Case) -> str:
    """Return the text of a case's module, with locations, in the spelling of Triton 3.9; see `build`."""
    return print_module(build(case), profile=profile_for("3.9.0"))


def source(kernel: Any) -> KernelSource:
    """Return the source of our kernel, or of one that stock's `jit` has made."""
    source = getattr(kernel, "source", None)
    return source if isinstance(source, KernelSource) else KernelSource(kernel.fn)
