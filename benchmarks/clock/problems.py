"""Problems for the clock: kernels at shapes, each with its configurations, for training and held out.

A family is one kernel with its configurations, a problem one family at one shape. Constants of the clock may rest on
the problems of training; those that are held out are looked at when the constants stand.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.clock import plain
from tlx_xdsl import TensorDescriptor
from tlx_xdsl.kernels.calls.launching import Launch

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

MULTIPROCESSORS = 132


@dataclass
class Work:
    """One configuration: the launch that is timed, and what has to run once before it.

    `plain` kernels are converted and pipelined by stock Triton, `num_stages` deep. `reference` gives what `out` must
    hold, from tensors of torch; `limit` bounds the relative error.
    """

    launch: Launch
    before: tuple[Launch, ...] = ()
    num_stages: int = 3
    plain: bool = False
    specialized: bool = False
    out: Any = None
    reference: Callable[[], Any] | None = None
    limit: float = 1e-2

    @property
    def signature(self) -> dict[str, str]:
        """The types of the arguments, with what Triton's launches promise of their values where that is asked for."""
        types = self.launch.signature
        if not self.specialized:
            return types
        return {name: _specialized(type_, self.launch.arguments[name]) for name, type_ in types.items()}

    @property
    def key(self) -> str:
        """A name for what is compiled."""
        launch = self.launch
        said = (
            launch.kernel.source.filename.rsplit("/", 1)[-1], launch.kernel.source.name, sorted(self.signature.items()),
            sorted((name, str(value)) for name, value in launch.constexprs.items()), launch.num_warps, launch.cluster,
            launch.maxnreg, launch.launch_pdl, self.num_stages, self.plain,
        )  # fmt: skip
        return hashlib.sha256(repr(said).encode()).hexdigest()[:16]


def _specialized(type_: str, value: Any) -> str:
    if ":" in type_ or type_.startswith("tensordesc"):
        return type_
    if type_.startswith("*"):
        return f"{type_}:16"
    return f"{type_}:16" if isinstance(value, int) and type_ == "i32" and value % 16 == 0 else type_


Make = Callable[[Any], Mapping[str, Callable[[], Work]]]


@dataclass
class Problem:
    """A family at a shape. `make` takes what makes arrays (`arrays`), and gives configurations by name."""

    family: str
    shape: str
    held_out: bool
    make: Make

    @property
    def name(self) -> str:
        """Return the family and the shape."""
        return f"{self.family} {self.shape}"


def problems() -> list[Problem]:
    """All problems, those of training first."""
    found = [*_products(), *_examples(), *_plain_products(), *_eight_bits(), *_grouped()]
    found += [*_attention(), *_attention_examples(), *_plain_attention(), *_backward(), *_decode()]
    found += [*_rows(), *_losses(), *_plain_sums(), *_plain_softmaxes(), *_plain_norms(), *_plain_losses()]
    assert len({each.name for each in found}) == len(found), "a problem has one name"
    return sorted(found, key=lambda each: each.held_out)


def _both(training: Sequence[Any], held_out: Sequence[Any]) -> Iterator[tuple[bool, Any]]:
    yield from ((False, each) for each in training)
    yield from ((True, each) for each in held_out)


def _shown(sizes: Sequence[Any]) -> str:
    return "x".join(str(each) for each in sizes)


def _described(tensor: Any, block: Sequence[int]) -> TensorDescriptor:
    return TensorDescriptor.from_tensor(tensor, list(block))


def _launch(
    kernel: Any, grid: tuple[int, ...], values: Mapping[str, Any], constants: Mapping[str, Any], device: Any, warps: int
) -> Launch:
    return Launch.of(kernel, grid, values, constants, device, {}, num_warps=warps)


def _part(made: Any, at: int) -> tuple[Launch, tuple[Launch, ...]]:
    """The launch of a number, and those ahead of it."""
    parts = made.parts
    return parts[at], tuple(parts[:at])


# --- products ---------------------------------------------------------------------------------------------------------


