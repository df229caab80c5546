"""Graphs that torch.compile makes Triton kernels of, end to end, each against the same function as torch runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from tests.conformance.cpu.cpu_entries import Load, Pairs, below, both, entry, learnt, longs, normal
from tests.conformance.cpu.cpu_philox import rand

FLOAT = 1e-4
"""The tolerance of float32."""
HALF = 2e-2
"""The tolerance of bf16 and f16, which inductor computes in float32 between loads and stores."""


def _graph(tolerance: float = FLOAT) -> Callable[[Any], Any]:
    return entry("inductor", "torch/_inductor", call="torch.compile", tolerance=tolerance)


def _compiled(load: Load, function: Callable[..., Any], *given: Any, wide: bool = False, **options: Any) -> Pairs:
    """Compare a function, which has to become at least one kernel, with itself; `wide` computes it in float32."""
    backend = load("inductor_on_cpu")
    # Each call for its own sizes, though the functions of a loop are one to torch.
    torch.compiler.reset()
    before = len(backend.SOURCES)

    def reference(*given: Any) -> Any:
        if not wide:
            return function(*given)
        raised = function(*(each.float() if each.is_floating_point() else each for each in given))
        return raised.to(given[0].dtype)

    yield from both(torch.compile(function, fullgraph=True, **options), reference, *given)
    assert len(backend.SOURCES) > before, "nothing was generated"


@_graph()
def pointwise(load: Load) -> Pairs:
    """Sines, exponentials and quotients of odd sizes, forward and backward."""
    for shape in ((1003,), (7, 13, 31)):
        yield from _compiled(
            load, lambda x, y: x.sin() * y.exp() + x / (1 + y * y), learnt(*shape), learnt(*shape, seed=1)
        )  # fmt: skip


@_graph()
def activations(load: Load) -> Pairs:
    """`gelu` both ways, `silu`, `mish`, `softplus` and `elu`, forward and backward."""

    def all_of(x: torch.Tensor) -> Any:
        kinds = (functional.gelu, functional.silu, functional.mish, functional.softplus, functional.elu)
        return [functional.gelu(x, approximate="tanh"), *(each(x) for each in kinds)]

    yield from _compiled(load, all_of, learnt(5, 203, scale=3))


@_graph(HALF)
def pointwise_bf16(load: Load) -> Pairs:
    """`silu` and a product in bf16, of lengths that end in a single element."""
    for size in (5, 33, 257, 1025):
        given = [learnt(3, size, seed=at, dtype=torch.bfloat16) for at in range(2)]
        yield from _compiled(load, lambda x, y: functional.silu(x) * y, *given, wide=True)


@_graph(HALF)
def pointwise_f16(load: Load) -> Pairs:
    """`where`, `clamp` and a square root in f16."""
    x, y = (normal(9, 77, seed=at, dtype=torch.float16) for at in range(2))
    yield from _compiled(load, lambda x, y: torch.where(x > y, x.clamp(-1, 1), y.abs().sqrt()), x, y, wide=True)


@_graph(0.0)
def integers(load: Load) -> Pairs:
    """Sums that wrap around, shifts, quotients and remainders of int8, int32 and int64."""
    for dtype in (torch.int8, torch.int32, torch.int64):
        x = below(250, 7, 37, dtype=torch.int64).sub(125).to(dtype)
        y = below(100, 7, 37, seed=1, dtype=torch.int64).add(1).to(dtype)
        yield from _compiled(
            load, lambda x, y: (x + x + y, x // y, x % y, (x << 1) ^ (y >> 2), torch.where(x < 0, ~x, x & y)), x, y
        )  # fmt: skip


@_graph()
def conversions(load: Load) -> Pairs:
    """Conversions between types of floats and integers, truncations and roundings."""

    def all_of(x: torch.Tensor) -> Any:
        wide = (x.to(torch.int32), x.to(torch.int8), x > 0, x.half(), x.bfloat16(), x.double())
        return [*wide, x.trunc(), x.round(), x.floor(), x.ceil()]

    yield from _compiled(load, all_of, normal(5, 67, scale=20))


@_graph()
def transposed(load: Load) -> Pairs:
    """Sums with a transposed and a permuted tensor, and a copy of one."""
    yield from _compiled(load, lambda x, y: x + y.t(), learnt(37, 65), learnt(65, 37, seed=1))
    yield from _compiled(load, lambda x: x.permute(0, 3, 1, 2).contiguous() * 2, learnt(2, 7, 9, 5))


@_graph()
def broadcast(load: Load) -> Pairs:
    """Tensors of rank 4 that are broadcast, whose gradients are sums."""
    given = learnt(3, 1, 7, 11), learnt(5, 1, 11, seed=1), learnt(7, 1, seed=2)
    yield from _compiled(load, lambda x, y, z: x * y + z, *given)


@_graph()
def any_size(load: Load) -> Pairs:
    """A kernel whose sizes are arguments (`dynamic=True`), run on two."""
    function = torch.compile(lambda x, y: (x.transpose(1, 2) * y).sum(-1), dynamic=True, fullgraph=True)
    for shape in ((2, 5, 7), (3, 11, 4)):
        x, y = normal(*shape), normal(shape[0], shape[2], shape[1], seed=1)
        yield function(x, y), (x.transpose(1, 2) * y).sum(-1)
    assert load("inductor_on_cpu").SOURCES


@_graph()
def softmax(load: Load) -> Pairs:
    """`softmax` and `log_softmax` of rows that a block holds, and of 5,000 in a loop, forward and backward."""
    for function in (torch.softmax, torch.log_softmax):
        for shape in ((37, 300), (5, 5000)):
            yield from _compiled(load, lambda x, function=function: function(x, -1), learnt(*shape, scale=3))


@_graph()
def layer_norm(load: Load) -> Pairs:
    """`layer_norm` of rows that a block holds, forward and backward."""
    yield from _compiled(
        load, lambda x, w, b: functional.layer_norm(x, (257,), w, b),
        learnt(33, 257), learnt(257, seed=1), learnt(257, seed=2),
    )  # fmt: skip


@_graph()
def layer_norm_long(load: Load) -> Pairs:
    """`layer_norm` of rows of 4,099 by Welford's means, forward and backward."""
    yield from _compiled(
        load, lambda x, w, b: functional.layer_norm(x, (4099,), w, b),
        learnt(3, 4099), learnt(4099, seed=1), learnt(4099, seed=2),
    )  # fmt: skip


