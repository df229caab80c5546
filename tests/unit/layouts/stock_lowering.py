"""Lowering of layouts by stock Triton: modules in, memory instructions of PTX out, without a clean-up pass.

Run as a program it reads a JSON list of modules from standard input and prints their PTX and shared memory: an
assertion of stock Triton then ends that process, not the tests'.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tlx_xdsl.dialects.base.layouts import layout_attr
from tlx_xdsl.layouts.encodings import Ints, Layout

_VECTOR = re.compile(r"\b((?:ld|st)\.(?:shared|global))[.\w:]*?(?:\.v(\d))?\.[bf](\d+)\b")
_OTHER = re.compile(r"\b(shfl\.sync\.\w+|(?:ld|st)matrix[.\w]*)")
_ELEMENT = {8: "i8", 16: "f16", 32: "f32", 64: "f64"}


def memory_instructions(modules: list[str]) -> list[dict[str, int]]:
    """Count instructions by kind, as a thread executes them, for each module; `scratch`: bytes of shared memory.

    A load or store is named with the bits that it moves, `ld.shared 128`, which versions spell in different ways.
    """
    return [_count(*each) for each in lowered(modules)]


def lowered(modules: list[str]) -> list[tuple[str, int]]:
    """The PTX of each module, and the bytes of shared memory that it wants."""
    run = subprocess.run(
        [sys.executable, __file__], input=json.dumps(modules), capture_output=True, text=True, check=True, timeout=300
    )
    return json.loads(run.stdout.splitlines()[-1])


def copy_module(source: Layout, shape: Ints, element_bits: int, steps: str, **layouts: Layout) -> str:
    """A kernel that loads %v with the layout #src, takes `steps` to %w with #dst, and stores that.

    `steps` may use `!tensor` and the `layouts`; 4 warps run it.
    """
    element = _ELEMENT[element_bits]
    layouts = {"src": source, "dst": source, **layouts}
    aliases = "".join(f"#{name} = {layout_attr(layout)}\n" for name, layout in layouts.items())
    rows, columns = shape
    return (
        f"{aliases}#smem = #ttg.shared_memory\n"
        'module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", '
        '"ttg.threads-per-warp" = 32 : i32} {\n'
        f"tt.func public @k(%x: !tt.ptr<{element}> {{tt.divisibility = 16 : i32}}, "
        f"%y: !tt.ptr<{element}> {{tt.divisibility = 16 : i32}}) {{\n"
        f"{_pointers('a', 'src', 'x', rows, columns, element)}"
        f"  %v = tt.load %a : tensor<{rows}x{columns}x!tt.ptr<{element}>, #src>\n{steps}"
        f"{_pointers('b', 'dst', 'y', rows, columns, element)}"
        f"  tt.store %b, %w : tensor<{rows}x{columns}x!tt.ptr<{element}>, #dst>\n  tt.return\n}}\n}}\n"
    )


def conversion(source: Layout, target: Layout, shape: Ints, element_bits: int) -> str:
    """A kernel that converts once."""
    kind = f"tensor<{shape[0]}x{shape[1]}x{_ELEMENT[element_bits]}"
    steps = f"  %w = ttg.convert_layout %v : {kind}, #src> -> {kind}, #dst>\n"
    return copy_module(source, shape, element_bits, steps, dst=target)


def through_buffer(layout: Layout, buffer: Layout, shape: Ints, element_bits: int) -> str:
    """A kernel that stores to a buffer in shared memory and loads from it."""
    kind = f"{shape[0]}x{shape[1]}x{_ELEMENT[element_bits]}"
    memory = f"!ttg.memdesc<{kind}, #buf, #smem, mutable>"
    steps = (
        f"  %m = ttg.local_alloc : () -> {memory}\n"
        f"  ttg.local_store %v, %m : tensor<{kind}, #src> -> {memory}\n"
        f"  %w = ttg.local_load %m : {memory} -> tensor<{kind}, #src>\n"
    )
    return copy_module(layout, shape, element_bits, steps, buf=buffer)


def _pointers(name: str, layout: str, base: str, rows: int, columns: int, element: str) -> str:
    """Row-major pointers `%name`."""
    over_rows, over_columns = (f"#ttg.slice<{{dim = {dim}, parent = #{layout}}}>" for dim in (1, 0))
    whole = f"tensor<{rows}x{columns}xi32, #{layout}>"
    pointers = f"tensor<{rows}x{columns}x!tt.ptr<{element}>, #{layout}>"
    down, along = f"tensor<{rows}x1xi32, #{layout}>", f"tensor<1x{columns}xi32, #{layout}>"
    return f"""\
  %{name}0 = tt.make_range {{start = 0 : i32, end = {rows} : i32}} : tensor<{rows}xi32, {over_rows}>
  %{name}1 = tt.make_range {{start = 0 : i32, end = {columns} : i32}} : tensor<{columns}xi32, {over_columns}>
  %{name}2 = tt.expand_dims %{name}0 {{axis = 1 : i32}} : tensor<{rows}xi32, {over_rows}> -> {down}
  %{name}3 = tt.expand_dims %{name}1 {{axis = 0 : i32}} : tensor<{columns}xi32, {over_columns}> -> {along}
  %{name}4 = arith.constant dense<{columns}> : {down}
  %{name}5 = arith.muli %{name}2, %{name}4 : {down}
  %{name}6 = tt.broadcast %{name}5 : {down} -> {whole}
  %{name}7 = tt.broadcast %{name}3 : {along} -> {whole}
  %{name}8 = arith.addi %{name}6, %{name}7 : {whole}
  %{name}9 = tt.splat %{base} : !tt.ptr<{element}> -> {pointers}
  %{name} = tt.addptr %{name}9, %{name}8 : {pointers}, {whole}
"""


def _count(ptx: str, shared: int) -> dict[str, int]:
    counts = Counter(f"{kind} {int(length or 1) * int(bits)}" for kind, length, bits in _VECTOR.findall(ptx))
    counts.update(_OTHER.findall(ptx))
    counts["scratch"] = shared
    return dict(counts)


def _lower(module: str) -> tuple[str, object]:
    from tlx_xdsl.backend.options import BackendOptions
    from tlx_xdsl.backend.triton_api import StockModule

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "module.ttgir"
        path.write_text(module)
        stock = StockModule(path, BackendOptions())
        facts: dict[str, object] = {}
        return stock.to_ptx(stock.to_llir(facts), facts), facts["shared"]


if __name__ == "__main__":
    print(json.dumps([_lower(module) for module in json.load(sys.stdin)]))
