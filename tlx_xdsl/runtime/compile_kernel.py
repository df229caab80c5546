"""The methods of a kernel that compile it: for types that are written out, or for those that arguments have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from tlx_xdsl.errors import InputTypeError
from tlx_xdsl.frontend.python.source import Signature

from .driver.defaults import OPTIONS
from .driver.host_values import bound, split_options, typed
from .driver.reproducible import reproducible
from .driver.specialization import Specialization, pass_list

if TYPE_CHECKING:
    from .driver.compilation import CompiledText
    from .kernel import Kernel

_COMPILED_FOR = ("target", "num_warps", "num_ctas", "cluster")
_OF_COMPILE = (*_COMPILED_FOR, "triton_version", "passes", "signature", "constexprs")


def compile(kernel: Kernel, /, *args: Any, options: Mapping[str, Any] | None = None, **named: Any) -> CompiledText:
    """Compile a kernel to text: see `Kernel.compile`."""
    from .driver.compilation import compile_text

    wanted, version = specialization_of_call(kernel, args, named, options)
    with reproducible(kernel.source, specialization=wanted):
        return compile_text(kernel.source, wanted, triton_version=version)


def specialization_of_call(
    kernel: Kernel, args: Sequence[Any], named: Mapping[str, Any], options: Mapping[str, Any] | None
) -> tuple[Specialization, str | None]:
    """Return what a call of `Kernel.compile` asks for, and for which version of Triton. Raises as that does."""
    source = kernel.source
    given, chosen = split_options(source, named, _OF_COMPILE)
    chosen |= options or {}
    if (surplus := next((name for name in chosen if name not in _OF_COMPILE), None)) is not None:
        raise InputTypeError(f"options: there is no option '{surplus}', the options are {', '.join(_OF_COMPILE)}")
    version, signature = chosen.pop("triton_version", None), chosen.pop("signature", None)
    chosen["passes"] = pass_list(chosen.get("passes", ()))
    constexprs: Mapping[str, Any] | None = chosen.pop("constexprs", None)
    if signature is None and args and isinstance(args[0], Mapping):
        signature, *rest = args
        constexprs = rest[0] if len(rest) == 1 else constexprs
        if len(rest) > 1:
            raise InputTypeError(f"'{source.name}': after the types and constexprs, options are named")
    elif signature is None:
        found = typed(source, bound(source, args, {**given, **(constexprs or {})}))
        signature, constexprs = found.signature, found.constexprs
        given = {}
    if given:
        raise InputTypeError(f"'{source.name}': where types are written out, '{next(iter(given))}' is no option")
    return Specialization(cast("Mapping[str, Signature]", signature), constexprs or {}, **chosen), version


def signature_of(
    kernel: Kernel, /, *args: Any, options: Mapping[str, Any] | None = None, **named: Any
) -> dict[str, Any]:
    """The entry of `TLX_COMPILE` for launches with these arguments: see `Kernel.signature_of`."""
    source = kernel.source
    given, chosen = split_options(source, named, OPTIONS)
    found = typed(source, bound(source, args, given))
    return {"signature": found.signature, "constexprs": found.constexprs, **chosen, **(options or {})}
