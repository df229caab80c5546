"""The problems of the CPU's benchmark: inputs, references in float64, ours and its rivals, and the lines to hold.

All candidates of a problem write into one array, which was NaN before: where an array lies in memory can change the
time of a memory-bound kernel by half. Only functions of torch that take no array for their result make one.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from benchmarks.cpu import kernels

OURS = "tlx_xdsl"
BOUND = f"{OURS}, bound"
"""With `kernel.bind(...)`, beside `kernel[grid](...)`."""

ELEMENTS: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
TOLERANCES = {"f32": 2e-5, "f16": 4e-3, "bf16": 4e-2}
"""Of the largest element of the result: rounding to the type, and sums in f32."""

ADDED = 1_000_000
ROWS, COLUMNS = 1823, 781
LONG_ROWS, LONG_COLUMNS = 1151, 4096
SIDE = 512
KINDS = ("vector", "softmax", "layer", "matmul")
"""The beginnings of titles, in the order of the table."""
TILE = {"BLOCK_M": 512, "BLOCK_N": 128, "BLOCK_K": 128, "GROUP_M": 2}


@dataclass
class Candidate:
    """A way to compute a problem."""

    run: Callable[[], Any]
    """Computes it; returns the result, unless it lies in the array `result`."""
    result: np.ndarray | None = None


@dataclass
class Launch:
    """Ours: a kernel, its grid, its arguments, and the array that it fills."""

    kernel: Any
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    constants: dict[str, int]
    result: np.ndarray

    def candidate(self) -> Candidate:
        """Make the candidate that launches the kernel as a user does."""

        def run() -> None:
            self.kernel[self.grid](*self.arguments, **self.constants)

        return Candidate(run, self.result)


@dataclass
class Case:
    """A problem."""

    title: str
    launch: Launch
    reference: np.ndarray
    """In float64."""
    element: str
    rivals: dict[str, Candidate] = field(default_factory=dict[str, Candidate])
    lines: Mapping[str, float] = field(default_factory=dict[str, float])
    """How many times a rival's time ours may take."""

    @property
    def in_upstream(self) -> bool:
        """Return whether upstream's passes are timed, too: those of the first kinds alone."""
        return self.title.startswith(KINDS)

    def candidates(self) -> dict[str, Candidate]:
        """Ours first."""
        return {OURS: self.launch.candidate(), **self.rivals}


