"""Kernels in the TTL language for tests of the machines, with their tensors and what they shall compute."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp

import tlx_xdsl.ttl.language as ttl
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.ttl.frontend import compile_kernel
from tlx_xdsl.ttl.language.kernel import Kernel
from tlx_xdsl.ttl.runtime.specs import specs_of
from tlx_xdsl.ttl.transforms.pipeline import ttl_pipeline

Arrays = list[np.ndarray]


@ttl.kernel(grid=(2, 1))
def scaled(x, out):
    x_cb = ttl.make_circular_buffer_like(x, shape=(1, 2))
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 2))
    row, _ = ttl.core(dims=2)

    @ttl.compute()
    def compute():
        for _ in range(2):
            with x_cb.wait() as a, out_cb.reserve() as o:
                o.store(ttl.math.sqrt(a) * a)

    @ttl.datamovement()
    def read():
        for c in range(2):
            with x_cb.reserve() as a:
                ttl.copy(x[row, c * 2 : c * 2 + 2], a).wait()

    @ttl.datamovement()
    def write():
        for c in range(2):
            with out_cb.wait() as o:
                ttl.copy(o, out[row, c * 2 : c * 2 + 2]).wait()


def scaled_arrays() -> Arrays:
    x = np.abs(np.random.default_rng(1).standard_normal((64, 128), dtype=np.float32))
    return [x, np.full_like(x, np.nan)]


def scaled_result(x: np.ndarray) -> np.ndarray:
    return np.sqrt(x) * x


@ttl.kernel(grid=(1, 1), fp32_dest_acc_en=True)
def matmul(a, b, out):
    a_cb = ttl.make_circular_buffer_like(a, shape=(2, 1))
    b_cb = ttl.make_circular_buffer_like(b, shape=(1, 2))
    out_cb = ttl.make_circular_buffer_like(out, shape=(2, 2))

    @ttl.compute()
    def compute():
        with out_cb.reserve() as o:
            for _ in range(3):
                with a_cb.wait() as x, b_cb.wait() as y:
                    o += x @ y

    @ttl.datamovement()
    def read():
        for k in range(3):
            with a_cb.reserve() as x, b_cb.reserve() as y:
                ttl.copy(a[0:2, k], x)
                ttl.copy(b[k, 0:2], y)

    @ttl.datamovement()
    def write():
        with out_cb.wait() as o:
            ttl.copy(o, out[0:2, 0:2]).wait()


def matmul_arrays() -> Arrays:
    random = np.random.default_rng(2)
    a, b = (random.integers(-4, 5, shape).astype(np.float32) for shape in ((64, 96), (96, 64)))
    return [a, b, np.full((64, 64), np.nan, np.float32)]


def matmul_result(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b


@ttl.kernel(grid=(1, 1))
def softmax(x, out):
    x_cb = ttl.make_circular_buffer_like(x, shape=(1, 2))
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 2))

    @ttl.compute()
    def compute():
        with x_cb.wait() as a, out_cb.reserve() as o:
            largest = ttl.math.reduce_max(a, dims=[1])
            weights = ttl.math.exp(a - ttl.math.broadcast(largest, a, dims=[1]))
            total = ttl.math.reduce_sum(weights, dims=[1])
            o.store(weights / ttl.math.broadcast(total, a, dims=[1]))

    @ttl.datamovement()
    def read():
        with x_cb.reserve() as a:
            ttl.copy(x[0, 0:2], a).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as o:
            ttl.copy(o, out[0, 0:2]).wait()


def softmax_arrays() -> Arrays:
    x = np.random.default_rng(3).standard_normal((32, 64), dtype=np.float32)
    return [x, np.full_like(x, np.nan)]


def softmax_result(x: np.ndarray) -> np.ndarray:
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


@ttl.kernel(grid=(3, 1))
def shared(x, weights, out):
    x_cb = ttl.make_circular_buffer_like(x, shape=(1, 1))
    weights_cb = ttl.make_circular_buffer_like(weights, shape=(1, 1))
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1))
    net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst_range=(slice(1, 3), 0))])
    row, _ = ttl.core(dims=2)

    @ttl.compute()
    def compute():
        for _ in range(2):
            with x_cb.wait() as a, weights_cb.wait() as w, out_cb.reserve() as o:
                o.store(a * w)

    @ttl.datamovement()
    def read():
        for c in range(2):
            with weights_cb.reserve() as w:
                if row == 0:
                    ttl.copy(weights[0, c], w).wait()
                net.if_src(lambda pipe: ttl.copy(w, pipe).wait())
                net.if_dst(lambda pipe: ttl.copy(pipe, w).wait())
            with x_cb.reserve() as a:
                ttl.copy(x[row, c], a).wait()

    @ttl.datamovement()
    def write():
        for c in range(2):
            with out_cb.wait() as o:
                ttl.copy(o, out[row, c]).wait()


def shared_arrays() -> Arrays:
    random = np.random.default_rng(4)
    x, weights = (random.standard_normal(shape, dtype=np.float32) for shape in ((96, 64), (32, 64)))
    return [x, weights, np.full_like(x, np.nan)]


def shared_result(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return x * np.tile(weights, (3, 1))


@dataclass(frozen=True)
class Case:
    """A kernel, its tensors, of which the last one is written, and what it shall compute."""

    kernel: Kernel
    arrays: Callable[[], Arrays]
    result: Callable[..., np.ndarray]


CASES = {
    "scaled": Case(scaled, scaled_arrays, scaled_result),
    "matmul": Case(matmul, matmul_arrays, matmul_result),
    "softmax": Case(softmax, softmax_arrays, softmax_result),
    "shared": Case(shared, shared_arrays, shared_result),
}


def stages(case: Case) -> dict[str, ModuleOp]:
    """The module after each pass, by the pass's name; a copy of each."""
    module = compile_kernel(case.kernel, specs_of(case.kernel, case.arrays()))
    found: dict[str, ModuleOp] = {}
    for each in ttl_pipeline(to="ttkernel"):
        each.apply(make_context(), module)
        found[each.name] = copied(module)
    return found


def copied(module: ModuleOp) -> ModuleOp:
    """A copy that has the locations, too."""
    copy = module.clone()
    for old, new in zip(module.walk(), copy.walk(), strict=True):
        new.location = old.location
    return copy