@_graph(1e-3)
def batch_norm(load: Load) -> Pairs:
    """`batch_norm` in training, forward and backward: reductions over outer dimensions."""
    yield from _compiled(
        load, lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True),
        learnt(8, 5, 6, 7), learnt(5, seed=1), learnt(5, seed=2),
    )  # fmt: skip


@_graph(1e-3)
def reductions(load: Load) -> Pairs:
    """Sum, mean, product, extrema, variance and norm, along each dimension."""

    def all_of(x: torch.Tensor) -> Any:
        found = []
        for dim in (0, 1, 2):
            found += [x.sum(dim), x.mean(dim), x.prod(dim), x.amax(dim), x.amin(dim), x.var(dim), x.norm(dim=dim)]
        return [*found, (x > 1).any(1), (x < 3).all(2)]

    yield from _compiled(load, all_of, normal(7, 19, 33))


@_graph(1e-3)
def split_reduction(load: Load) -> Pairs:
    """The sum, the maximum and the deviation of 200,003 numbers, in two steps."""
    yield from _compiled(load, lambda x: (x.sum(), x.amax(), x.std()), normal(200_003))


@_graph(0.0)
def positions_of_extrema(load: Load) -> Pairs:
    """`argmax` and `argmin` of rows and columns: of equals the first, and NaN before all numbers."""
    x = below(9, 13, 70, dtype=torch.float32)
    x[3, 40] = x[7, 11] = x[7, 12] = float("nan")
    yield from _compiled(load, lambda x: (x.argmax(1), x.argmin(1), x.argmax(0), x.argmin(0), x.argmax()), x)


@_graph(0.0)
def nan_and_infinity(load: Load) -> Pairs:
    """Extrema, comparisons, `sign`, `relu` and `isnan` of NaN, infinities, zeros and denormal numbers."""
    odd = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-40, -1e-40, 1.0, -2.0])
    x, y = odd.repeat(9), odd.repeat_interleave(9)

    def all_of(x: torch.Tensor, y: torch.Tensor) -> Any:
        extrema = [torch.maximum(x, y), torch.minimum(x, y), torch.fmax(x, y), torch.fmin(x, y), x.relu(), x.sign()]
        predicates = [x < y, x <= y, x == y, x != y, x.isnan(), x.isinf(), x.signbit(), x.clamp(min=-1.0, max=1.0)]
        return [*extrema, *predicates, x.amax(), x[1:2].amin()]

    yield from _compiled(load, all_of, x, y)


@_graph(1e-3)
def cumulative(load: Load) -> Pairs:
    """`cumsum`, `cumprod`, `logcumsumexp` and `cummax` of rows, by an associative scan."""

    def all_of(x: torch.Tensor) -> Any:
        return [x.cumsum(-1), (1 + x / 100).cumprod(-1), x.logcumsumexp(-1), *x.cummax(-1)]

    yield from _compiled(load, all_of, normal(5, 300))


@_graph(0.0)
def sort(load: Load) -> Pairs:
    """`sort`, stable, in both directions, with the positions."""
    yield from _compiled(load, lambda x: x.sort(dim=-1, stable=True), below(50, 6, 100, dtype=torch.float32))
    yield from _compiled(load, lambda x: x.sort(dim=-1, stable=True, descending=True), below(50, 6, 33))