def _products() -> Iterator[Problem]:
    """The library's GEMM: cooperative and ping-pong tiles dealt out whole, in clusters, split along K."""
    training = [((4096, 4096, 4096), "fp16"), ((2048, 2048, 2048), "fp16"), ((8192, 8192, 512), "bf16")]
    held_out = [
        ((3072, 3072, 3072), "bf16"), ((5120, 2560, 5120), "fp16"), ((1024, 1024, 8192), "bf16"),
        ((16384, 2048, 1024), "fp16"), ((6144, 1536, 4096), "bf16"),
    ]  # fmt: skip
    names = ("large", "192", "160", "128", "medium", "small", "large by 2")
    for held, (shape, dtype) in _both(training, held_out):

        def make(arrays: Any, shape: Any = shape, dtype: str = dtype) -> Any:
            from tlx_xdsl.kernels.gemm.dense import gemm_launch
            from tlx_xdsl.kernels.gemm.tiles import CONFIGS

            a, b, c, reference = _matrices(arrays, shape, dtype)

            def work(name: str) -> Work:
                launch, before = _part(gemm_launch(a, b, c, config=CONFIGS[name]), 0)
                return Work(launch, before, out=c, reference=reference)

            return {name: lambda name=name: work(name) for name in names}

        yield Problem("gemm", f"{_shown(shape)} {dtype}", held, make)
    split = [((128, 4096, 4096), "bf16")], [((256, 2048, 8192), "bf16"), ((64, 8192, 8192), "fp16")]
    for held, (shape, dtype) in _both(*split):

        def make_split(arrays: Any, shape: Any = shape, dtype: str = dtype) -> Any:
            from tlx_xdsl.kernels.gemm.dense import gemm_launch
            from tlx_xdsl.kernels.gemm.division import candidates

            a, b, c, reference = _matrices(arrays, shape, dtype)
            every = list(candidates(*shape, MULTIPROCESSORS))
            parted, whole = [each for each in every if each.split > 1], [each for each in every if not each.share]
            found = [*parted[:: max(len(parted) // 4, 1)][:4], *whole[:: max(len(whole) // 3, 1)][:3]]

            def work(choice: Any) -> Work:
                launch, before = _part(gemm_launch(a, b, c, config=choice), 0)
                return Work(launch, before, out=c, reference=reference)

            def label(choice: Any) -> str:
                config = choice.config
                swapped = " swapped" if choice.swapped else ""
                tile = f"{config.block_m}x{config.tile_n}x{config.block_k}"
                return f"{config.schedule} {tile} by {config.cluster} split {choice.split}{swapped}"

            return {label(each): lambda each=each: work(each) for each in found}

        yield Problem("gemm split", f"{_shown(shape)} {dtype}", held, make_split)


def _matrices(arrays: Any, shape: tuple[int, int, int], dtype: str) -> tuple[Any, Any, Any, Callable[[], Any]]:
    m, n, k = shape
    a, b, c = arrays.random((m, k), dtype), arrays.random((k, n), dtype), arrays.empty((m, n), dtype)
    return a, b, c, lambda: a.float() @ b.float()


def example(name: str) -> Any:
    """The module of an example."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


def _examples() -> Iterator[Problem]:
    """The examples' GEMMs, with other tiles and rings."""
    tiles = {
        "hopper_gemm_ws": [
            (128, 256, 64, 2),
            (128, 256, 64, 3),
            (128, 256, 64, 4),
            (128, 128, 64, 3),
            (128, 128, 64, 5),
        ],
        "hopper_gemm_persistent_cooperative": [
            (128, 256, 64, 2),
            (128, 256, 64, 3),
            (128, 128, 64, 2),
            (128, 128, 64, 4),
        ],
        "hopper_gemm_persistent_pingpong": [(128, 128, 64, 2), (128, 128, 64, 3), (128, 128, 64, 5), (64, 128, 64, 5)],
        "hopper_gemm_pipelined": [(128, 256, 64, 2), (128, 256, 64, 3), (128, 256, 64, 4), (128, 128, 64, 3)],
    }
    shapes = {
        "hopper_gemm_ws": ([(2048, 2048, 4096)], [(4096, 4096, 2048), (2560, 3072, 6144), (1024, 2048, 1024)]),
        "hopper_gemm_persistent_cooperative": ([(4096, 4096, 4096)], [(6144, 4096, 2048), (2816, 2816, 2816)]),
        "hopper_gemm_persistent_pingpong": ([(4096, 4096, 4096)], [(8192, 4096, 1024), (2048, 6144, 3072)]),
        "hopper_gemm_pipelined": ([(2048, 2048, 2048)], [(4096, 4096, 1024), (3072, 2048, 4096)]),
    }
    for name, (training, held_out) in shapes.items():
        for held, shape in _both(training, held_out):

            def make(arrays: Any, name: str = name, shape: Any = shape) -> Any:
                m, n, k = shape
                a, b, c, reference = _matrices(arrays, shape, "fp16")
                half = name in ("hopper_gemm_ws", "hopper_gemm_persistent_cooperative")

                def work(tile: tuple[int, int, int, int]) -> Work:
                    block_m, block_n, block_k, _ = tile
                    rows = block_m // 2 if half else block_m
                    if name == "hopper_gemm_pipelined":
                        values = {
                            "a_ptr": a, "b_ptr": b, "c_ptr": c, "M": m, "N": n, "K": k,
                            "stride_a": k, "stride_b": n, "stride_c": n,
                        }  # fmt: skip
                    else:
                        values = {
                            "a_desc": _described(a, (rows, block_k)), "b_desc": _described(b, (block_k, block_n)),
                            "c_desc": _described(c, (rows, block_n)), "M": m, "N": n, "K": k,
                        }  # fmt: skip
                    constants = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K", "NUM_STAGES"), tile, strict=True), GROUP_M=8)
                    count = -(-m // block_m) * -(-n // block_n)
                    grid = min(count, MULTIPROCESSORS) if "persistent" in name else count
                    warps = 8 if name == "hopper_gemm_pipelined" else 4
                    launch = _launch(example(name).matmul, (grid,), values, constants, arrays.device, warps)
                    return Work(launch, specialized=True, out=c, reference=reference)

                return {f"{_shown(tile[:3])} {tile[3]} stages": lambda tile=tile: work(tile) for tile in tiles[name]}

            yield Problem(name.removeprefix("hopper_"), _shown(shape), held, make)


def _plain_products() -> Iterator[Problem]:
    """Triton's tutorial's GEMM by pointers, and by descriptors."""
    choices = [
        ((128, 128, 64), 4, 1), ((128, 128, 64), 4, 2), ((128, 128, 64), 4, 3), ((128, 128, 64), 4, 5),
        ((128, 128, 64), 8, 3), ((128, 256, 64), 8, 3), ((64, 64, 64), 2, 3), ((128, 64, 32), 4, 4),
    ]  # fmt: skip
    for name in ("matmul", "matmul_tma"):
        training = [(2048, 2048, 2048)]
        held_out = [(4096, 4096, 1024), (1536, 3072, 4096), (1024, 1024, 1024)]
        if name == "matmul_tma":
            training, held_out = [(3072, 3072, 1024)], [(4096, 2048, 2048), (2048, 4096, 4096)]
        for held, shape in _both(training, held_out):

            def make(arrays: Any, name: str = name, shape: Any = shape) -> Any:
                m, n, k = shape
                a, b, c, reference = _matrices(arrays, shape, "fp16")

                def work(tile: tuple[int, int, int], warps: int, stages: int) -> Work:
                    block_m, block_n, block_k = tile
                    sizes = {"M": m, "N": n, "K": k}
                    if name == "matmul":
                        values = {"a_ptr": a, "b_ptr": b, "c_ptr": c, **sizes}
                    else:
                        values = {
                            "a_desc": _described(a, (block_m, block_k)), "b_desc": _described(b, (block_k, block_n)),
                            "c_desc": _described(c, (block_m, block_n)), **sizes,
                        }  # fmt: skip
                    constants = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "GROUP_M": 8}
                    grid = (-(-m // block_m) * -(-n // block_n),)
                    launch = _launch(getattr(plain, name), grid, values, constants, arrays.device, warps)
                    return Work(launch, (), stages, plain=True, specialized=True, out=c, reference=reference)

                return {
                    f"{_shown(tile)} {warps} warps {stages} stages": lambda each=(tile, warps, stages): work(*each)
                    for tile, warps, stages in choices
                }

            yield Problem(f"plain {name}", _shown(shape), held, make)


def _eight_bits() -> Iterator[Problem]:
    for held, shape in _both([(4096, 4096, 4096)], [(2048, 7168, 2048), (8192, 2048, 4096)]):

        def make(arrays: Any, shape: Any = shape) -> Any:
            from tlx_xdsl.kernels.gemm.scaled.call import scaled_gemm_launch
            from tlx_xdsl.kernels.gemm.scaled.config import CONFIGS

            m, n, k = shape
            a, b = arrays.random((m, k), "fp8e4nv"), arrays.transposed(arrays.random((n, k), "fp8e4nv"))
            one = arrays.ones((1,), "fp32")
            out = arrays.empty((m, n), "bf16")

            def work(name: str, fast: bool) -> Work:
                launch = scaled_gemm_launch(a, b, one, one, out, fast=fast, config=CONFIGS[name])
                return Work(launch, out=out, reference=lambda: a.float() @ b.float())

            wanted = (
                ("large", True),
                ("pingpong", True),
                ("small", True),
                ("wide", True),
                ("buffered", False),
                ("medium", False),
            )
            return {f"{name}{' fast' if fast else ''}": lambda each=(name, fast): work(*each) for name, fast in wanted}

        yield Problem("gemm fp8", _shown(shape), held, make)


def _grouped() -> Iterator[Problem]:
    for held, (groups, rows, n, k) in _both([(8, 8192, 4096, 2048)], [(16, 8192, 2048, 4096), (32, 8192, 2048, 1024)]):

        def make(arrays: Any, groups: int = groups, rows: int = rows, n: int = n, k: int = k) -> Any:
            from tlx_xdsl.kernels.gemm.grouped.call import grouped_gemm_launch
            from tlx_xdsl.kernels.gemm.grouped.config import CONFIGS

            x, w = arrays.random((rows, k), "bf16"), arrays.random((groups, k, n), "bf16")
            out = arrays.empty((rows, n), "bf16")
            # Groups of unequal sizes, the same in each run.
            shares = [3 + (7 * group) % 11 for group in range(groups)]
            ends = [rows * sum(shares[: group + 1]) // sum(shares) for group in range(groups)]
            offsets = arrays.numbers(ends, "i32")
            spans = list(zip([0, *ends], ends, strict=False))

            def reference() -> Any:
                return arrays.joined(
                    [x[first:end].float() @ w[group].float() for group, (first, end) in enumerate(spans)]
                )

            def work(name: str) -> Work:
                launch = grouped_gemm_launch(x, w, offsets, out, config=CONFIGS[name])
                return Work(launch, out=out, reference=reference)

            return {name: lambda name=name: work(name) for name in CONFIGS}

        yield Problem("grouped gemm", _shown((groups, rows, n, k)), held, make)


# --- attention --------------------------------------------------------------------------------------------------------


def _heads(arrays: Any, shape: tuple[int, int, int, int], dtype: str) -> tuple[Any, ...]:
    q, k, v = (arrays.random(shape, dtype) for _ in range(3))
    return q, k, v, arrays.empty(shape, dtype), arrays.empty(shape[:3], "fp32")


def _attended(q: Any, k: Any, v: Any, causal: bool) -> Any:
    from torch.nn import functional

    return functional.scaled_dot_product_attention(q, k, v, is_causal=causal).float()


def _attention() -> Iterator[Problem]:
    training = [((2, 16, 4096, 128), False), ((4, 16, 2048, 64), True)]
    held_out = [
        ((4, 8, 2048, 128), True),
        ((1, 32, 4096, 64), False),
        ((2, 8, 8192, 128), False),
        ((8, 16, 1024, 64), True),
    ]
    for held, (shape, causal) in _both(training, held_out):

        def make(arrays: Any, shape: Any = shape, causal: bool = causal) -> Any:
            from tlx_xdsl.kernels.attention.config import AttentionConfig
            from tlx_xdsl.kernels.attention.forward import attention_launch

            q, k, v, out, lse = _heads(arrays, shape, "bf16")
            configs = [
                AttentionConfig(2, 240),
                AttentionConfig(2, 240, block_n=64),
                AttentionConfig(2, 240, block_n=64, stages=3),
                AttentionConfig(1, 240, block_n=64),
                AttentionConfig(1, 240),
            ]
            if shape[3] == 64:
                configs += [AttentionConfig(3, 160), AttentionConfig(3, 160, all_heads=True)]

            def work(config: Any) -> Work:
                launch = attention_launch(q, k, v, out, lse, causal=causal, config=config)
                return Work(launch, out=out, reference=lambda: _attended(q, k, v, causal))

            def label(each: Any) -> str:
                together = " together" if each.all_heads else ""
                return f"{each.consumers} consumers x{each.block_n} {each.stages} stages{together}"

            return {label(each): lambda each=each: work(each) for each in configs}

        yield Problem("attention", f"{_shown(shape)}{' causal' if causal else ''}", held, make)


def _attention_examples() -> Iterator[Problem]:
    shapes = {
        "hopper_attention_ws": ([((2, 16, 2048, 128), False)], [((1, 16, 4096, 64), True), ((2, 24, 2048, 64), False)]),
        "hopper_attention_pipelined": (
            [((2, 16, 2048, 64), False)],
            [((2, 8, 4096, 128), False), ((3, 16, 2048, 64), True)],
        ),
        "hopper_attention_pingpong": (
            [((2, 16, 4096, 64), True)],
            [((2, 12, 4096, 128), False), ((4, 16, 1024, 64), True)],
        ),
    }
    free = ((128, 128, 2), (128, 64, 2), (128, 64, 3), (128, 64, 4))
    diagonal = ((128, 128, 2), (128, 128, 3), (128, 128, 4))
    for name, (training, held_out) in shapes.items():
        for held, (shape, causal) in _both(training, held_out):

            def make(arrays: Any, name: str = name, shape: Any = shape, causal: bool = causal) -> Any:
                batch, heads, length, dim = shape
                q, k, v, out, lse = _heads(arrays, shape, "fp16")

                def work(block_m: int, block_n: int, stages: int) -> Work:
                    blocks = {"q": (q, block_m // 2), "k": (k, block_n), "v": (v, block_n), "o": (out, block_m // 2)}
                    values: dict[str, Any] = {
                        f"{each}_desc": _described(tensor.reshape(-1, dim), (rows, dim))
                        for each, (tensor, rows) in blocks.items()
                    }
                    values |= {"lse_ptr": lse, "sm_scale": dim**-0.5, "LENGTH": length}
                    grid: tuple[int, ...] = (length // block_m, batch * heads)
                    if "pingpong" in name:
                        values["HEADS"] = batch * heads
                        grid = (min(math.prod(grid), MULTIPROCESSORS),)
                    constants = {
                        "BLOCK_M": block_m,
                        "BLOCK_N": block_n,
                        "HEAD_DIM": dim,
                        "NUM_STAGES": stages,
                        "CAUSAL": causal,
                    }
                    launch = _launch(example(name).attention, grid, values, constants, arrays.device, 4)
                    return Work(launch, specialized=True, out=out, reference=lambda: _attended(q, k, v, causal))

                return {
                    f"{_shown(tile[:2])} {tile[2]} stages": lambda tile=tile: work(*tile)
                    for tile in (diagonal if causal else free)
                }

            family = name.removeprefix("hopper_")
            yield Problem(family, f"{_shown(shape)}{' causal' if causal else ''}", held, make)


def _plain_attention() -> Iterator[Problem]:
    choices = [(128, 128, 8, 2), (128, 64, 8, 1), (128, 64, 8, 3), (128, 64, 4, 3), (64, 64, 4, 2), (128, 32, 8, 4)]
    held_out = [((4, 16, 1024, 64), False), ((1, 16, 4096, 64), True), ((2, 16, 2048, 128), False)]
    for held, (shape, causal) in _both([((2, 16, 2048, 64), False)], held_out):

        def make(arrays: Any, shape: Any = shape, causal: bool = causal) -> Any:
            batch, heads, length, dim = shape
            q, k, v, out, _ = _heads(arrays, shape, "fp16")

            def work(block_m: int, block_n: int, warps: int, stages: int) -> Work:
                values = {"q_ptr": q, "k_ptr": k, "v_ptr": v, "o_ptr": out, "sm_scale": dim**-0.5, "LENGTH": length}
                constants = {"BLOCK_M": block_m, "BLOCK_N": block_n, "HEAD_DIM": dim, "CAUSAL": causal}
                grid = (length // block_m, batch * heads)
                launch = _launch(plain.attention, grid, values, constants, arrays.device, warps)
                made = lambda: _attended(q, k, v, causal)  # noqa: E731
                return Work(launch, (), stages, plain=True, specialized=True, out=out, reference=made)

            return {
                f"{_shown(each[:2])} {each[2]} warps {each[3]} stages": lambda each=each: work(*each)
                for each in choices
            }

        yield Problem("plain attention", f"{_shown(shape)}{' causal' if causal else ''}", held, make)


def _backward() -> Iterator[Problem]:
    """The main kernel of the gradients; what prepares it runs once before."""
    training = [((2, 16, 2048, 128), False)]
    held_out = [((1, 16, 4096, 64), True), ((2, 8, 4096, 128), True), ((4, 16, 1024, 64), False)]
    for held, (shape, causal) in _both(training, held_out):

        def make(arrays: Any, shape: Any = shape, causal: bool = causal) -> Any:
            from tlx_xdsl.kernels.attention.backward.call import attention_backward_launch
            from tlx_xdsl.kernels.attention.backward.config import BackwardConfig

            q, k, v, out, lse = _heads(arrays, shape, "bf16")
            arrays.attend(q, k, v, out, lse, causal)
            dout = arrays.random(shape, "bf16")
            grads = [arrays.empty(shape, "bf16") for _ in range(3)]
            wide = 128 if shape[3] == 64 else 64
            choices = {
                "default": (BackwardConfig(wide), False), "deterministic": (BackwardConfig(wide), True),
                "66 programs": (BackwardConfig(wide), False, 66), "88 programs": (BackwardConfig(wide), False, 88),
            }  # fmt: skip

            def work(config: Any, deterministic: bool, programs: int | None = None) -> Work:
                made = attention_backward_launch(
                    q, k, v, out, lse, dout, *grads, causal=causal, config=config, deterministic=deterministic,
                    programs=programs,
                )  # fmt: skip
                # Counters and sums are zeroed by the launch ahead: it runs before each launch that is timed.
                return Work(made.parts[1], tuple(made.parts[:1]))

            return {name: lambda each=each: work(*each) for name, each in choices.items()}

        yield Problem("attention backward", f"{_shown(shape)}{' causal' if causal else ''}", held, make)


def _decode() -> Iterator[Problem]:
    for held, (batch, heads, kv_heads, keys) in _both([(16, 32, 8, 8192)], [(64, 32, 8, 2048), (2, 64, 8, 32768)]):

        def make(
            arrays: Any, batch: int = batch, heads: int = heads, kv_heads: int = kv_heads, keys: int = keys
        ) -> Any:
            from tlx_xdsl.kernels.attention.decode.call import attention_decode_launch

            q, out = arrays.random((batch, heads, 1, 128), "bf16"), arrays.empty((batch, heads, 1, 128), "bf16")
            k, v = (arrays.random((batch, kv_heads, keys, 128), "bf16") for _ in range(2))

            def work(splits: int) -> Work:
                made = attention_decode_launch(q, k, v, out, splits=splits)
                return Work(made.parts[0])

            return {f"{splits} splits": lambda splits=splits: work(splits) for splits in (1, 2, 4, 8, 16)}

        yield Problem("decode", _shown((batch, heads, kv_heads, keys)), held, make)


# --- rows -------------------------------------------------------------------------------------------------------------


def _rows() -> Iterator[Problem]:
    """The library's rows, with its own number of warps, half of it and twice as many."""
    shapes = [(8192, 4096)], [(4096, 8192), (16384, 2048)]
    for kind in ("layer_norm", "rms_norm", "softmax", "softmax_backward"):
        for held, (rows, columns) in _both(*shapes):

            def make(arrays: Any, kind: str = kind, rows: int = rows, columns: int = columns) -> Any:
                from tlx_xdsl.kernels.rows import layernorm, rmsnorm, softmax

                x, out = arrays.random((rows, columns), "bf16"), arrays.empty((rows, columns), "bf16")
                weight, bias = (arrays.random((columns,), "bf16") for _ in range(2))
                other = arrays.random((rows, columns), "bf16")

                def launch() -> Launch:
                    if kind == "layer_norm":
                        return layernorm.layer_norm_launch(x, weight, bias, out)
                    if kind == "rms_norm":
                        return rmsnorm.rms_norm_launch(x, weight, out)
                    if kind == "softmax":
                        return softmax.softmax_launch(x, out)
                    return softmax.softmax_backward_launch(x, other, out)

                def reference() -> Any:
                    from torch.nn import functional

                    if kind == "layer_norm":
                        return functional.layer_norm(x.float(), (columns,), weight.float(), bias.float(), 1e-5)
                    if kind == "rms_norm":
                        return functional.rms_norm(x.float(), (columns,), weight.float(), 1e-6)
                    return x.float().softmax(-1)

                compared = None if kind == "softmax_backward" else reference

                def work(factor: float) -> Work:
                    made = launch()
                    warps = min(max(int(made.num_warps * factor), 1), 32)
                    maxnreg = made.maxnreg if factor == 1 else None
                    return Work(replace(made, num_warps=warps, maxnreg=maxnreg), out=out, reference=compared)

                return {
                    name: lambda each=each: work(each) for name, each in (("warps", 1), ("half", 0.5), ("twice", 2))
                }

            yield Problem(kind, _shown((rows, columns)), held, make)


def _losses() -> Iterator[Problem]:
    """The library's cross-entropy, with its registers and with half of them."""
    for held, (rows, columns) in _both([(8192, 32000)], [(4096, 50304)]):

        def make_losses(arrays: Any, rows: int = rows, columns: int = columns) -> Any:
            from tlx_xdsl.kernels.rows.cross_entropy import cross_entropy_launch

            x, target = (
                arrays.random((rows, columns), "bf16"),
                arrays.numbers([row % columns for row in range(rows)], "i64"),
            )
            losses, lse = arrays.empty((rows,), "fp32"), arrays.empty((rows,), "fp32")

            def work(factor: float) -> Work:
                made = cross_entropy_launch(x, target, losses, lse)
                if factor == 1:
                    return Work(made)
                return Work(replace(made, maxnreg=int((made.maxnreg or 64) * factor) // 8 * 8))

            return {name: lambda each=each: work(each) for name, each in (("registers", 1), ("half of them", 0.5))}

        yield Problem("cross entropy", _shown((rows, columns)), held, make_losses)


def _plain_sums() -> Iterator[Problem]:
    for held, count in _both([1 << 24], [3 << 22, 1 << 26]):

        def make_sum(arrays: Any, count: int = count) -> Any:
            x, y, out = arrays.random((count,), "fp32"), arrays.random((count,), "fp32"), arrays.empty((count,), "fp32")

            def work(block: int, warps: int) -> Work:
                values = {"x_ptr": x, "y_ptr": y, "out_ptr": out, "n": count}
                grid = (-(-count // block),)
                launch = _launch(plain.vector_add, grid, values, {"BLOCK": block}, arrays.device, warps)
                return Work(launch, plain=True, specialized=True, out=out, reference=lambda: x + y)

            wanted = ((256, 4), (1024, 4), (1024, 8), (2048, 2), (4096, 8))
            return {f"{block} {warps} warps": lambda each=(block, warps): work(*each) for block, warps in wanted}

        yield Problem("plain vector add", str(count), held, make_sum)


def _plain_softmaxes() -> Iterator[Problem]:
    for held, (rows, columns) in _both([(8192, 2048)], [(16384, 1024), (4096, 6144), (2048, 12288)]):

        def make_softmax(arrays: Any, rows: int = rows, columns: int = columns) -> Any:
            x, out = arrays.random((rows, columns), "fp16"), arrays.empty((rows, columns), "fp16")
            block = 1 << (columns - 1).bit_length()

            def work(warps: int, stages: int, programs: int) -> Work:
                values = {"x_ptr": x, "out_ptr": out, "ROWS": rows, "COLUMNS": columns}
                grid = (min(programs * MULTIPROCESSORS, rows),)
                launch = _launch(plain.softmax, grid, values, {"BLOCK": block}, arrays.device, warps)
                made = lambda: x.float().softmax(-1)  # noqa: E731
                return Work(launch, (), stages, plain=True, specialized=True, out=out, reference=made)

            wanted = ((4, 1, 8), (8, 1, 4), (8, 2, 4), (8, 4, 2), (16, 2, 2), (4, 3, 1))
            return {
                f"{warps} warps {stages} stages {programs} programs": lambda each=(warps, stages, programs): work(*each)
                for warps, stages, programs in wanted
            }

        yield Problem("plain softmax", _shown((rows, columns)), held, make_softmax)


def _plain_norms() -> Iterator[Problem]:
    for held, (rows, columns) in _both([(4096, 4096)], [(8192, 2048), (4096, 8192), (2048, 16384)]):

        def make_norm(arrays: Any, rows: int = rows, columns: int = columns) -> Any:
            x, out = arrays.random((rows, columns), "fp16"), arrays.empty((rows, columns), "fp16")
            weight, bias = (arrays.random((columns,), "fp16") for _ in range(2))

            def reference() -> Any:
                from torch.nn import functional

                return functional.layer_norm(x.float(), (columns,), weight.float(), bias.float(), 1e-5)

            def work(block: int, warps: int) -> Work:
                values = {
                    "x_ptr": x,
                    "weight_ptr": weight,
                    "bias_ptr": bias,
                    "out_ptr": out,
                    "COLUMNS": columns,
                    "eps": 1e-5,
                }
                launch = _launch(plain.layer_norm, (rows,), values, {"BLOCK": block}, arrays.device, warps)
                return Work(launch, plain=True, specialized=True, out=out, reference=reference)

            wanted = ((1024, 2), (1024, 4), (2048, 4), (2048, 8), (4096, 8), (512, 4))
            return {f"{block} {warps} warps": lambda each=(block, warps): work(*each) for block, warps in wanted}

        yield Problem("plain layer norm", _shown((rows, columns)), held, make_norm)


def _plain_losses() -> Iterator[Problem]:
    for held, (rows, columns) in _both([(4096, 16384)], [(2048, 32000), (4096, 50304)]):

        def make_losses(arrays: Any, rows: int = rows, columns: int = columns) -> Any:
            x, loss = arrays.random((rows, columns), "fp16"), arrays.empty((rows,), "fp32")
            target = arrays.numbers([row % columns for row in range(rows)], "i32")

            def work(block: int, warps: int) -> Work:
                values = {"x_ptr": x, "target_ptr": target, "loss_ptr": loss, "COLUMNS": columns}
                launch = _launch(plain.cross_entropy, (rows,), values, {"BLOCK": block}, arrays.device, warps)
                return Work(launch, plain=True, specialized=True)

            wanted = ((1024, 4), (2048, 4), (4096, 8), (8192, 8), (8192, 16))
            return {f"{block} {warps} warps": lambda each=(block, warps): work(*each) for block, warps in wanted}

        yield Problem("plain cross entropy", _shown((rows, columns)), held, make_losses)