def torch_or_none() -> Any:
    """torch on one thread; None where it is not installed."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    torch.set_num_threads(1)
    return torch


def _tensor(torch: Any, array: np.ndarray) -> Any:
    """A tensor on the same memory."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def vector_add(element: str, torch: Any, rng: np.random.Generator) -> Case:
    """Sum of two vectors; numpy has no bf16."""
    x, y = (rng.standard_normal(ADDED, np.float32).astype(ELEMENTS[element]) for _ in range(2))
    z = np.empty_like(x)
    block = 16384
    launch = Launch(kernels.vector_add, (-(-ADDED // block),), (x, y, z, ADDED), {"BLOCK": block}, z)
    case = Case(f"vector add, {ADDED:,} {element}", launch, x.astype(float) + y.astype(float), element)
    case.rivals[BOUND] = Candidate(launch.kernel.bind(launch.grid, *launch.arguments, **launch.constants), z)
    if element != "bf16":
        case.rivals["numpy"] = Candidate(lambda: np.add(x, y, out=z), z)
    if torch is not None:
        a, b, c = (_tensor(torch, each) for each in (x, y, z))
        case.rivals["torch"] = Candidate(lambda: torch.add(a, b, out=c), z)
    if element == "f32":
        case.lines = {"numpy": 1.0}
    return case


def softmax(element: str, torch: Any, rng: np.random.Generator) -> Case:
    """Softmax of rows; numpy gets f32 whatever the element."""
    x = rng.standard_normal((ROWS, COLUMNS), np.float32).astype(ELEMENTS[element])
    out = np.empty_like(x)
    launch = Launch(kernels.softmax, (ROWS,), (out, x, COLUMNS, COLUMNS, COLUMNS), {"BLOCK": 1024}, out)
    powers = np.exp(x.astype(float) - x.astype(float).max(1, keepdims=True))
    case = Case(f"softmax, {ROWS} x {COLUMNS} {element}", launch, powers / powers.sum(1, keepdims=True), element)
    if element == "f32":

        def with_numpy() -> None:
            np.subtract(x, x.max(axis=1, keepdims=True), out=out)
            np.exp(out, out=out)
            np.divide(out, out.sum(axis=1, keepdims=True), out=out)

        case.rivals["numpy"] = Candidate(with_numpy, out)
        case.lines = {"numpy": 0.6, "torch": 1.3}
    if torch is not None:
        a, b = _tensor(torch, x), _tensor(torch, out)
        case.rivals["torch"] = Candidate(lambda: torch.softmax(a, 1, out=b), out)
    return case


def layer_norm(rows: int, columns: int, element: str, torch: Any, rng: np.random.Generator) -> Case:
    """Layer norm of rows."""
    x = rng.standard_normal((rows, columns), np.float32).astype(ELEMENTS[element])
    weight, bias = (rng.standard_normal(columns, np.float32).astype(ELEMENTS[element]) for _ in range(2))
    out = np.empty_like(x)
    arguments = (x, out, weight, bias, columns, columns, 1e-5)
    launch = Launch(kernels.layer_norm, (rows,), arguments, {"BLOCK": 1 << (columns - 1).bit_length()}, out)
    wide = x.astype(float)
    centred = wide - wide.mean(1, keepdims=True)
    reference = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * weight.astype(float)
    case = Case(f"layer norm, {rows} x {columns} {element}", launch, reference + bias.astype(float), element)
    if torch is not None:
        a, w, b = (_tensor(torch, each) for each in (x, weight, bias))
        case.rivals["torch"] = Candidate(lambda: torch.nn.functional.layer_norm(a, (columns,), w, b, 1e-5))
    if element == "f32":
        case.lines = {"torch": 1.0}
    return case


def product(element: str, side: int, rng: np.random.Generator) -> tuple[Launch, np.ndarray]:
    """A product of square matrices, and what it is."""
    a, b = (rng.standard_normal((side, side), np.float32).astype(ELEMENTS[element]) for _ in range(2))
    c = np.empty_like(a)
    tiles = -(-side // TILE["BLOCK_M"]) * -(-side // TILE["BLOCK_N"])
    arguments = (a, b, c, side, side, side, side, 1, side, 1, side, 1)
    return Launch(kernels.matmul, (tiles,), arguments, TILE, c), a.astype(float) @ b.astype(float)


def matmul(element: str, torch: Any, rng: np.random.Generator) -> Case:
    """A product of matrices; beside f16 and bf16 runs our own of f32, and numpy gets f32 whatever the element."""
    launch, reference = product(element, SIDE, rng)
    a, b, c, *_ = launch.arguments
    case = Case(f"matmul, {SIDE} x {SIDE} x {SIDE} {element}", launch, reference, element)
    if element == "f32":
        case.rivals["numpy"] = Candidate(lambda: np.matmul(a, b, out=c), c)
        case.lines = {"numpy": 1.3}
    else:
        wide, _ = product("f32", SIDE, rng)
        wide.arguments[0][...], wide.arguments[1][...] = a, b
        case.rivals[f"{OURS}, f32"] = wide.candidate()
        case.lines = {f"{OURS}, f32": 1.5}
    if torch is not None:
        x, y, z = (_tensor(torch, each) for each in (a, b, c))
        case.rivals["torch"] = Candidate(lambda: torch.matmul(x, y, out=z), c)
    return case


def gelu(torch: Any, rng: np.random.Generator) -> Case:
    """Gelu by the error function."""
    x = rng.standard_normal(ADDED, np.float32)
    y = np.empty_like(x)
    launch = Launch(kernels.gelu, (-(-ADDED // 4096),), (x, y, ADDED), {"BLOCK": 4096}, y)
    wide = x.astype(float)
    halves = np.array([math.erf(each) for each in wide / math.sqrt(2)])
    case = Case(f"gelu, {ADDED:,} f32", launch, 0.5 * wide * (1 + halves), "f32", lines={"torch": 1.1})
    if torch is not None:
        a = _tensor(torch, x)
        case.rivals["torch"] = Candidate(lambda: torch.nn.functional.gelu(a))
    return case


def cross_entropy(torch: Any, rng: np.random.Generator) -> Case:
    """The loss of each row, of which a loop reads a part at a time."""
    rows, columns = 256, 32000
    x = rng.standard_normal((rows, columns), np.float32)
    target, loss = rng.integers(0, columns, rows), np.empty(rows, np.float32)
    launch = Launch(
        kernels.cross_entropy, (rows,), (x, target, loss, columns, columns), {"BLOCK": 4096}, loss
    )  # fmt: skip
    reference = np.log(np.exp(x.astype(float)).sum(1)) - x[np.arange(rows), target]
    case = Case(f"cross-entropy in a loop, {rows} x {columns} f32", launch, reference, "f32", lines={"torch": 1.1})
    if torch is not None:
        a, b = _tensor(torch, x), _tensor(torch, target)
        case.rivals["torch"] = Candidate(lambda: torch.nn.functional.cross_entropy(a, b, reduction="none"))
    return case


def gather_rows(torch: Any, rng: np.random.Generator) -> Case:
    """Rows of a table, by their numbers."""
    many, columns, table = 8192, 128, 50000
    x, index = rng.standard_normal((table, columns), np.float32), rng.integers(0, table, many)
    y = np.empty((many, columns), np.float32)
    constants = {"COLUMNS": columns, "BLOCK": 64}
    launch = Launch(kernels.gather_rows, (many // 64,), (x, index, y, many), constants, y)
    case = Case(f"gather of {many} rows of {columns} f32", launch, x[index].astype(float), "f32", lines={"torch": 1.1})
    if torch is not None:
        a, b, c = _tensor(torch, x), _tensor(torch, index), _tensor(torch, y)
        case.rivals["torch"] = Candidate(lambda: torch.index_select(a, 0, b, out=c), y)
    return case


def attention(element: str, torch: Any, rng: np.random.Generator) -> Case:
    """Flash attention of four heads of 64."""
    q, k, v = (rng.standard_normal((4, 1024, 64), np.float32).astype(ELEMENTS[element]) for _ in range(3))
    o = np.empty_like(q)
    launch = Launch(kernels.attention, (16, 4), (q, k, v, o, 1024, 0.125), {"M": 64, "N": 64, "D": 64}, o)
    powers = np.exp(q.astype(float) @ k.astype(float).transpose(0, 2, 1) / 8)
    reference = powers / powers.sum(2, keepdims=True) @ v.astype(float)
    case = Case(f"flash attention, 4 x 1024 x 64 {element}", launch, reference, element, lines={"torch": 1.1})
    if torch is not None:
        a, b, c = (_tensor(torch, each)[None] for each in (q, k, v))
        case.rivals["torch"] = Candidate(lambda: torch.nn.functional.scaled_dot_product_attention(a, b, c)[0])
    return case


def convolution(padding: int, torch: Any, rng: np.random.Generator) -> Case:
    """A 3 x 3 convolution of 8 channels of 130 x 130 to 16."""
    x, w = rng.standard_normal((8, 130, 130), np.float32), rng.standard_normal((16, 8, 3, 3), np.float32)
    side = 128 + 2 * padding
    y = np.empty((16, side, side), np.float32)
    constants = {"PAD": padding, "BLOCK": 1024}
    launch = Launch(kernels.convolution, (-(-side * side // 1024), 16), (x, w, y, 8, 130, 130), constants, y)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), *[(padding, padding)] * 2)), (3, 3), (1, 2))
    reference = np.einsum("ocab,cijab->oij", w.astype(float), windows.astype(float), optimize=True)
    title = f"conv 3 x 3 by gathers, {'padded, ' if padding else ''}8 to 16 channels, 130 x 130"
    case = Case(title, launch, reference, "f32", lines={"torch": 3.0})
    if torch is not None:
        a, b = _tensor(torch, x)[None], _tensor(torch, w)
        case.rivals["torch"] = Candidate(lambda: torch.nn.functional.conv2d(a, b, padding=padding)[0])
    return case


def cases(torch: Any) -> list[Case]:
    """All problems, from fixed seeds."""
    found: list[Case] = []
    for number, element in enumerate(ELEMENTS):
        rng = np.random.default_rng([20, number])
        found += [vector_add(element, torch, rng), softmax(element, torch, rng)]
        found.append(layer_norm(ROWS, COLUMNS, element, torch, rng))
        if element == "f32":
            found.append(layer_norm(LONG_ROWS, LONG_COLUMNS, element, torch, rng))
        found.append(matmul(element, torch, rng))
    rng = np.random.default_rng(22)
    others = [gelu(torch, rng), cross_entropy(torch, rng), gather_rows(torch, rng)]
    others += [attention(element, torch, rng) for element in ELEMENTS]
    others += [convolution(padding, torch, rng) for padding in (0, 1)]
    found = sorted(found, key=lambda case: next(at for at, kind in enumerate(KINDS) if case.title.startswith(kind)))
    return found + others
