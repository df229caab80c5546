"""Single tiles, `ttl.get_tile` and `ttl.pack_tile`: on all machines, beside numpy."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl.ttl.language as ttl
from tests.unit.ttl.metalium.metalium_programs import needs_compiler
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.ttl.interpreter import run as run_blocks
from tlx_xdsl.ttl.interpreter.ttkernel import run as run_calls
from tlx_xdsl.ttl.runtime.compilation import compile_module
from tlx_xdsl.ttl.runtime.execution import run_cpp

A, F = "!ttcore.tile<32x32, bf16>", "!ttcore.tile<32x32, f32>"
LOOP = """
    affine.for %i = 0 to 4 {
      %r = affine.apply affine_map<(d0) -> (3 - d0)> (%i)
      %x = ttl.get_tile %a, %i : A_BLOCK -> A
      %y = ttl.get_tile %b, %r : F_BLOCK -> F
      %z = ttl.tile_typecast %x {source = bf16, target = f32} : (A) -> F
      %s = ttl.tile_add %z, %y : F
      %u = ttl.tile_relu %s : F
      ttl.pack_tile %u, %o, %r : F, F_BLOCK
    }"""
"""Reverses the tiles of the second block: o[r] = relu(a[3 - r] + b[r])."""


def kernel(computing: str = LOOP) -> str:
    """A kernel that reads two blocks of 2x2 tiles, and writes one."""
    tensors = {"a": ("bf16", A), "b": ("f32", F), "o": ("f32", F)}
    made, reads = "", ""
    for name, (type_, tile) in tensors.items():
        tensor = f"tensor<64x64x{type_}, #enc>"
        made += f"  %{name}_cb = ttl.create_cb shape=[2, 2], element_type={tile}, buffer_factor=1 : CB<{tile}>\n"
        made += f"  %{name}_acc = ttl.tensor_accessor %{name}_t : {tensor} -> !ttl.tensor_accessor<{tensor}>\n"
        there, block = f"!ttl.tensor_accessor<{tensor}>", f"tensor<2x2x{tile}>"
        if name != "o":
            reads += f"    %{name} = ttl.cb_reserve %{name}_cb : CB<{tile}> -> {block}\n"
            reads += f"    %{name}_x = ttl.copy %{name}_acc[%c0, %c0], %{name} : {there}, {block} -> READ\n"
            reads += f"    ttl.wait %{name}_x\n    ttl.cb_push %{name}_cb\n"
    arguments = ", ".join(f"%{name}_t: tensor<64x64x{type_}, #enc>" for name, (type_, _) in tensors.items())
    text = f"""#enc = #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>
