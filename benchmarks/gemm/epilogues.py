"""Time epilogues beside the plain product, and SwiGLU in one kernel against torch.compile.

    python benchmarks/gemm/epilogues.py --out DIR [--compile 16] [--only swiglu] [--dry]

Bias and GELU (tanh) at 4096 x 4096 x 4096, in percent over the plain product of the same run. SwiGLU is
silu(x @ w1) * (x @ w2), where w1 and w2 are the two halves of w: "8192x14336x4096" is taken in both of its meanings,
results of 14336 columns (w has 28672), and w of 14336 columns (results of 7168). torch.compile gets the two products
apart and as one, and the faster of them counts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.gemm import common, program
from benchmarks.gemm.common import OURS, Part

COMPILED, COMPILED_ONE = "torch.compile", "torch.compile, one product"
PLAIN = "plain"

MOST_OVER = 0.04
SWIGLU_TARGET = 1.25

SQUARE = (4096, 4096, 4096)
SWIGLU = ((8192, 14336, 4096), (8192, 7168, 4096))
"""(m, columns of the result, k)."""

DTYPES = ("fp16", "bf16")
EPILOGUES = ("bias", "bias_gelu", "bias_silu", "residual")


def launches() -> Iterator[Callable[[], Any]]:
    """Each with what is compiled ahead for it."""
    from tlx_xdsl.kernels.gemm.dense import gemm_launch

    untouched = common.untouched
    m, n, k = SQUARE
    for dtype in DTYPES:
        a, b, out = (untouched(shape, dtype) for shape in ((m, k), (k, n), (m, n)))
        extras = _extras(untouched((n,), dtype), out)
        for name in (PLAIN, *EPILOGUES):
            yield lambda a=a, b=b, out=out, extra=extras[name]: gemm_launch(a, b, out, **extra)
    for rows, columns, depth in SWIGLU:
        x, w, out = (untouched(shape, "bf16") for shape in ((rows, depth), (depth, 2 * columns), (rows, columns)))
        yield lambda x=x, w=w, out=out: gemm_launch(x, w, out, epilogue="swiglu")


def _extras(bias: Any, matrix: Any) -> dict[str, dict[str, Any]]:
    """The arguments of `gemm_launch` for each epilogue."""
    found: dict[str, dict[str, Any]] = {name: {"epilogue": name, "columns": (bias,)} for name in EPILOGUES}
    return {**found, PLAIN: {}, "residual": {"epilogue": "residual", "matrix": matrix}}


def family(dry: bool) -> Any:
    """The family for `gpu.run`."""
    from benchmarks.gpu.cases import Family

    found = Family("epilogues", "Epilogues", lambda run: iter(()))
    found.cases = [*(_square(dtype, dry) for dtype in DTYPES), *(_swiglu(sizes, dry) for sizes in SWIGLU)]
    return found


def _square(dtype: str, dry: bool) -> Any:
    import torch
    from torch.nn import functional

    from benchmarks.gpu.cases import Case
    from tests.unit.kernels import gpu_checks
    from tlx_xdsl.kernels.gemm.dense import gemm_launch

    name = f"{'x'.join(map(str, SQUARE))} {dtype}"
    case = Case(name, 2 * SQUARE[0] * SQUARE[1] * SQUARE[2], PLAIN, None, lambda: make(), checks_all=True)

    def make():
        m, n, k = (40, 72, 64) if dry else SQUARE
        device, type_ = "cpu" if dry else "cuda", gpu_checks.DTYPES[dtype]
        shapes = ((m, k), (k, n), (m, n), (n,))
        a, b, matrix, bias = (gpu_checks.random(shape, type_, device, seed) for seed, shape in enumerate(shapes))
        extras = _extras(bias, matrix)
        outs: dict[str, Any] = {}

        def ours(which: str) -> Callable[[], Any]:
            outs[which] = gpu_checks.poisoned((m, n), type_, device)
            made = gemm_launch(a, b, outs[which], **extras[which])
            case.config = common.described(made)
            return common.bound(made)

        def compiled() -> Callable[[], Any]:
            return torch.compile(lambda: functional.gelu(torch.addmm(bias, a, b), approximate="tanh"))

        def verify() -> dict[str, gpu_checks.Check]:
            plain = a.float() @ b.float()
            biased = plain + bias.float()
            expected = {
                PLAIN: plain,
                "bias": biased,
                "bias_gelu": functional.gelu(biased, approximate="tanh"),
                "bias_silu": functional.silu(biased),
                "residual": plain + matrix.float(),
            }
            return {
                which: gpu_checks.Check(
                    f"{name} {which}", gpu_checks.relative_error(out, expected[which]), gpu_checks.LIMITS[dtype]
                )
                for which, out in outs.items()
            }

        candidates = {which: lambda which=which: ours(which) for which in (PLAIN, *EPILOGUES)}
        out = torch.empty((m, n), dtype=type_, device=device)
        candidates |= {"cuBLAS": lambda: lambda: torch.mm(a, b, out=out)}
        if dtype == "bf16" and not dry:
            candidates |= {f"{COMPILED} (bias_gelu)": compiled}
        return candidates, verify

    return case


def _swiglu(sizes: tuple[int, int, int], dry: bool) -> Any:
    import torch
    from torch.nn import functional

    from benchmarks.gpu.cases import Case
    from tests.unit.kernels import gpu_checks
    from tlx_xdsl.kernels.gemm.dense import gemm_launch

    name = f"swiglu {'x'.join(map(str, sizes))} bf16"
    case = Case(name, 4 * sizes[0] * sizes[1] * sizes[2], COMPILED, SWIGLU_TARGET, lambda: make())

    def make():
        m, n, k = (40, 72, 64) if dry else sizes
        device = "cpu" if dry else "cuda"
        x = gpu_checks.random((m, k), torch.bfloat16, device, 1)
        # Products of a size for which SiLU is neither 0 nor the identity.
        w = (gpu_checks.random((k, 2 * n), torch.float32, device, 2) * k**-0.5).to(torch.bfloat16)
        halves = tuple(each.contiguous() for each in w.chunk(2, 1))
        out = gpu_checks.poisoned((m, n), torch.bfloat16, device)

        def ours() -> Callable[[], Any]:
            made = gemm_launch(x, w, out, epilogue="swiglu")
            case.config = common.described(made)
            return common.bound(made)

        def apart(x: Any, first: Any, second: Any) -> Any:
            return functional.silu(x @ first) * (x @ second)

        def as_one(x: Any, w: Any) -> Any:
            gate, up = (x @ w).chunk(2, 1)
            return functional.silu(gate) * up

        def compiled(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
            run = function if dry else torch.compile(function)
            return lambda: run(*arguments)

        def verify() -> gpu_checks.Check:
            expected = apart(x.float(), *(each.float() for each in halves))
            return gpu_checks.Check(name, gpu_checks.relative_error(out, expected), gpu_checks.LIMITS["bf16"])

        candidates = {COMPILED: lambda: compiled(apart, x, *halves), COMPILED_ONE: lambda: compiled(as_one, x, w)}
        return {**candidates, OURS: ours}, verify

    return case


def table(record: Mapping[str, Any]) -> str:
    """The epilogues in percent over the plain product, and SwiGLU's speed as a part of the faster rival's."""
    lines: list[str] = []
    for name, case in record["cases"].items():
        times = {who: each for who, each in case["cool"]["times"].items() if each}
        shown = "  ".join(f"{who} {median(each) * 1e3:.1f} us" for who, each in times.items())
        lines.append(f"{name}: {shown}  [{case['config']}]")
        rivals = [times[who] for who in (COMPILED, COMPILED_ONE) if who in times]
        if OURS in times and rivals:
            fastest = min(rivals, key=median)
            found = median(each / mine for each, mine in zip(fastest, times[OURS], strict=True))
            lines.append(f"    {found:.3f} of torch.compile (wanted {SWIGLU_TARGET})")
        for who, found in times.items() if PLAIN in times else ():
            over = median(each / plain - 1 for each, plain in zip(found, times[PLAIN], strict=True))
            lines += [f"    {who}: {over:+.1%} over plain"] if who != PLAIN else []
    lines.append(f"wanted: bias_gelu at most {MOST_OVER:.0%} over plain")
    return "\n".join([*lines, common.notes(record)])


PART = Part("epilogues", __file__, family, launches, table, limit_s=150.0, stall_s=60.0)

if __name__ == "__main__":
    sys.exit(program.main(PART))
