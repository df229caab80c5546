"""Kernels as small texts: some statements between a head and an end."""

from collections.abc import Sequence
from typing import Any

from tlx_xdsl.runtime.simulate.interpret import interpret_text

LAYOUTS = """
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b2 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#s2 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#tma = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
"""


def run(arguments: str, body: str, values: Sequence[Any], grid: tuple[int, ...] = (1,), **options: Any) -> Any:
    """Run a kernel with these arguments and statements."""
    text = f"""{LAYOUTS}
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"}} {{
  tt.func public @kernel({arguments}) {{
    {body}
    tt.return
  }}
}}
"""
    return interpret_text(text, grid, list(values), **options)


def pointers(name: str, element: str, count: int, result: str) -> str:
    """Statements that make `result` the `count` pointers from an argument on."""
    return f"""
    %{result}_i = tt.make_range {{end = {count} : i32, start = 0 : i32}} : tensor<{count}xi32, #b>
    %{result}_s = tt.splat %{name} : !tt.ptr<{element}> -> tensor<{count}x!tt.ptr<{element}>, #b>
    %{result} = tt.addptr %{result}_s, %{result}_i : tensor<{count}x!tt.ptr<{element}>, #b>, tensor<{count}xi32, #b>
"""


def pointers2(name: str, element: str, rows: int, columns: int, result: str) -> str:
    """The same for a matrix."""
    whole, tensor = f"tensor<{rows}x{columns}xi32, #b2>", f"tensor<{rows}x{columns}x!tt.ptr<{element}>, #b2>"

    def along(axis: int, size: int, shape: str) -> str:
        slice_, at = f"#ttg.slice<{{dim = {1 - axis}, parent = #b2}}>", f"%{result}_{axis}"
        return f"""
    {at}i = tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32, {slice_}>
    {at}e = tt.expand_dims {at}i {{axis = {1 - axis} : i32}} : tensor<{size}xi32, {slice_}> -> tensor<{shape}xi32, #b2>
    {at} = tt.broadcast {at}e : tensor<{shape}xi32, #b2> -> {whole}"""

    return f"""{along(0, rows, f"{rows}x1")}{along(1, columns, f"1x{columns}")}
    %{result}_c = arith.constant dense<{columns}> : {whole}
    %{result}_m = arith.muli %{result}_0, %{result}_c : {whole}
    %{result}_r = arith.addi %{result}_m, %{result}_1 : {whole}
    %{result}_s = tt.splat %{name} : !tt.ptr<{element}> -> {tensor}
    %{result} = tt.addptr %{result}_s, %{result}_r : {tensor}, {whole}
"""