ttl.kernel @tiles({arguments}) attributes {{grid = #ttcore.grid<1x1>}} {{
{made}  %c0 = arith.constant 0 : index
  ttl.datamovement_thread @read {{
{reads}    ttl.thread_return
  }}
  ttl.compute_thread @compute {{
    %a = ttl.cb_wait %a_cb : CB<{A}> -> A_BLOCK
    %b = ttl.cb_wait %b_cb : CB<{F}> -> F_BLOCK
    %o = ttl.cb_reserve %o_cb : CB<{F}> -> F_BLOCK
{computing}
    ttl.cb_pop %a_cb
    ttl.cb_pop %b_cb
    ttl.cb_push %o_cb
    ttl.thread_return
  }}
  ttl.datamovement_thread @write {{
    %o = ttl.cb_wait %o_cb : CB<{F}> -> F_BLOCK
    %x = ttl.copy %o, %o_acc[%c0, %c0] : F_BLOCK, !ttl.tensor_accessor<tensor<64x64xf32, #enc>> -> WRITE
    ttl.wait %x
    ttl.cb_pop %o_cb
    ttl.thread_return
  }}
  ttl.kernel_return
}}
"""
    text = text.replace("A_BLOCK", f"tensor<2x2x{A}>").replace("F_BLOCK", f"tensor<2x2x{F}>")
    text = re.sub(r"CB<(!.*?>)>", r"!ttl.cb<[2, 2], \1, 1>", text)
    text = re.sub(r"\b(READ|WRITE)\b", lambda word: f"!ttl.transfer_handle<{word[0].lower()}>", text)
    return re.sub(r"(?<=[ (])(A|F)\b(?=[),\n ])", lambda word: {"A": A, "F": F}[word[0]], text)


def arrays() -> tuple[list[np.ndarray], np.ndarray]:
    """Operands, the second in reversed tiles already, and the expected result."""
    generator = np.random.default_rng(0)
    a = generator.integers(-9, 9, (64, 64)).astype(ml_dtypes.bfloat16)
    b = generator.integers(-9, 9, (64, 64)).astype(np.float32)
    tiles = a.astype(np.float32).reshape(2, 32, 2, 32).swapaxes(1, 2)
    reversed_ = tiles.reshape(4, 32, 32)[::-1].reshape(2, 2, 32, 32).swapaxes(1, 2).reshape(64, 64)
    return [a, b], np.maximum(reversed_ + b, 0)


@needs_compiler
@pytest.mark.parametrize("machine", ["blocks", "calls", "cpp"])
def test_three_machines(machine: str) -> None:
    operands, expected = arrays()
    out = np.full((64, 64), np.nan, np.float32)
    module = parse_module(kernel())
    verify_module(module)
    if machine == "blocks":
        run_blocks(module, [*operands, out])
    else:
        compiled = compile_module(module)
        if machine == "calls":
            run_calls(compiled.module, [*operands, out])
        else:
            run_cpp(compiled, [ttl.TensorSpec(each.shape, each.dtype) for each in (*operands, out)], [*operands, out])
    np.testing.assert_array_equal(out, expected)


def test_the_calls() -> None:
    """Section 6.2: copies to registers, and a pack of one tile; section 6.3's order of them."""
    source = compile_module(parse_module(kernel())).sources["compute.cpp"]
    calls = re.findall(r"\b(copy_tile|pack_tile<true>|tile_regs_\w+|add_binary_tile)\(", source)
    acquire, commit, wait, release = (f"tile_regs_{each}" for each in ("acquire", "commit", "wait", "release"))
    assert calls == [acquire, "copy_tile", "copy_tile", "add_binary_tile", commit, wait, "pack_tile<true>", release]


TILE_0 = "    %x = ttl.get_tile %a, %c0 : A_BLOCK -> A\n"


@pytest.mark.parametrize(
    ("computing", "message"),
    [
        ("    %x = ttl.get_tile %a, %c0 : A_BLOCK -> F\n    ttl.pack_tile %x, %o, %c0 : F, F_BLOCK",
         f"a tile of tensor<2x2x{A}> is a {A}, found {F}"),
        (f"{TILE_0}    affine.for %i = 0 to 4 {{\n      ttl.pack_tile %x, %o, %i : A, F_BLOCK\n    }}",
         "must come from a ttl.get_tile in the same block of operations"),
        (f"{TILE_0}    %y = ttl.tile_exp %x : A\n    %z = ttl.tile_transpose %y : A\n"
         "    ttl.pack_tile %z, %o, %c0 : A, F_BLOCK",
         "'ttl.tile_transpose' reads its tile from a circular buffer"),
        (f"{TILE_0}    %z = ttl.tile_matmul %x, %x, %x : A, A, A -> A\n    ttl.pack_tile %z, %o, %c0 : A, F_BLOCK",
         "'ttl.tile_matmul' adds to what a register has"),
    ],
)  # fmt: skip
def test_refused(computing: str, message: str) -> None:
    with pytest.raises(CompilationError, match=re.escape(message)):
        checked(kernel(computing))


def checked(text: str) -> None:
    """Verify and compile a module, as `tlx-opt` does."""
    module = parse_module(text)
    verify_module(module)
    compile_module(module)
