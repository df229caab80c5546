"""GEMM of fp8 matrices against `torch._scaled_mm`: one scale for a matrix, one for a row, or one for a block.

    python benchmarks/gemm/fp8.py --out DIR [--compile 16] [--only blocks] [--dry]

e4m3 and bf16 out; errors are against the product of the dequantised matrices in float64, ours beside torch's.
"""

# torch has these functions for its users, but does not list them.
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.gemm import common, program
from benchmarks.gemm.common import OURS, Part
from benchmarks.gpu import report

BLOCK = 128
PEER = "torch"

SHAPES = {
    (4096, 4096, 4096): 1.00,
    (8192, 8192, 8192): 1.00,
    (4096, 14336, 4096): 1.00,
    (2048, 7168, 2048): 1.05,
    (128, 7168, 4096): 1.05,
    (64, 24576, 1536): 1.05,
}
"""(m, n, k): the speed wanted, as a part of torch's."""

BLOCKS_TARGET = 1.05
LIMIT = 1.1
"""Our error as a part of torch's, where sums are exact."""

LOOSE_LIMIT = 0.05
"""The error up to which a result is timed: sums of the tensor cores alone are much less exact."""


@dataclass(frozen=True)
class Mode:
    """Kind of scales, and whether the tensor cores add up all along K."""

    scales: str
    fast: bool

    @property
    def name(self) -> str:
        """Name the mode as tables do."""
        return f"{self.scales} {'fast' if self.fast else 'exact'}"

    def shapes(self, m: int, n: int, k: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes of the scales of A and B."""
        if self.scales == "tensor":
            return (1,), (1,)
        if self.scales == "rows":
            return (m, 1), (1, n)
        return (m, -(-k // BLOCK)), (-(-k // BLOCK), -(-n // BLOCK))

    def laid_out(self, scales: Any) -> Any:
        """The scales, given by rows, as torch wants them: those of blocks by columns. K is a multiple of 512 here."""
        if self.scales != "blocks":
            return scales
        turned = scales.T
        return (turned.contiguous() if hasattr(turned, "contiguous") else turned.copy()).T


MODES = (Mode("tensor", False), Mode("tensor", True), Mode("rows", True), Mode("blocks", False))


def launches() -> Iterator[Callable[[], Any]]:
    """Each with what is compiled ahead for it."""
    for sizes in SHAPES:
        for mode in MODES:
            yield lambda sizes=sizes, mode=mode: launch_of(sizes, mode)


def launch_of(sizes: tuple[int, int, int], mode: Mode) -> Any:
    """The launch of a problem on memory that is not used."""
    from tlx_xdsl.kernels.gemm.scaled.call import scaled_gemm_launch

    untouched, (m, n, k) = common.untouched, sizes
    scale_a, scale_b = (mode.laid_out(untouched(each, "fp32")) for each in mode.shapes(m, n, k))
    a, b = untouched((m, k), "fp8e4nv"), untouched((n, k), "fp8e4nv").T
    return scaled_gemm_launch(a, b, scale_a, scale_b, untouched((m, n), "bf16"), fast=mode.fast)


def family(dry: bool) -> Any:
    """The family for `gpu.run`."""
    from benchmarks.gpu.cases import Family

    found = Family("fp8", "GEMM, fp8", lambda run: iter(()))
    for mode in MODES:
        for sizes, target in SHAPES.items():
            found.cases.append(case_of(sizes, mode, BLOCKS_TARGET if mode.scales == "blocks" else target, dry))
    return found


def case_of(sizes: tuple[int, int, int], mode: Mode, target: float, dry: bool) -> Any:
    """A problem beside torch's product."""
    import torch

    from benchmarks.gpu.cases import Case
    from tests.unit.kernels import gpu_checks

    name = f"{'x'.join(map(str, sizes))} {mode.name}"
    case = Case(name, 2 * sizes[0] * sizes[1] * sizes[2], PEER, target, lambda: make())

    def make():
        m, n, k = (64, 128, 256) if dry else sizes
        device = "cpu" if dry else "cuda"
        a = gpu_checks.random((m, k), torch.float32, device, 1).to(torch.float8_e4m3fn)
        b = gpu_checks.random((n, k), torch.float32, device, 2).to(torch.float8_e4m3fn).T
        scale_a, scale_b = _scales(mode, (m, n, k), device)
        outs = {OURS: gpu_checks.poisoned((m, n), torch.bfloat16, device)}

        def ours() -> Callable[[], Any]:
            from tlx_xdsl.kernels.gemm.scaled.call import scaled_gemm_launch

            made = scaled_gemm_launch(a, b, scale_a, scale_b, outs[OURS], fast=mode.fast)
            case.config = common.described(made)
            return common.bound(made)

        def theirs() -> Callable[[], Any]:
            def launch() -> None:
                outs[PEER] = torch._scaled_mm(
                    a, b, scale_a, scale_b, out_dtype=torch.bfloat16, use_fast_accum=mode.fast
                )

            return launch

        def verify() -> gpu_checks.Check:
            expected = _dequantised(a, scale_a) @ _dequantised(b, scale_b)
            errors = {who: ((found.double() - expected).norm() / expected.norm()).item() for who, found in outs.items()}
            case.facts |= errors
            beside = f"torch's {errors[PEER]:.4e}, {errors[OURS] / errors[PEER]:.3f} of it" if PEER in errors else ""
            return gpu_checks.Check(f"{name} ({beside})", errors[OURS], LOOSE_LIMIT)

        return {PEER: theirs, OURS: ours}, verify

    return case


def _scales(mode: Mode, sizes: tuple[int, int, int], device: str) -> tuple[Any, Any]:
    """Draw scales between 1/2 and 3/2."""
    import torch

    generator = torch.Generator(device=device).manual_seed(3)
    of_a, of_b = (torch.rand(each, device=device, generator=generator) + 0.5 for each in mode.shapes(*sizes))
    return mode.laid_out(of_a), mode.laid_out(of_b)


def _dequantised(matrix: Any, scale: Any) -> Any:
    """The matrix times its scales, in float64."""
    if scale.numel() == 1:
        return matrix.double() * scale.double()
    for axis in (0, 1):
        if (count := scale.shape[axis]) not in (1, matrix.shape[axis]):
            scale = scale.repeat_interleave(BLOCK, axis).narrow(axis, 0, matrix.shape[axis])
            assert count == -(-matrix.shape[axis] // BLOCK)
    return matrix.double() * scale.double()


def table(record: Mapping[str, Any]) -> str:
    """Rates, and how exact the exact ones are beside torch's."""
    lines = [common.rate_table(record)]
    for mode in MODES:
        cases = {name: case for name, case in record["cases"].items() if name.endswith(mode.name)}
        ratios = [each for case in cases.values() if (each := report.ratio(case, "cool")) is not None]
        errors = [case["facts"][OURS] / case["facts"][PEER] for case in cases.values() if PEER in case["facts"]]
        exact = "" if mode.fast else f" (at most {LIMIT} wanted)"
        shown = f"; error {max(errors):.3f} of torch's at most{exact}" if errors else ""
        lines.append(f"{mode.name}: {common.summary(ratios, (1.0, 1.05))}{shown}")
    return "\n".join([*lines, common.notes(record)])


PART = Part("fp8", __file__, family, launches, table)

if __name__ == "__main__":
    sys.exit(program.main(PART))
