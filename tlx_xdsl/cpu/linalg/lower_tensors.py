"""`linalg-lower-tensors`: what computes on tensors of numbers becomes `linalg` and `tensor`.

Before:
```mlir
%1 = arith.addf %0, %0 : tensor<64xf32>
%2 = "tt.reduce"(%1) <{axis = 0 : i32}> ({ ... arith.maximumf ... }) : (tensor<64xf32>) -> f32
```
After:
```mlir
%e = tensor.empty() : tensor<64xf32>
%1 = linalg.generic {...} ins(%0, %0 : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
^bb0(%a: f32, %b: f32, %out: f32):
  %sum = arith.addf %a, %b : f32
  linalg.yield %sum : f32
} -> tensor<64xf32>
%lowest = arith.constant 0xff800000 : f32
%m = bufferization.alloc_tensor() : tensor<f32>
%start = tensor.insert %lowest into %m[] : tensor<f32>
%r = linalg.reduce ins(%1 : tensor<64xf32>) outs(%start : tensor<f32>) dimensions = [0] ...
%2 = tensor.extract %r[] : tensor<f32>
```
Numbers stay the same, bit for bit, but where operations on floats have no defined order: reductions, scans and scaled
products are done in the order of the elements, scans of long rows in parts. Scalar operations of `tt` become `arith`
and `math`, too. Memory, pointers, functions, control flow, and operations that report are left as they are.

The handlers are in `tensors/`, by topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, NoneAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator, is_side_effect_free

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import as_tensor, is_pointer, scalar_type
from tlx_xdsl.dialects.ttg.registers import BarrierOp
from tlx_xdsl.transforms.rewriting import Pass

# The handlers register when they are imported.
from . import tensors as tensors
from .tensors.elementwise import lower_elementwise
from .tensors.emitter import EXPANSIONS, HANDLERS, Emitter, Options, refused


@dataclass(frozen=True)
class LowerTensorsPass(Pass):
    """Lower all operations on tensors of numbers."""

    name = "linalg-lower-tensors"

    truncates_tf32: bool = True
    """Whether f32 operands of a dot with `inputPrecision = tf32` lose the bits that tensor cores do not look at."""

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place, in a time that is linear in its operations.

        Raises CompilationError for an operation that has no lowering.
        """
        options = Options(self.truncates_tf32)
        for inner in list(op.walk()):
            lower(inner, options)


_OF_GPUS = ("ttg", "ttng", "tlx", "nvvm")


def lower(op: Operation, options: Options) -> None:
    """Replace one operation, where it computes on tensors of numbers, or is a scalar one of `tt`."""
    types = (*op.operand_types, *op.result_types)
    tensors = [tensor for type_ in types if (tensor := as_tensor(type_)) is not None]
    dialect = op.name.partition(".")[0]
    if isinstance(op, BarrierOp):
        # A program is one thread from here on, and sees its accesses in their order.
        op.detach()
        op.erase()
        return
    if isinstance(op, tt.ElementwiseInlineAsmOp):
        raise refused(op, "its PTX runs on NVIDIA's GPUs only")
    if tensors and dialect in _OF_GPUS:
        raise refused(op, "it is an operation of NVIDIA's GPUs")
    if any(is_pointer(scalar_type(type_)) for type_ in types):
        return
    if not tensors:
        if (expand := EXPANSIONS.get(type(op))) is not None:
            _replace(op, [expand(Emitter.before(op), op, op.operands)])
        return
    if any(not isinstance(tensor.encoding, NoneAttr) for tensor in tensors):
        raise refused(op, "its tensors have layouts, and this pass takes Triton's IR before they are chosen")
    if (handler := HANDLERS.get(type(op))) is not None:
        _replace(op, handler(Emitter.before(op), op, options))
    elif type(op) in EXPANSIONS or dialect in ("arith", "math"):
        _replace(op, lower_elementwise(Emitter.before(op), op))
    elif dialect == "tt" and is_side_effect_free(op) and not op.regions and not op.has_trait(IsTerminator):
        raise refused(op, "there is no lowering of it")


def _replace(op: Operation, values: Sequence[SSAValue]) -> None:
    """Let the users of the results take `values`, and erase `op`, unless it stays as it is."""
    if op.results and values[0] is op.results[0]:
        return
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    Rewriter.erase_op(op)
