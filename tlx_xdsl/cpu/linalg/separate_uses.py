"""`linalg-separate-uses`: what serves as an address and as data becomes two operations, and each says what it is for.

The attribute `linalg.use` of an operation on integers or pointers is MetaUse for what addresses and masks alone are
made of, DataUse for the rest. What serves as both (MixedUse) is cloned: addresses take the clone. Once accesses have
views of memory, what is marked MetaUse has no users and can be erased. `triton-to-linalg` does without this pass,
since there dead code goes anyway; it shows the analysis, and serves lowerings that delete by the mark.

Before:
```mlir
%r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
%q = tt.addptr %p, %r : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
tt.store %q, %r : tensor<64x!tt.ptr<i32>>
```
After:
```mlir
%r = tt.make_range {start = 0 : i32, end = 64 : i32, linalg.use = "DataUse"} : tensor<64xi32>
%m = tt.make_range {start = 0 : i32, end = 64 : i32, linalg.use = "MetaUse"} : tensor<64xi32>
%q = tt.addptr %p, %m {linalg.use = "MetaUse"} : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
tt.store %q, %r : tensor<64x!tt.ptr<i32>>
```
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.traits import is_side_effect_free

from tlx_xdsl.analysis.integers.transfer import bits_of, is_pointer
from tlx_xdsl.analysis.structure.uses import UseKind, Uses
from tlx_xdsl.dialects import tt
from tlx_xdsl.transforms.rewriting import Pass, insert_before, ops_of

USE = "linalg.use"
_META, _DATA = (StringAttr(kind.label) for kind in (UseKind.META, UseKind.DATA))


class SeparateUsesPass(Pass):
    """Clone what has mixed uses, and mark the uses of all."""

    name = "linalg-separate-uses"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for function in ops_of(op, tt.FuncOp):
            _separate(function)


def _separate(function: tt.FuncOp) -> None:
    uses = Uses(function)
    # Users come before what they use, so that a clone's operands are separated after it.
    for op in list(function.body.walk())[::-1]:
        if not _computes(op):
            continue
        match uses.of(op):
            case UseKind.META:
                op.attributes[USE] = _META
            case UseKind.DATA:
                op.attributes[USE] = _DATA
            case kind if kind == UseKind.META | UseKind.DATA:
                _clone(op, uses)
            case _:
                pass


def _computes(op: Operation) -> bool:
    """True for operations that may serve as addresses, and can be done twice."""
    serves = any(bits_of(result) is not None or is_pointer(result) for result in op.results)
    return serves and not op.regions and is_side_effect_free(op)


def _clone(op: Operation, uses: Uses) -> None:
    clone = insert_before(op, op.clone())
    op.attributes[USE], clone.attributes[USE] = _DATA, _META
    for result, other in zip(op.results, clone.results, strict=True):
        other.name_hint = result.name_hint
        result.replace_uses_with_if(other, uses.as_address)
