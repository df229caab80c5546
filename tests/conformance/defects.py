"""Defects of public kernels that their projects have mended, each with a call that reaches it.

A case names the commit that mended it; what runs are the files of the commit before, and of that commit. Cases were
chosen by the words of commit messages (race, deadlock, hang, out of bounds, mask, fence, barrier) before the first run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from tests.conformance.cpu.cpu_entries import normal
from tests.conformance.cpu.cpu_loading import loader


@dataclass(frozen=True)
class Defect:
    """A defect, and what reaches it."""

    suite: str
    """The name of the mirror."""
    fix: str
    """The commit that mended it."""
    paths: tuple[str, ...]
    """What is taken of a commit."""
    what: str
    run: Callable[[Path], Any]
    """Gets the folder with the suite's."""
    target: str = "sm_90a"
    fakes_cuda: bool = False


DEFECTS: dict[str, Defect] = {}


def defect(name: str, suite: str, fix: str, *paths: str, what: str, **more: Any) -> Callable[[Any], Any]:
    """Enter a function as what reaches a defect."""

    def enter(run: Callable[[Path], Any]) -> Callable[[Path], Any]:
        assert name not in DEFECTS, name
        DEFECTS[name] = Defect(suite, fix, paths, what, run, **more)
        return run

    return enter


def small_memory(*modules: ModuleType) -> None:
    """Let modules of flash-linear-attention choose the blocks of GPUs with little shared memory."""
    for each in modules:
        each.check_shared_mem = lambda *_, **__: False


# flash-linear-attention ----------------------------------------------------------------------------------------------

FLA = "fla-org+flash-linear-attention"


def fla(root: Path, name: str) -> ModuleType:
    """A module below `fla/ops`."""
    (root / "fla").exists() or (root / "fla").symlink_to(root / FLA)
    # Its earlier versions choose the device of a tensor so, where the CPU has no such choice.
    torch.cpu.device = lambda _: nullcontext()  # pyright: ignore[reportAttributeAccessIssue]
    return loader("fla", root)(name)


@defect("fla_attn_lse", FLA, "2cec2a33", "fla", what="programs that split V all store the same elements of lse")
def fla_attn_lse(root: Path) -> None:
    module = fla(root, "attn.parallel")
    small_memory(module)
    q, k, v = (normal(1, 40, 1, 128, seed=at, dtype=torch.float16) for at in range(3))
    module.parallel_attn(q, k, v)


@defect("fla_nsa_lse", FLA, "2cec2a33", "fla", what="programs that split V all store the same elements of lse")
def fla_nsa_lse(root: Path) -> None:
    module = fla(root, "nsa.parallel")
    q, k = (normal(1, 40, heads, 64, seed=heads, dtype=torch.float16) for heads in (16, 1))
    v = normal(1, 40, 1, 320, seed=3, dtype=torch.float16)
    indices = torch.zeros(1, 40, 1, 2, dtype=torch.int64)
    indices[..., 1] = torch.arange(40)[None, :, None] // 32
    module.parallel_nsa_fwd(q, k, v, indices, 2, 32, 0.125)


@defect("fla_wall_attn_lse", FLA, "2cec2a33", "fla", what="programs that split V all store the same elements of lse")
def fla_wall_attn_lse(root: Path) -> None:
    module = fla(root, "wall_attn.parallel")
    small_memory(module)
    q, k = (normal(1, 31, heads, 32, seed=heads) for heads in (2, 1))
    v, g = normal(1, 31, 1, 128, seed=3), -normal(1, 31, 2, 32, seed=4).abs() * 0.05
    module.parallel_wall_attn(q, k, v, g)


@defect("fla_based_z", FLA, "5659576e", "fla", what="programs that split V all store the same elements of z")
def fla_based_z(root: Path) -> None:
    module = fla(root, "based.fused_chunk")
    q, k, v = (normal(1, 2, 40, size, seed=size) for size in (16, 16, 64))
    module.fused_chunk_based(*(each.transpose(1, 2) for each in (q, k, v)), use_norm=True)


@defect("fla_rwkv7_relu", FLA, "ebd4dd27", "fla", what="no mask at the end of the elements")
def fla_rwkv7_relu(root: Path) -> None:
    fla(root, "rwkv7.channel_mixing").rwkv_relu_and_square_fwd(normal(1, 7, 700), inplace=False)


@defect("fla_rwkv7_relu_backward", FLA, "ebd4dd27", "fla", what="no mask at the end of the elements")
def fla_rwkv7_relu_backward(root: Path) -> None:
    module = fla(root, "rwkv7.channel_mixing")
    dk, k = normal(4900), normal(4900, seed=1)
    more = (dk.numel(),) if "n_elements" in module.relu_square_bwd_kernel.arg_names else ()
    module.relu_square_bwd_kernel[(2,)](dk, k, *more, BLOCK_SIZE=4096)


