"""Functions of rows, and attention to a long cache, with the cubins of another Triton: as `cubins` for products.

python benchmarks/gemm/rows_cubins.py --write DIR                      (where the other Triton is; needs no GPU)
TLX_CUBINS=DIR python benchmarks/gemm/rows_cubins.py --out DIR         (where the GPU is)
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.gemm import common, cubins, program
from benchmarks.gemm.common import OURS, Part
from benchmarks.gemm.cubins import CARRIED, FOLDER, WANTED

ROWS = [(8192, 4096), (32768, 1024), (2048, 16384), (512, 65536)]
LOGITS = [(8192, 32000), (4096, 128256)]
CACHES = [(16, 32, 8, 8192), (64, 32, 8, 4096), (1, 32, 8, 65536), (4, 64, 8, 32768)]
"""Sequences, heads of queries and of keys, keys."""

DIM = 128

Array = Callable[..., Any]
"""Makes an array: called with its extents and, by name, its type."""

Makes = dict[str, tuple[float, Callable[[Array], tuple[Any, Sequence[Any]]]]]
"""By problem: bytes to move, and what makes launches (something for `common.each_launch`) and results."""


DRY_COLUMNS = 64


def problems(dry: bool = False) -> Makes:
    """All that is compared; dry, a small problem of each kind."""
    found: Makes = {}
    for rows, columns in [(4, DRY_COLUMNS)] if dry else ROWS:
        for name, (accesses, make) in _functions(rows, columns).items():
            found[f"{name} {rows} x {columns}"] = (2.0 * accesses * rows * columns, make)
    for rows, columns in [(4, DRY_COLUMNS)] if dry else LOGITS:
        for reduction, make in _cross_entropy(rows, columns).items():
            found[f"cross_entropy {reduction} {rows} x {columns}"] = (2.0 * rows * columns, make)
    for batch, heads, kv_heads, keys in [(1, 2, 1, 64)] if dry else CACHES:
        for dtype, size in (("bf16", 2), ("fp8e4nv", 1)):
            name = f"attention_decode {dtype} ({batch}, {heads}/{kv_heads}, {keys})"
            found[name] = (2.0 * size * batch * kv_heads * keys * DIM, _decode(batch, heads, kv_heads, keys, dtype))
    return found


def _functions(rows: int, columns: int) -> dict[str, tuple[int, Callable[[Array], tuple[Any, Sequence[Any]]]]]:
    from tlx_xdsl.kernels.rows.norm import layer_norm_launch, rms_norm_launch
    from tlx_xdsl.kernels.rows.norms import norm_backward_launch
    from tlx_xdsl.kernels.rows.softmax import softmax_backward_launch, softmax_launch

    def layer_norm(array: Array) -> tuple[Any, Sequence[Any]]:
        x, weight, bias, out = array(rows, columns), array(columns), array(columns), array(rows, columns)
        return layer_norm_launch(x, weight, bias, out, eps=1e-5), [out]

    def rms_norm(array: Array) -> tuple[Any, Sequence[Any]]:
        x, weight, out = array(rows, columns), array(columns), array(rows, columns)
        return rms_norm_launch(x, weight, out, eps=1e-5), [out]

    def layer_norm_backward(array: Array) -> tuple[Any, Sequence[Any]]:
        x, dout, dx = (array(rows, columns) for _ in range(3))
        weight, dweight, dbias = (array(columns) for _ in range(3))
        made = norm_backward_launch(x, weight, dout, dx, dweight, dbias, eps=1e-5, centred=True)
        return made, [dx, dweight, dbias]

    def softmax(array: Array) -> tuple[Any, Sequence[Any]]:
        x, out = array(rows, columns), array(rows, columns)
        return softmax_launch(x, out), [out]

    def softmax_backward(array: Array) -> tuple[Any, Sequence[Any]]:
        y, dout, dx = (array(rows, columns) for _ in range(3))
        return softmax_backward_launch(y, dout, dx), [dx]

    return {
        "layer_norm": (2, layer_norm), "rms_norm": (2, rms_norm), "layer_norm gradients": (3, layer_norm_backward),
        "softmax": (2, softmax), "softmax gradient": (3, softmax_backward),
    }  # fmt: skip


def _cross_entropy(rows: int, columns: int) -> dict[str, Callable[[Array], tuple[Any, Sequence[Any]]]]:
    from tlx_xdsl.kernels.rows.cross_entropy import CROSS_ENTROPY

    def make(array: Array, reduction: str) -> tuple[Any, Sequence[Any]]:
        tensors = (array(rows, columns), array(rows, dtype="i64"), None, None, None)
        prepared = CROSS_ENTROPY.prepare(tensors, (-100, 0.0, reduction, True))
        return prepared.launches[0], [prepared.tensors["loss"], prepared.tensors["lse"]]

    return {reduction: partial(make, reduction=reduction) for reduction in ("mean", "none")}


def _decode(
    batch: int, heads: int, kv_heads: int, keys: int, dtype: str
) -> Callable[[Array], tuple[Any, Sequence[Any]]]:
    from tlx_xdsl.kernels.attention.decode.call import attention_decode_launch

    def make(array: Array) -> tuple[Any, Sequence[Any]]:
        q, out = array(batch, heads, 1, DIM), array(batch, heads, 1, DIM)
        k, v = (array(batch, kv_heads, keys, DIM, dtype=dtype) for _ in range(2))
        return attention_decode_launch(q, k, v, out), [out]

    return make


def launches() -> Iterator[Callable[[], Any]]:
    """Each with what is compiled ahead for it."""

    def untouched(*shape: int, dtype: str = "bf16") -> Any:
        return common.untouched(shape, dtype)

    for _, make in problems().values():
        yield lambda make=make: make(untouched)[0]


def family(dry: bool) -> Any:
    """The family for `gpu.run`."""
    from benchmarks.gpu.cases import Family

    found = Family("rows-cubins", "Cubins of another Triton", lambda run: iter(()))
    found.cases = [_case(name, traffic, make, dry) for name, (traffic, make) in problems(dry).items()]
    return found


def _case(name: str, traffic: float, make: Callable[[Array], tuple[Any, Sequence[Any]]], dry: bool) -> Any:
    from benchmarks.gpu.cases import Case
    from tests.unit.kernels import gpu_checks

    def prepared() -> Any:
        results: dict[str, Sequence[Any]] = {}

        def launch(who: str) -> Callable[[], Any]:
            made, results[who] = make(_random("cpu" if dry else "cuda"))
            if dry or who == OURS:
                return common.bound(made)
            return cubins.bound_to_bundles(made, Path(os.environ[FOLDER]))

        def verify() -> Any:
            pairs = zip(results[CARRIED], results[OURS], strict=True)
            error = max(gpu_checks.relative_error(one, other.float()) for one, other in pairs)
            return {CARRIED: gpu_checks.Check(f"{name}: {CARRIED}", error, 1e-3)}

        return {who: lambda who=who: launch(who) for who in (CARRIED, OURS)}, verify

    return Case(name, 0, CARRIED, None, prepared, traffic=dict.fromkeys((CARRIED, OURS), traffic), checks_all=True)


def _random(device: str) -> Array:
    """Random arrays, the same for each candidate."""
    import torch

    from tests.unit.kernels import gpu_checks

    kinds = {"bf16": torch.bfloat16, "fp8e4nv": torch.float8_e4m3fn, "fp32": torch.float32}
    seeds = itertools.count()

    def array(*shape: int, dtype: str = "bf16") -> torch.Tensor:
        if dtype == "i64":
            return torch.arange(shape[0], device=device) % DRY_COLUMNS
        return gpu_checks.random(shape, kinds[dtype], device, next(seeds))

    return array


def table(record: Mapping[str, Any]) -> str:
    """The time of what was carried over that of what was compiled."""
    title = f"GB/s, and times of the other cubin as parts of ours; wanted: within {WANTED:.0%}"
    return "\n".join([title, common.rate_table(record), common.notes(record)])


PART = Part("rows-cubins", __file__, family, launches, table, rounds=7, burst=5, idle_s=0.03, limit_s=90.0)


def main() -> int:
    """Write the bundles, or compare."""
    if "--write" in sys.argv:
        print(f"{cubins.write(Path(sys.argv[sys.argv.index('--write') + 1]), launches())} bundles")
        return 0
    return program.main(PART)


if __name__ == "__main__":
    sys.exit(main())
