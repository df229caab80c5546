"""The GPU benchmark's families of rows: norms, softmax, cross-entropy, swiglu and rope, forward and backward, in GB/s.

Cases, rivals and checks are as in `cases`. Rivals are torch's, eager and compiled; the copy of as many elements
shows what the memory gives. A rate counts what has to be read and written once, whatever a candidate does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from benchmarks.gpu import cute
from benchmarks.gpu.cases import OURS, Case, Family, Launch, Run
from tests.unit.kernels import gpu_checks
from tests.unit.kernels.gpu_checks import Check
from tlx_xdsl.kernels.rows.cross_entropy import cross_entropy, cross_entropy_backward
from tlx_xdsl.kernels.rows.norm import layer_norm_launch, rms_norm_launch
from tlx_xdsl.kernels.rows.norms import norm_backward_launch, norm_launch
from tlx_xdsl.kernels.rows.rope import rope
from tlx_xdsl.kernels.rows.softmax import softmax_backward_launch, softmax_launch
from tlx_xdsl.kernels.rows.swiglu import swiglu, swiglu_backward

DTYPE = "bf16"
BYTES = 2
"""Of an element."""

COPY, EAGER, COMPILED = "copy", "torch", "torch.compile"

SHAPES = [(8192, 4096), (4096, 8192), (32768, 1024), (16384, 2048)]
LONG_SHAPES = [(512, 65536), (128, 131072)]
LOGITS = [(8192, 32000), (4096, 128256)]
GATES = [(8192, 4096), (4096, 14336)]
HEADS = [(524288, 128), (1048576, 64)]
"""Rows and columns; those of heads are all positions of all heads."""

POSITIONS = 8192
"""Of a head."""

FORWARD_TARGET, BACKWARD_TARGET = 0.88, 0.75
"""Of the copy's rate, wanted for all but longer rows, which are only looked at."""

EPS = 1e-5

Tensors = list[torch.Tensor]


class Problem(NamedTuple):
    """A function of rows on one set of inputs, forward or backward.

    theirs: torch's function of `inputs`; what is differentiated where `grads` are the gradients of its results.
    ours: prepares the launch that writes `outs`.
    outs: our results, NaN before; to be compared with those of `theirs` in float64.
    """

    theirs: Callable[..., Any]
    inputs: Tensors
    grads: Tensors | None
    ours: Callable[[], Launch]
    outs: Tensors


Make = Callable[[int, int, str], Problem]


class Operator(NamedTuple):
    """Problems of a family, and how often each element of a row is read or written."""

    title: str
    make: Make
    accesses: int
    target: float
    shapes: list[tuple[int, int]]


