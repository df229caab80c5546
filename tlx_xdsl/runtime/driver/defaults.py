"""The default options of the kernels in a file: a table with the name `TLX_COMPILE`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from tlx_xdsl.errors import CompilationError, SourceLocation

DEFAULTS = "TLX_COMPILE"
"""The module-level name of the table."""

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "cluster", "target")
"""Launch options that the table may hold beside the signature and the constexprs."""


@dataclass(frozen=True)
class KernelDefaults:
    """The entry of one kernel in a file's `TLX_COMPILE`."""

    signature: Mapping[str, str] = field(default_factory=dict[str, str])
    constexprs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Launch options such as `num_warps`."""


def kernel_defaults(path: str, names: Mapping[str, Any], kernel: str) -> KernelDefaults:
    """Return what the file at `path`, whose module holds `names`, says about one of its kernels.

    Raises CompilationError for a table of another form.
    """
    table: object = names.get(DEFAULTS, {})
    place = SourceLocation(path, 0)
    if not isinstance(table, dict):
        raise CompilationError(f"{DEFAULTS} must be a dictionary from kernel names to settings", place)
    settings = cast(dict[str, object], table).get(kernel, {})
    if not isinstance(settings, dict):
        raise CompilationError(f"{DEFAULTS}['{kernel}'] must be a dictionary", place)
    settings = dict(cast(dict[str, Any], settings))
    signature, constexprs = settings.pop("signature", {}), settings.pop("constexprs", {})
    surplus = next((key for key in settings if key not in OPTIONS), None)
    if surplus is not None:
        raise CompilationError(
            f"{DEFAULTS}['{kernel}'] has the unknown entry '{surplus}', expected signature, constexprs or one of "
            f"{', '.join(OPTIONS)}",
            place,
        )
    for entry, value in (("signature", signature), ("constexprs", constexprs), *settings.items()):
        if not _fits(entry, value):
            raise CompilationError(f"{DEFAULTS}['{kernel}']['{entry}'] must be {_FORMS[entry]}, found {value!r}", place)
    return KernelDefaults(signature, constexprs, settings)


_NUMBER = "a whole number"
_FORMS = {
    "signature": "a dictionary from the names of arguments to their types, such as '*fp16'",
    "constexprs": "a dictionary from the names of arguments to their values",
    "target": "the name of a target, such as 'sm_90a'",
    "cluster": "three whole numbers",
    **dict.fromkeys(("num_warps", "num_stages", "num_ctas"), _NUMBER),
    "maxnreg": f"{_NUMBER} or None",
    "enable_fp_fusion": "True, False or None",
}
"""The form of each entry of a kernel's settings."""


def _fits(entry: str, value: object) -> bool:
    match entry:
        case "signature":
            types = cast(Mapping[object, object], value).values() if isinstance(value, Mapping) else [None]
            return all(isinstance(type_, str | tuple) for type_ in types)
        case "constexprs":
            return isinstance(value, Mapping)
        case "target":
            return isinstance(value, str)
        case "enable_fp_fusion":
            return value is None or isinstance(value, bool)
        case "cluster":
            return isinstance(value, list | tuple) and all(map(_is_number, cast(list[object], value)))
        case _:
            return _is_number(value) or (entry == "maxnreg" and value is None)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