@defect("fla_rwkv7_mix_backward", FLA, "ebd4dd27", "fla", what="lanes after the end store to the gradient of x_prev")
def fla_rwkv7_mix_backward(root: Path) -> None:
    module = fla(root, "rwkv7.channel_mixing")
    x, x_prev, x_k = normal(1, 7, 200), normal(1, 200, seed=1), normal(1, 1, 200, seed=2)
    # As many elements as blocks of 4096 have: the kernel before has no mask, either.
    k_weight, v_weight = normal(200, 4096, seed=3), normal(4096, 200, seed=4)
    k1 = module.rwkv_mix_fwd(x, x_prev, x_k)
    k1_k = k1 @ k_weight
    k = torch.relu(k1_k) ** 2
    torch.compiler.disable(module.rwkv_channel_mixing_bwd)(
        normal(1, 7, 200, seed=5), x, x_prev, x_k, k_weight, v_weight, k1, k1_k, k, inplace=True
    )  # fmt: skip


@defect("fla_gsa_gate", FLA, "3a904f02", "fla", what="gates are read after the last of them")
def fla_gsa_gate(root: Path) -> None:
    module = fla(root, "gsa")
    q, k, v = (normal(1, 70, 2, 32, seed=at).requires_grad_() for at in range(3))
    s, g = normal(1, 70, 2, 16, seed=4).requires_grad_(), -normal(1, 70, 2, 16, seed=5).abs()
    module.chunk_gsa(q, k, v, s, g.requires_grad_())[0].backward(normal(1, 70, 2, 32, seed=6))


# Meta's and stock Triton's tutorials ---------------------------------------------------------------------------------

META = "facebookexperimental+triton"


@defect(
    "tutorial_layer_norm_lock", META, "c23e30008", "python/tutorials/05-layer-norm.py",
    what="the lock is released before all threads have stored", fakes_cuda=True,
)  # fmt: skip
def tutorial_layer_norm_lock(root: Path) -> None:
    (root / "triton").symlink_to(root / META)
    module = loader("triton", root)("05-layer-norm")
    x = normal(8, 96).requires_grad_()
    weight, bias = normal(96, seed=1).requires_grad_(), normal(96, seed=2).requires_grad_()
    module.layer_norm(x, (96,), weight, bias, 1e-5).backward(normal(8, 96, seed=3))


def _imported(root: Path, file: str) -> ModuleType:
    """A tutorial of Meta's, by its file name; none of its demonstrations runs."""
    from importlib.util import module_from_spec, spec_from_file_location

    path = root / META / "third_party/tlx/tutorials" / file
    spec = spec_from_file_location(path.stem.replace("-", "_"), path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _one_program() -> None:
    """Let persistent kernels have one program, which takes all tiles."""
    torch.cuda.get_device_properties("cuda").multi_processor_count = 1


def _first_config(kernel: Any) -> None:
    kernel.configs = kernel.configs[:1]


@defect(
    "tlx_attention_row_maxima", META, "bee3ddcb2",
    "third_party/tlx/tutorials/blackwell-fa-ws-pipelined-persistent_test.py",
    what="tensor memory is released before the row maxima in it are read", target="sm_100a", fakes_cuda=True,
)  # fmt: skip
def tlx_attention_row_maxima(root: Path) -> None:
    _one_program()
    module = _imported(root, "blackwell-fa-ws-pipelined-persistent_test.py")
    _first_config(module._attn_fwd_ws)
    q, k, v = (normal(1, 2, 256, 64, seed=at, dtype=torch.float16) for at in range(3))
    module._attention.apply(q, k, v, 0.5, False, 64, 1)


@defect(
    "tlx_gemm_empty_split", META, "648dca741", "third_party/tlx/tutorials/blackwell_gemm_ws.py",
    what="a part of K without tiles waits for loads that never start", target="sm_100a", fakes_cuda=True,
)  # fmt: skip
def tlx_gemm_empty_split(root: Path) -> None:
    module = _imported(root, "blackwell_gemm_ws.py")
    config = {
        "BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8, "NUM_SMEM_BUFFERS": 2,
        "NUM_TMEM_BUFFERS": 2, "NUM_MMA_GROUPS": 1, "EPILOGUE_SUBTILE": 1, "NUM_CTAS": 1, "SPLIT_K": 8,
        "INTERLEAVE_EPILOGUE": 0,
    }  # fmt: skip
    a, b = normal(128, 576, dtype=torch.float16), normal(576, 128, seed=1, dtype=torch.float16)
    module.matmul(a, b, config=config)


@defect(
    "tlx_grouped_gemm_descriptors", META, "5d1c25f57", "third_party/tlx/tutorials/blackwell-grouped-gemm_test.py",
    what="a tensor map is rewritten while loads that use it are in flight", target="sm_100a", fakes_cuda=True,
)  # fmt: skip
def tlx_grouped_gemm_descriptors(root: Path) -> None:
    _one_program()
    module = _imported(root, "blackwell-grouped-gemm_test.py")
    _first_config(module.grouped_matmul_tlx_kernel)
    a = [normal(128, 128, seed=at, dtype=torch.float16) for at in range(2)]
    b = [normal(256, 128, seed=at + 2, dtype=torch.float16) for at in range(2)]
    module.group_gemm_tlx_fn(a, b)
