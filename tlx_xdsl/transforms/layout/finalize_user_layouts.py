"""`tlx-finalize-user-layouts`: remove the marks of the user's choices from layouts.

No pass of ours changes a layout any more. Constants get the types of their results, and conversions that
convert nothing go.

Before:
```mlir
%0 = ttg.convert_layout %x : tensor<64xf32, #blocked> -> tensor<64xf32, #tlx.user_layout<#blocked>>
%1 = math.exp %0 : tensor<64xf32, #tlx.user_layout<#blocked>>
```
After:
```mlir
%1 = math.exp %x : tensor<64xf32, #blocked>
```
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.ir import Attribute, Operation, ParametrizedAttribute

from tlx_xdsl.dialects import tlx, ttg
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import Pass, forward, ops_of
from .encodings import map_encodings, values_of, without


class FinalizeUserLayoutsPass(Pass):
    """Replace every `#tlx.user_layout` by the layout in it."""

    name = "tlx-finalize-user-layouts"

    def run(self, op: ModuleOp) -> None:
        """Unwrap, drop what converts nothing, and check that no mark is left."""
        map_encodings(op, lambda encoding, _: without(encoding, tlx.UserLayoutAttr))
        for inner in ops_of(op, ttg.ConvertLayoutOp):
            if inner.src.type == inner.result.type:
                forward(inner, inner.src)
        known: dict[Attribute, bool] = {}
        for inner in op.walk():
            if any(_is_marked(attribute, known) for attribute in _attributes(inner)):
                raise error_at(inner, f"unresolved TLX user layout after finalization: '{inner.name}' has one")


def _attributes(op: Operation) -> Iterator[Attribute]:
    yield from op.properties.values()
    yield from op.attributes.values()
    yield from (value.type for value in values_of(op))


def _is_marked(attribute: Attribute, known: dict[Attribute, bool]) -> bool:
    """True if a mark is in `attribute`; `known` has the answers for those that were seen."""
    if attribute not in known:
        parts: list[Attribute] = []
        if isinstance(attribute, ArrayAttr):
            parts = list(cast(ArrayAttr[Attribute], attribute))
        elif isinstance(attribute, DictionaryAttr):
            parts = list(attribute.data.values())
        elif isinstance(attribute, ParametrizedAttribute):
            parts = list(attribute.parameters)
        known[attribute] = isinstance(attribute, tlx.UserLayoutAttr) or any(_is_marked(part, known) for part in parts)
    return known[attribute]