def _norm(centred: bool, backward: bool) -> Make:
    def make(rows: int, columns: int, device: str) -> Problem:
        x, dout = (_random(rows, columns, device=device, seed=seed) for seed in (0, 1))
        factors = [_random(columns, device=device, seed=2 + at) for at in range(1 + centred)]

        def theirs(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
            if centred:
                return functional.layer_norm(x, (columns,), weight, bias, EPS)
            return functional.rms_norm(x, (columns,), weight, EPS)

        outs = [_unwritten(each) for each in ([x, *factors] if backward else [x])]

        def ours() -> Launch:
            if backward:
                dx, dweight, *dbias = outs
                return norm_backward_launch(
                    x, factors[0], dout, dx, dweight, dbias[0] if dbias else None, eps=EPS, centred=centred
                ).bind()
            if centred:
                return layer_norm_launch(x, *factors, outs[0], eps=EPS).bind()
            return rms_norm_launch(x, *factors, outs[0], eps=EPS).bind()

        return Problem(theirs, [x, *factors], [dout] if backward else None, ours, outs)

    return make


def _residual(centred: bool, backward: bool) -> Make:
    name = "layer_norm_residual" if centred else "rms_norm_residual"

    def make(rows: int, columns: int, device: str) -> Problem:
        x, residual, dout, dh = (_random(rows, columns, device=device, seed=seed) for seed in range(4))
        factors = [_random(columns, device=device, seed=4 + at) for at in range(1 + centred)]

        def theirs(x: torch.Tensor, residual: torch.Tensor, *factors: torch.Tensor) -> tuple[torch.Tensor, ...]:
            h = x + residual
            if centred:
                return functional.layer_norm(h, (columns,), *factors, EPS), h
            return functional.rms_norm(h, (columns,), *factors, EPS), h

        out = _unwritten(x)
        others = [_unwritten(each) for each in (factors if backward else [x])]

        def ours() -> Launch:
            if backward:
                dweight, *dbias = others
                grads = (dout, out, dweight, dbias[0] if dbias else None)
                return norm_backward_launch(x + residual, factors[0], *grads, eps=EPS, centred=centred, dh=dh).bind()
            weight, *bias = factors
            return norm_launch(
                name, x, weight, bias[0] if bias else None, out, EPS, centred=centred, residual=residual, h=others[0]
            ).bind()

        outs = [out, out, *others] if backward else [out, *others]
        return Problem(theirs, [x, residual, *factors], [dout, dh] if backward else None, ours, outs)

    return make


def _softmax(backward: bool) -> Make:
    def make(rows: int, columns: int, device: str) -> Problem:
        x, dout = (_random(rows, columns, device=device, seed=seed) for seed in (0, 1))
        y = x.softmax(-1)
        outs = [_unwritten(x)]

        def ours() -> Launch:
            return (softmax_backward_launch(y, dout, *outs) if backward else softmax_launch(x, *outs)).bind()

        return Problem(lambda x: x.softmax(-1), [x], [dout] if backward else None, ours, outs)

    return make


def _cross_entropy(backward: bool) -> Make:
    def make(rows: int, columns: int, device: str) -> Problem:
        x = _random(rows, columns, device=device, seed=0)
        target = torch.randint(0, columns, (rows,), device=device, generator=torch.Generator(device).manual_seed(1))
        dloss = torch.ones((), device=device)
        outs = [_unwritten(x if backward else dloss)]

        def ours() -> Launch:
            lse = x.float().logsumexp(-1)
            scale = torch.full((1,), 1 / rows, device=device)

            def launch() -> None:
                outs[0] = cross_entropy_backward(dloss, x, target, lse, scale) if backward else cross_entropy(x, target)

            return launch

        def theirs(x: torch.Tensor) -> torch.Tensor:
            return functional.cross_entropy(x, target)

        return Problem(theirs, [x], [dloss] if backward else None, ours, outs)

    return make


def _swiglu(backward: bool) -> Make:
    def make(rows: int, columns: int, device: str) -> Problem:
        gate, up, dout = (_random(rows, columns, device=device, seed=seed) for seed in range(3))
        outs = [_unwritten(gate) for _ in range(1 + backward)]

        def ours() -> Launch:
            def launch() -> None:
                if backward:
                    outs[:] = swiglu_backward(gate, up, dout)
                else:
                    swiglu(gate, up, *outs)

            return launch

        def theirs(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
            return functional.silu(gate) * up

        return Problem(theirs, [gate, up], [dout] if backward else None, ours, outs)

    return make


def _rope(rows: int, columns: int, device: str) -> Problem:
    positions = POSITIONS if rows % POSITIONS == 0 else rows
    x = _random(rows // positions, positions, columns, device=device, seed=0)
    angles = torch.randn(positions, columns // 2, device=device, generator=torch.Generator(device).manual_seed(1))
    cosines, sines = angles.cos(), angles.sin()
    outs = [_unwritten(x)]

    def ours() -> Launch:
        def launch() -> None:
            outs[0] = rope(x, cosines, sines)

        return launch

    def theirs(x: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, -1)
        turned = [first * cosines - second * sines, second * cosines + first * sines]
        return torch.cat(turned, -1).to(x.dtype)

    return Problem(theirs, [x], None, ours, outs)


OPERATORS = {
    "rms-norm": Operator("rms_norm", _norm(False, False), 2, FORWARD_TARGET, SHAPES + LONG_SHAPES),
    "rms-norm-backward": Operator("rms_norm, gradients", _norm(False, True), 3, BACKWARD_TARGET, SHAPES + LONG_SHAPES),
    "layer-norm": Operator("layer_norm", _norm(True, False), 2, FORWARD_TARGET, SHAPES + LONG_SHAPES),
    "layer-norm-backward": Operator(
        "layer_norm, gradients", _norm(True, True), 3, BACKWARD_TARGET, SHAPES + LONG_SHAPES
    ),
    "rms-norm-residual": Operator(
        "rms_norm_residual", _residual(False, False), 4, FORWARD_TARGET, SHAPES + LONG_SHAPES
    ),
    "rms-norm-residual-backward": Operator(
        "rms_norm_residual, gradients", _residual(False, True), 4, BACKWARD_TARGET, SHAPES + LONG_SHAPES
    ),
    "layer-norm-residual": Operator(
        "layer_norm_residual", _residual(True, False), 4, FORWARD_TARGET, SHAPES + LONG_SHAPES
    ),
    "layer-norm-residual-backward": Operator(
        "layer_norm_residual, gradients", _residual(True, True), 4, BACKWARD_TARGET, SHAPES + LONG_SHAPES
    ),
    "softmax": Operator("softmax", _softmax(False), 2, FORWARD_TARGET, SHAPES + LONG_SHAPES),
    "softmax-backward": Operator("softmax, gradient", _softmax(True), 3, BACKWARD_TARGET, SHAPES + LONG_SHAPES),
    "cross-entropy": Operator("cross_entropy", _cross_entropy(False), 1, FORWARD_TARGET, LOGITS),
    "cross-entropy-backward": Operator("cross_entropy, gradient", _cross_entropy(True), 2, BACKWARD_TARGET, LOGITS),
    "swiglu": Operator("swiglu", _swiglu(False), 3, FORWARD_TARGET, GATES),
    "swiglu-backward": Operator("swiglu, gradients", _swiglu(True), 5, BACKWARD_TARGET, GATES),
    "rope": Operator("rope", _rope, 2, FORWARD_TARGET, HEADS),
}
"""By the name of the family, without `rows-`. Each is a family of its own, which stays far below its limit of time."""


def families(*, dry: bool, screen: bool) -> dict[str, Family]:
    """All families by name; with `screen` ours alone are measured."""
    found = [_family(name, operator, dry, screen) for name, operator in OPERATORS.items()]
    return {family.name: family for family in found}


def _family(name: str, operator: Operator, dry: bool, screen: bool) -> Family:
    device = "cpu" if dry else "cuda"

    def checks(run: Run) -> Iterator[Check]:
        for shape in [(5, 100)] if dry else [(7, 100), (1, 8), (999, 1000), (130, 12000), (40, 70000)]:
            problem = operator.make(*shape, device)
            run(problem.ours(), f"{operator.title} {shape[0]} x {shape[1]}")
            yield check(problem, f"{operator.title} {shape[0]} x {shape[1]}")
        problem = operator.make(*((4, 64) if dry else (999, 8192)), device)
        yield _repeated(problem, operator.title, times=2 if dry else 200)

    family = Family(f"rows-{name}", f"{operator.title}, {DTYPE}", checks)
    family.cases += [_case(shape, operator, dry, screen) for shape in operator.shapes]
    return family


def _case(shape: tuple[int, int], operator: Operator, dry: bool, screen: bool) -> Case:
    rows, columns = shape
    elements = rows * columns

    def make():
        problem = operator.make(*((4, 64) if dry else shape), "cpu" if dry else "cuda")

        def copy() -> Launch:
            x, y = problem.inputs[0], torch.empty_like(problem.inputs[0])
            return lambda: y.copy_(x)

        candidates: dict[str, Callable[[], Launch]] = {}
        if not screen:
            candidates |= {COPY: copy, EAGER: lambda: _launch_of(problem.theirs, problem)}
            candidates[COMPILED] = lambda: compiled(problem, dry=dry)
            candidates |= cute.rows(operator.title, problem.inputs)
        candidates[OURS] = problem.ours
        return candidates, lambda: check(problem, f"{operator.title} {rows} x {columns}")

    moved = operator.accesses * BYTES * elements
    traffic = {COPY: 2 * BYTES * elements, EAGER: moved, COMPILED: moved, cute.ROWS: moved, OURS: moved}
    target = None if shape in LONG_SHAPES else operator.target
    return Case(f"{rows} x {columns}", 0, COPY, target, make, traffic=traffic)


def compiled(problem: Problem, *, dry: bool) -> Launch:
    """Torch's function, compiled for these shapes."""
    # Each shape is compiled for itself: what torch has of others would have it compile for any.
    torch._dynamo.reset()
    fn = torch.compile(problem.theirs, backend="aot_eager" if dry else "inductor", dynamic=False)
    return _launch_of(fn, problem)


def _launch_of(fn: Callable[..., Any], problem: Problem) -> Launch:
    if problem.grads is None:
        return lambda: fn(*problem.inputs)
    inputs = [each.detach().requires_grad_() for each in problem.inputs]
    # Compiled gradients would take the memory of what was saved, which another round needs.
    import torch._functorch.config as settings

    settings.donated_buffer = False
    out = fn(*inputs)
    return lambda: torch.autograd.grad(out, inputs, problem.grads, retain_graph=True)


def check(problem: Problem, label: str) -> Check:
    """Compare all results with torch's in float64; the worst of them."""
    errors = [_error(found, wanted) for found, wanted in zip(problem.outs, expected(problem), strict=True)]
    # A NaN is no maximum.
    worst = max(errors, key=lambda error: error if error == error else float("inf"))
    return Check(f"{label} {DTYPE}", worst, gpu_checks.LIMITS[DTYPE])


def expected(problem: Problem) -> Any:
    """Torch's results in float64."""
    inputs = [each.detach().double().requires_grad_(problem.grads is not None) for each in problem.inputs]
    out = problem.theirs(*inputs)
    if problem.grads is not None:
        return torch.autograd.grad(out, inputs, [each.double() for each in problem.grads])
    return out if isinstance(out, tuple) else [out]


def _error(found: torch.Tensor, expected: torch.Tensor) -> float:
    return ((found.double() - expected).norm() / expected.norm().clamp_min(1e-30)).item()


def _repeated(problem: Problem, label: str, times: int) -> Check:
    """Count the runs that differ from the first one in any bit; results may be new tensors each time."""
    launch = problem.ours()
    launch()
    first = [each.clone() for each in problem.outs]
    differing = 0
    for _ in range(times):
        launch()
        differing += not all(torch.equal(one, other) for one, other in zip(problem.outs, first, strict=True))
    return Check(f"{label} {DTYPE}, runs of {times} that differ", differing, 1)


def _random(*shape: int, device: str, seed: int) -> torch.Tensor:
    return gpu_checks.random(shape, gpu_checks.DTYPES[DTYPE], device, seed)


def _unwritten(like: torch.Tensor) -> torch.Tensor:
    return torch.full_like(like, torch.nan)
