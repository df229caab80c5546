"""Uses of `tlx` that the frontend and the passes accept for a target compile for it with stock Triton."""

from pathlib import Path

import pytest

from tests.unit import volume
from tests.unit.frontend.kernels import load
from tests.versions import INSTALLED
from tlx_xdsl.backend import BackendOptions, compile_ttgir
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.driver.compilation import CompiledText, Specialization, compile_text
from tlx_xdsl.targets import TARGETS, Target

pytestmark = pytest.mark.backend

TILE = "tile = tlx.local_alloc((64, 64), tl.float16, 1)[0]"
BARS = "bars = tlx.alloc_barriers(2)"
OFFSETS = "i = tl.arange(0, 64)"
BODIES: dict[str, tuple[list[str], int]] = {
    "prefetch": ([OFFSETS, "tlx.prefetch(x + i)"], 80),
    "clock": (["tl.store(c, tlx.clock64())"], 80),
    "vote": ([OFFSETS, "tl.store(n_out + i, tlx.vote_ballot_sync(-1, i > 5))"], 80),
    "thread id": (["tl.store(n_out, tlx.thread_id(0))"], 80),
    "named barriers": (
        [
            "with tlx.async_tasks():",
            "    with tlx.async_task('default'):",
            "        tlx.named_barrier_wait(3, 256)",
            "    with tlx.async_task(num_warps=4):",
            "        tlx.named_barrier_arrive(3, 256)",
        ],
        80,
    ),
    "warp barrier": (
        ["bars = tlx.alloc_warp_barrier(1)", "tlx.barrier_arrive(bars[0])", "tlx.barrier_wait(bars[0], 0)"],
        80,
    ),
    "fence": (["tlx.fence('gpu')"], 80),
    "gather of a buffer": (
        [
            OFFSETS,
            "buf = tlx.local_alloc((64,), tl.float32, 1)[0]",
            "tlx.local_store(buf, tl.load(x + i))",
            "tl.store(x + i, tlx.local_gather(buf, 63 - i, 0))",
        ],
        80,
    ),
    "shared buffers": (
        [
            "spec = tlx.storage_alias_spec()",
            "p = tlx.local_alloc((64, 64), tl.float16, 2, reuse=spec)",
            "q = tlx.local_alloc((64, 64), tl.float16, 2, reuse=spec)",
            "spec.set_buffer_overlap(tlx.reuse_group(p, q))",
            "tlx.local_store(p[0], tl.zeros((64, 64), tl.float16))",
            "tl.store(h, tl.sum(tl.sum(tlx.local_load(q[0]), 0)))",
        ],
        80,
    ),
    "bytes": ([BARS, "tlx.barrier_expect_bytes(bars[0], 64)"], 90),
    "bulk load": (
        [BARS, "buf = tlx.local_alloc((64,), tl.float32, 1)[0]", "tlx.barrier_expect_bytes(bars[0], 256)",
         "tlx.async_load(x, buf, bulk=True, barrier=bars[0])"],
        90,
    ),
    "bulk store": (["buf = tlx.local_alloc((64,), tl.float32, 1)[0]", "tlx.async_store(x, buf, 256)"], 90),
    "prefetch of a block": (["tlx.async_descriptor_prefetch_tensor(tiles, [0, 0])"], 90),
    "prefetch of a descriptor": (["tlx.prefetch(tiles, tensormap=True)"], 90),
    "cluster": (["tlx.cluster_barrier()", "tl.store(n_out, tlx.cluster_cta_rank())"], 90),
    "remote arrival": ([BARS, "tlx.barrier_arrive(bars[0], remote_cta_rank=0)"], 90),
    "multicast": (
        [BARS, TILE, "tlx.barrier_expect_bytes(bars[0], 8192)",
         "tlx.async_descriptor_load(tiles, tile, [0, 0], bars[0], multicast_targets=[0, 1])"],
        90,
    ),
    "descriptor in memory": (
        ["where = tlx.allocate_tensor_descriptor(1)",
         "d = tlx.make_tensor_descriptor(where, h, [64, 64], [64, 1], [64, 64])", BARS, TILE,
         "tlx.barrier_expect_bytes(bars[0], 8192)", "tlx.async_descriptor_load(d, tile, [0, 0], bars[0])"],
        90,
    ),
    "stochastic rounding": ([OFFSETS, "tl.store(h + i, tlx.stoch_round(tl.load(x + i), tl.float16, i))"], 100),
    "launch control": (
        [
            "ctx = tlx.clc_create_context(1)",
            "tlx.clc_producer(ctx, 0, 0)",
            "tl.store(n_out, tlx.clc_consumer(ctx, 0, 0))",
        ],
        100,
    ),
}  # fmt: skip
"""The body of a kernel, and the lowest capability that has all that it needs."""

IN_CLUSTERS = {"cluster", "remote arrival", "multicast"}
ARGUMENTS = {"x": "*fp32:16", "h": "*fp16:16", "c": "*i64", "n_out": "*i32", "tiles": "tensordesc<fp16[64, 64]>"}


def compiled(path: Path, body: list[str], target: Target, cluster: int) -> CompiledText | CompilationError:
    source = "\n".join([f"def kernel({', '.join(ARGUMENTS)}):", *(f"    {line}" for line in body)])
    kernel = load(path, f"@tlx_xdsl.jit\n{source}\n").kernel
    wanted = Specialization(ARGUMENTS, target=target.name, cluster=(cluster, 1, 1))
    try:
        return compile_text(kernel.source, wanted, triton_version=INSTALLED)
    except CompilationError as error:
        return error


@pytest.mark.parametrize("name", BODIES)
def test_what_is_accepted_compiles(name: str, tmp_path: Path):
    body, since = BODIES[name]
    first = next(index for index, target in enumerate(TARGETS) if target.capability >= since)
    targets = TARGETS if volume.is_full() else TARGETS[max(first - 1, 0) : first + 1]
    for target in targets:
        text = compiled(tmp_path, body, target, 2 if name in IN_CLUSTERS else 1)
        if isinstance(text, CompilationError):
            if "does not exist in Triton" in text.message:
                pytest.skip(text.message)
            assert " needs " in text.message, text
            assert text.message.endswith(f"; target is {target.name}")
            assert target.capability < since or name == "stochastic rounding"
            continue
        assert target.capability >= since
        assert compile_ttgir(text.ttgir, BackendOptions(target=target.name)).cubin
