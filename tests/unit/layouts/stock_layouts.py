"""Questions to stock Triton about layouts, in a process of its own: on a layout that it does not like it aborts.

A question is a tuple that begins with its name:

- `("bases", layout, shape)`: the bases that `GluonOpBuilder.to_linear_layout` computes, as `{input: bases}`. Before
  Triton 3.7 it answers for register layouts only; no version has a constructor for generic_linear, and padded_shared
  has no linear layout as a whole.
- `("alignment", layout, shape)`: bytes that the address of a shared-memory buffer is a multiple of (Triton 3.7).
- `("view", layout, shape, by_hardware)`: what stock prints of a layout, by the tensor's elements or by the hardware.
- `("accepts", text)`: whether the module parses and verifies.
- `("prints", text)`: the module, parsed and printed.
- `("shared bytes", text)`, `("tmem columns", text)`: what the module's buffers take.
- `("tmem registers", layout, shape)`: the register layout in which four warps load the buffer with tcgen05.ld.32x32b.
"""

import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from tlx_xdsl.layouts.encodings import (
    Ints,
    Layout,
    PaddedSharedLayout,
    SharedLinearLayout,
    TmemLayout,
    key_of,
)

Question = tuple[Any, ...]

ANSWERER = Path(__file__).with_name("stock_layouts_answers.py")


class Aborted:
    """The answer to a question that ended the process."""

    def __init__(self, said: str):
        self.said = said

    def __repr__(self) -> str:
        return f"Aborted({self.said!r})"


def ask(questions: Sequence[Question]) -> list[Any]:
    """The answers, in order; `Aborted` or an error's text where there is none."""
    answers: list[Any] = []
    while len(answers) < len(questions):
        with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
            file.write(pickle.dumps(questions[len(answers) :]))
            file.flush()
            done = subprocess.run(
                [sys.executable, ANSWERER, file.name],
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            )
        answers += [json.loads(line) for line in done.stdout.splitlines()]
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "rror" in line or "llegal" in line]
            answers.append(Aborted("\n".join(lines[:3])))
    return answers


# Texts ---------------------------------------------------------------------------------------------------------------


def layout_text(layout: Layout) -> str:
    """`layout` as Triton spells it (all but those of tensor memory)."""
    match layout:
        case PaddedSharedLayout():
            pads = ", ".join(f"{every}:+{pad}" for every, pad in zip(layout.intervals, layout.paddings, strict=True))
            block = text_of(layout.block)
            return f"#ttg.padded_shared<[{pads}] {{offset = {text_of(layout.offset)}, block = {block}}}>"
        case SharedLinearLayout():
            block = f", block = {text_of(layout.block)}" if layout.block else ""
            offset = text_of(layout.offset)
            return f"#ttg.shared_linear<{{offset = {offset}{block}}}, alignment = {layout.alignment}>"
    shown = [(key_of(f.name), getattr(layout, f.name), f.default) for f in fields(layout)]
    return (
        f"#ttg.{layout.mnemonic}<{{"
        + ", ".join(f"{key} = {text_of(value)}" for key, value, default in shown if value != default)
        + "}>"
    )


def text_of(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(text_of, value))}]"
    return layout_text(value)


def module_text(body: str, num_ctas: int = 1, num_warps: int = 4) -> str:
    return (
        f'module attributes {{"ttg.num-ctas" = {num_ctas} : i32, "ttg.num-warps" = {num_warps} : i32,'
        f' ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32}} {{\n{body}\n}}\n'
    )


def same_buffer(layout: Layout, shape: Ints, element: str, other: Layout) -> Question:
    """Return whether a buffer of `shape` in `layout` is one in `other`: Triton compares what a transposition that
    moves nothing infers with what it is declared to give, as linear layouts.
    """
    return _same("ttg.memdesc_trans", f"{_shape(shape)}{element}", layout, other, len(shape), _BUFFER)


def same_tensor(layout: Layout, shape: Ints, other: Layout, num_warps: int) -> Question:
    """`same_buffer` for a tensor in registers."""
    return _same("tt.trans", f"{_shape(shape)}f32", layout, other, len(shape), "tensor<{}, {}>", num_warps)


_BUFFER = "!ttg.memdesc<{}, {}, #ttg.shared_memory, mutable>"


def _shape(shape: Ints) -> str:
    return "".join(f"{size}x" for size in shape)


def _same(
    op: str, elements: str, layout: Layout, other: Layout, rank: int, type_text: str, num_warps: int = 4
) -> Question:
    source, target = (type_text.format(elements, layout_text(encoding)) for encoding in (layout, other))
    body = f"""tt.func public @k(%x: {source}) {{
  %0 = {op} %x {{order = array<i32: {", ".join(map(str, range(rank)))}>}} : {source} -> {target}
  tt.return }}"""
    return ("accepts", module_text(body, 1 << cluster_bits(layout), num_warps))


def shared_bytes_of(layout: Layout, shape: Ints, element: str) -> Question:
    """The bytes that one buffer takes."""
    return ("shared bytes", allocation_text(layout, shape, element))


def allocation_text(layout: Layout, shape: Ints, element: str) -> str:
    buffer = _BUFFER.format(f"{_shape(shape)}{element}", layout_text(layout))
    body = f"""tt.func public @k() {{
  %0 = ttg.local_alloc : () -> {buffer}
  ttg.local_dealloc %0 : {buffer}
  tt.return }}"""
    return module_text(body, 1 << cluster_bits(layout))


def tmem_columns_of(layout: TmemLayout, shape: Ints, element: str) -> Question:
    """The columns that one buffer in the tensor memory of one CTA takes."""
    shown = [(key_of(f.name), getattr(layout, f.name), f.default) for f in fields(layout)]
    encoding = ", ".join(f"{key} = {text_of(value)}" for key, value, default in shown if value != default)
    buffer = (
        f"!ttg.memdesc<{_shape(shape)}{element}, #ttng.{layout.mnemonic}<{encoding}>, #ttng.tensor_memory, mutable>"
    )
    body = f"tt.func public @k() {{\n  %0 = ttng.tmem_alloc : () -> {buffer}\n  tt.return }}"
    return ("tmem columns", module_text(body))


def cluster_bits(layout: Layout) -> int:
    cga = getattr(layout, "cga_layout", None)
    return len(getattr(layout, "block", ()) if cga is None else cga)