@_graph()
def index_put(load: Load) -> Pairs:
    """`index_put` that adds up what one place gets, by atomics, and `scatter_add`."""
    places = below(11, 200, dtype=torch.int64)

    def all_of(x: torch.Tensor, values: torch.Tensor) -> Any:
        put = x.index_put((places,), values, accumulate=True)
        return put, x.scatter_add(0, places[:, None].expand_as(values), values)

    yield from _compiled(load, all_of, normal(11, 7), normal(200, 7, seed=1))


@_graph()
def gather(load: Load) -> Pairs:
    """`embedding`, `gather` and `index_select`; the gradient of the first adds up."""
    at = below(50, 3, 21, dtype=torch.int64)
    yield from _compiled(load, lambda table: functional.embedding(at, table), learnt(50, 35))
    yield from _compiled(load, lambda x: (x.gather(1, at), x.index_select(1, at[0])), normal(3, 50))


@_graph(0.0)
def buckets(load: Load) -> Pairs:
    """`bucketize` and `searchsorted`, on both sides."""
    edges = torch.linspace(-2, 2, 17)
    x = torch.cat((normal(7, 43).flatten(), edges))
    yield from _compiled(
        load, lambda x: [torch.bucketize(x, edges, right=right) for right in (True, False)], x
    )  # fmt: skip


@_graph()
def dropout(load: Load) -> Pairs:
    """Philox's numbers in Python, for `rand`; for `dropout`, the gradient's mask is the result's."""
    function = torch.compile(lambda: torch.rand(3, 501), fullgraph=True)
    torch.manual_seed(3)
    got = function()
    torch.manual_seed(3)
    seed = int(torch.randint(*SEEDS, [1]))
    yield got, rand(seed, torch.arange(3 * 501, dtype=torch.int32)).reshape(3, 501)
    x = learnt(40, 50)
    result = torch.compile(lambda x: functional.dropout(x, 0.3) * 2, fullgraph=True)(x)
    (gradient,) = torch.autograd.grad(result.sum(), x)
    kept = result != 0
    yield result, torch.where(kept, x * 2 / 0.7, 0)
    yield gradient, kept * (2 / 0.7)
    assert 0.6 < kept.float().mean() < 0.8, "dropout drops another part"
    assert len(load("inductor_on_cpu").SOURCES) > 1


SEEDS = -(2**63), 2**63 - 1
"""Between which inductor draws the seeds of its kernels, by torch's generator."""


@_graph()
def cross_entropy(load: Load) -> Pairs:
    """`cross_entropy` with smoothing and an index to ignore, forward and backward."""
    target = below(301, 17, dtype=torch.int64)
    target[4] = -100
    yield from _compiled(
        load, lambda x: functional.cross_entropy(x, target, label_smoothing=0.1), learnt(17, 301, scale=2)
    )  # fmt: skip


@_graph()
def views(load: Load) -> Pairs:
    """`flip`, slices with steps, `cat`, `roll`, `tril` and `pad`, which become masks and negative strides."""

    def all_of(x: torch.Tensor) -> Any:
        moved = [x.flip(0, 1) + 1, x[1:, ::3] * 2, torch.cat((x, x[:, :5] * 3), 1), x.roll(4, 1) - 1]
        return [*moved, x.tril(-1), functional.pad(x, (2, 3, 1, 0), value=7.0) * 2]

    yield from _compiled(load, all_of, normal(9, 31))


@_graph()
def pixels(load: Load) -> Pairs:
    """Pooling, `interpolate` of the nearest and bilinear, and `im2col` by `unfold`."""

    def all_of(x: torch.Tensor) -> Any:
        pools = [functional.avg_pool2d(x, 3, 2, 1), *functional.max_pool2d(x, 2, return_indices=True)]
        near = functional.interpolate(x, scale_factor=2.0)
        return [*pools, near, functional.interpolate(x, size=(7, 9), mode="bilinear"), x.unfold(3, 4, 2) * 2]

    yield from _compiled(load, all_of, normal(2, 3, 10, 12))


@_graph()
def special_functions(load: Load) -> Pairs:
    """`lgamma`, `erfinv`, `expm1`, `log1p`, `atan2`, `hypot` and other functions of libdevice."""

    def all_of(x: torch.Tensor, y: torch.Tensor) -> Any:
        of_one = [x.lgamma(), x.erf(), x.expm1(), x.log1p(), x.sinh(), x.atan(), x.rsqrt(), x.tan(), x.log2()]
        return [*of_one, (x / 10).erfinv(), torch.atan2(x, y), torch.hypot(x, y), x.pow(y), x.fmod(y)]

    yield from _compiled(load, all_of, normal(5, 67).abs() + 0.1, normal(5, 67, seed=1))


@_graph()
def small(load: Load) -> Pairs:
    """A number, one element, and nothing at all."""
    for shape in ((), (1,), (1, 1, 1), (0,), (3, 0)):
        function = torch.compile(lambda x: (x * 2 + 1, x.sum()), fullgraph=True)
        x = normal(*shape)
        yield from zip(function(x), (x * 2 + 1, x.sum()), strict=True)
    yield longs(len(load("inductor_on_cpu").SOURCES) > 0), longs(1)
