"""From what Triton's runtime says of a launch to what our compiler is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from tlx_xdsl.frontend.python.signature import Fixed, Signature
from tlx_xdsl.targets import target_of

from ..driver.compilation import Specialization
from ..driver.specialization import CLUSTER_OPTION

Path = tuple[int, ...]
"""The position of an argument: its index, then the indices into tuples."""

_DIVISIBILITY = "tt.divisibility"


def specialization_of(
    names: Sequence[str],
    signature: Mapping[str, Any],
    constants: Mapping[Path, Any],
    attributes: Mapping[Path, Sequence[Sequence[Any]]],
    options: Mapping[str, Any],
    capability: int,
) -> Specialization:
    """Return what to compile.

    names:       the kernel's parameters, in order.
    signature:   the type of each as Triton spells it; `constexpr`, also within tuples, for what `constants` holds.
    attributes:  what is known of arguments, such as `[["tt.divisibility", 16]]`.
    options:     the launch options, among them `ctas_per_cga`.
    """
    types: dict[str, Signature] = {}
    constexprs: dict[str, Any] = {}
    for index, name in enumerate(names):
        path = (index,)
        if signature[name] == "constexpr":
            constexprs[name] = constants[path]
        else:
            types[name] = _typed(signature[name], path, constants, attributes)
    x, y, z = options.get(CLUSTER_OPTION) or (1, 1, 1)
    return Specialization(
        types,
        constexprs,
        target_of(capability).name,
        options["num_warps"],
        options["num_ctas"],
        (x, y, z),
        bool(options.get("debug")),
        options.get("maxnreg"),
        enable_fp_fusion=options.get("enable_fp_fusion"),
    )


def _typed(
    spelled: Any, path: Path, constants: Mapping[Path, Any], attributes: Mapping[Path, Sequence[Sequence[Any]]]
) -> Signature:
    if isinstance(spelled, tuple):
        spelled_items = cast("tuple[Any, ...]", spelled)
        items = tuple(_typed(item, (*path, index), constants, attributes) for index, item in enumerate(spelled_items))
        cls: Any = type(spelled_items)
        return cls(*items) if hasattr(cls, "_fields") else items
    if spelled == "constexpr":
        return Fixed(constants[path])
    known = {str(name): value for name, value in attributes.get(path, ())}
    return f"{spelled}:{known[_DIVISIBILITY]}" if _DIVISIBILITY in known else str(spelled)
