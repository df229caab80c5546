"""The passes take time that is linear in the operations: so many calls of functions for each of them."""

# covers: linalg-fuse-elementwise, linalg-bufferize

import sys

import pytest

from tlx_xdsl.cpu.bufferize.bufferize import BufferizePass
from tlx_xdsl.cpu.bufferize.fuse_elementwise import FuseElementwisePass
from tlx_xdsl.text.parser import parse_module

T = "tensor<8xf32>"


def _generic(name, operand, operation):
    maps = "affine_map<(i) -> (i)>, affine_map<(i) -> (i)>"
    return (
        f"%e{name} = tensor.empty() : {T}\n"
        f'%v{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}} '
        f"ins({operand} : {T}) outs(%e{name} : {T}) {{\n^bb0(%a: f32, %o: f32):\n%r = {operation} %a : f32\n"
        f"linalg.yield %r : f32\n}} -> {T}"
    )


def _chain(operations):
    """One operation after the other, all of which are fused."""
    lines = [_generic(at, "%x" if at == 0 else f"%v{at - 1}", "math.exp") for at in range(operations)]
    return _kernel(lines, f"%v{operations - 1}")


def _fan(operations):
    """Operations that several others need, so that none is fused."""
    lines = [_generic(at, "%x" if at == 0 else f"%v{(at - 1) // 2}", "math.exp") for at in range(operations)]
    return _kernel(lines, f"%v{operations - 1}")


def _insertions(operations):
    """Elements that are set in one tensor, in place."""
    lines = ["%i = arith.constant 1 : index", "%f = arith.constant 1.0 : f32"]
    lines += [
        f"%v{at} = tensor.insert %f into {'%x' if at == 0 else f'%v{at - 1}'}[%i] : {T}" for at in range(operations)
    ]
    return _kernel(lines, f"%v{operations - 1}")


def _kernel(lines, last):
    return "\n".join([
        "func.func @kernel(%m: memref<8xf32>) {",
        f"%x = bufferization.to_tensor %m : memref<8xf32> to {T}",
        *lines,
        f"bufferization.materialize_in_destination {last} in writable %m : ({T}, memref<8xf32>) -> ()",
        "func.return\n}",
    ])  # fmt: skip


def _calls(text, pass_):
    module, count = parse_module(text), 0

    def profile(_frame, event, _argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        pass_.run(module)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("pass_", [FuseElementwisePass(), BufferizePass()], ids=lambda each: each.name)
@pytest.mark.parametrize("kernel", [_chain, _fan, _insertions])
def test_four_times_the_operations_take_four_times_the_calls(kernel, pass_):
    small, large = (_calls(kernel(operations), pass_) for operations in (50, 200))
    assert large < 4.2 * small
