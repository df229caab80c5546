"""The entry points of the public TLX tutorials on small shapes, each against torch.

A case loads a tutorial as it is, calls what its own tests call, and compares. Sizes and pipeline depths are parameters
of the tutorials; the smallest that they allow are chosen here. torchao quantizes the inputs of the MXFP8 ones.
"""

from __future__ import annotations

import inspect
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

HOPPER, BLACKWELL = "sm_90a", "sm_100a"

Load = Callable[[str], ModuleType]


@dataclass(frozen=True)
class Defect:
    """Mistake in a kernel of others, with a pattern of the message that shows it."""

    what: str
    pattern: str

    def shown_by(self, reason: str) -> bool:
        """Return whether a message is of this defect."""
        return re.search(self.pattern, reason) is not None


@dataclass(frozen=True)
class Case:
    """A kernel of others with one set of parameters."""

    name: str
    targets: tuple[str, ...]
    run: Callable[[Load], None]
    source: str = ""
    """Where it is from, where the name does not say so."""
    defect: Defect | None = None


CASES: dict[str, Case] = {}
ERRORS: list[float] = []
"""The largest error of each comparison of this process."""


class WrongNumbers(AssertionError):
    """A result that is not the reference's."""


def add(name: str, run: Callable[[Load], None], *targets: str) -> None:
    """Enter a case."""
    assert name not in CASES
    CASES[name] = Case(name, targets, run)


def check(result: torch.Tensor, reference: torch.Tensor, atol: float, rtol: float = 0.0) -> None:
    """Compare.

    Raises WrongNumbers.
    """
    ERRORS.append((result.float() - reference.float()).abs().max().item())
    try:
        torch.testing.assert_close(result.float(), reference.float(), atol=atol, rtol=rtol)
    except AssertionError as error:
        raise WrongNumbers(str(error)) from error


def check_angle(result: torch.Tensor, reference: torch.Tensor, least: float) -> None:
    """Compare what went through 8 bits: by the cosine of the angle between the two.

    Raises WrongNumbers.
    """
    cosine = torch.nn.functional.cosine_similarity(result.float().flatten(), reference.float().flatten(), dim=0).item()
    if not cosine >= least:
        raise WrongNumbers(f"the cosine is {cosine:.4f}, expected at least {least}")


def one_config(tuner: Any, **wanted: Any) -> None:
    """Leave a tuner one configuration: the first that has the wanted parameters; with others than it has by `_name`."""
    changes = {name[1:]: value for name, value in wanted.items() if name.startswith("_")}
    needs = {name: value for name, value in wanted.items() if not name.startswith("_")}
    first = next(
        each for each in tuner.configs if needs.items() <= {**each.kwargs, "num_warps": each.num_warps}.items()
    )
    first.kwargs.update(changes)
    tuner.configs = [first]


# Matrix products -----------------------------------------------------------------------------------------------------


def gemm(
    file: str, shape: tuple[int, int, int], config: Mapping[str, Any] | None, dtype: torch.dtype
) -> Callable[[Load], None]:
    """A tutorial whose `matmul(a, b, config=)` is a product of two matrices."""

    def run(load: Load) -> None:
        m, n, k = shape
        torch.manual_seed(0)
        a, b = ((torch.randn(size, device="cuda", dtype=dtype) + 1) / k for size in ((m, k), (k, n)))
        result = load(file).matmul(a, b, config=None if config is None else dict(config))
        check(result, a.float() @ b.float(), 1e-3, 1e-2)

    return run


_WS = {
    "BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 256, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8, "NUM_SMEM_BUFFERS": 2,
    "NUM_TMEM_BUFFERS": 2, "NUM_MMA_GROUPS": 1, "EPILOGUE_SUBTILE": 1, "NUM_CTAS": 1, "SPLIT_K": 1,
    "INTERLEAVE_EPILOGUE": 0,
}  # fmt: skip
_WS_PAIR = _WS | {
    "BLOCK_SIZE_M": 256, "BLOCK_SIZE_N": 128, "GROUP_SIZE_M": 2, "NUM_MMA_GROUPS": 2, "EPILOGUE_SUBTILE": 2,
    "NUM_CTAS": 2, "INTERLEAVE_EPILOGUE": 1, "USE_WARP_BARRIER": False, "num_warps": 4, "num_stages": 1,
    "ctas_per_cga": (2, 1, 1),
}  # fmt: skip
_CLC = {
    "BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 256, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8, "NUM_SMEM_BUFFERS": 2,
    "NUM_TMEM_BUFFERS": 2, "EPILOGUE_SUBTILE": True,
}  # fmt: skip
_PIPELINED = {"BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8, "NUM_STAGES": 4}
_HOPPER_PIPELINED = _PIPELINED | {"BLOCK_SIZE_N": 256, "NUM_STAGES": 3}
_HOPPER_WS = {
    "BM": 128, "BN": 256, "BK": 64, "GROUP_SIZE_M": 8, "NUM_STAGES": 3, "NUM_MMA_WARPS": 8, "NUM_MMA_GROUPS": 2,
    "EPILOGUE_SUBTILE": False, "NUM_CTAS": 1,
}  # fmt: skip

for _dtype, _suffix in ((torch.float16, "fp16"), (torch.bfloat16, "bf16")):
    for _name, _file, _shape, _config in (
        ("gemm_ws", "blackwell_gemm_ws", (256, 256, 128), _WS),
        ("gemm_ws_warp_barrier", "blackwell_gemm_ws", (256, 256, 128), _WS | {"USE_WARP_BARRIER": True}),
        ("gemm_ws_split_k", "blackwell_gemm_ws", (128, 256, 256), _WS | {"SPLIT_K": 2}),
        ("gemm_ws_2cta_2group", "blackwell_gemm_ws", (512, 128, 128), _WS_PAIR),
        ("gemm_clc", "blackwell_gemm_clc", (256, 256, 128), _CLC),
        ("gemm_clc_warp_barrier", "blackwell_gemm_clc", (256, 256, 128), _CLC | {"USE_WARP_BARRIER": True}),
        ("gemm_pipelined", "blackwell_gemm_pipelined", (256, 256, 256), _PIPELINED),
        ("gemm_2cta", "blackwell_gemm_2cta", (512, 512, 128), None),
    ):
        add(f"blackwell_{_name}_{_suffix}", gemm(_file, _shape, _config, _dtype), BLACKWELL)
for _name, _file, _config in (
    ("gemm_pipelined", "hopper_gemm_pipelined", _HOPPER_PIPELINED),
    ("gemm_ws", "hopper_gemm_ws", _HOPPER_WS),
    ("gemm_ws_warp_barrier", "hopper_gemm_ws", _HOPPER_WS | {"USE_WARP_BARRIER": True}),
    ("gemm_ws_skinny", "hopper_gemm_ws", None),
):
    add(f"hopper_{_name}", gemm(_file, (256, 256, 256), _config, torch.float16), HOPPER)


def persistent_gemm(file: str) -> Callable[[Load], None]:
    """A persistent product of Hopper's tutorials, of few tiles for each program."""

    def run(load: Load) -> None:
        module = load(file)
        one_config(module.matmul_kernel_tlx_ws_persistent)
        torch.manual_seed(0)
        a = torch.randn((512, 128), dtype=torch.float16, device="cuda")
        b = torch.randn((128, 512), dtype=torch.float16, device="cuda")
        module.triton.set_allocator(module.alloc_fn)
        check(module.matmul_tlx_ws_persistent(a, b), a.float() @ b.float(), 5e-2, 1e-2)

    return run


for _name in ("cooperative", "pingpong"):
    add(f"hopper_persistent_gemm_{_name}", persistent_gemm(f"hopper-persistent-gemm-ws-{_name}"), HOPPER)


def vector_add(load: Load) -> None:
    """The first tutorial."""
    module = load("vector-add2")
    x, y, a, b = (torch.rand(4096, device="cuda") for _ in range(4))
    for function in (module.add2, module.add2_warp_specialized):
        first, second = function(x, y, a, b)
        check(first, x + y, 1e-6)
        check(second, a + b, 1e-6)


add("vector_add", vector_add, HOPPER, BLACKWELL)


def grouped_gemm(name: str) -> Callable[[Load], None]:
    """Products of several sizes in one launch."""

    def run(load: Load) -> None:
        module = load("blackwell-grouped-gemm_test")
        torch.manual_seed(0)
        sizes = ((256, 256, 256), (128, 128, 128))
        group_a = [torch.rand((m, k), device="cuda", dtype=torch.float16) for m, _, k in sizes]
        group_b = [torch.rand((k, n), device="cuda", dtype=torch.float16) for _, n, k in sizes]
        kernel = {"tlx": "grouped_matmul_tlx_kernel", "tma": "grouped_matmul_tma_kernel"}.get(
            name, "grouped_matmul_kernel"
        )
        one_config(getattr(module, kernel))
        if name == "tma":
            products = module.group_gemm_tma_fn(group_a, [b.T.contiguous() for b in group_b])
        else:
            products = {"tlx": module.group_gemm_tlx_fn, "plain": module.group_gemm_fn}[name](group_a, group_b)
        for a, b, c in zip(group_a, group_b, products, strict=True):
            check(c, a.float() @ b.float(), 1e-2, 1e-2)

    return run


for _name in ("tlx", "tma", "plain"):
    add(f"blackwell_grouped_gemm_{_name}", grouped_gemm(_name), BLACKWELL)


def scaled_mm(mode: str, rows: int, columns: int = 128, **options: Any) -> Callable[[Load], None]:
    """A product of fp8 matrices with scales in fp32."""

    def run(load: Load) -> None:
        module, (m, n, k) = load("blackwell_scaled_mm_ws"), (rows, columns, 256)
        one_config(module._blackwell_scaled_mm_ws_kernel)
        torch.manual_seed(0)
        a, b = ((torch.randn(size, k, device="cuda") * 0.1).to(torch.float8_e4m3fn) for size in (m, n))
        if mode == "blockwise":
            scale_a = torch.rand(m, k // 128, device="cuda").t().contiguous().t()
            scale_b = torch.rand(n // 128, k // 128, device="cuda")
            wide_a, wide_b = (
                scale_a.repeat_interleave(128, 1),
                scale_b.repeat_interleave(128, 0).repeat_interleave(128, 1),
            )
        else:
            scale_a, scale_b = (torch.rand(size if mode == "rowwise" else 1, device="cuda") for size in (m, n))
            wide_a, wide_b = scale_a.reshape(-1, 1), scale_b.reshape(-1, 1)
        result = module.blackwell_scaled_mm_ws(a, b, scale_a, scale_b, scale_mode=mode, **options)
        check(result, (a.float() * wide_a) @ (b.float() * wide_b).T, 1e-1, 5e-2)

    return run


for _mode in ("blockwise", "rowwise", "tensorwise"):
    add(f"blackwell_scaled_mm_{_mode}", scaled_mm(_mode, 128), BLACKWELL)
add("blackwell_scaled_mm_128", scaled_mm("blockwise", 256, BLOCK_M=128), BLACKWELL)
add("blackwell_scaled_mm_clc", scaled_mm("blockwise", 128, USE_CLC=True), BLACKWELL)


def addmm_pair(name: str) -> Callable[[Load], None]:
    """Products whose dots ask for a pair of CTAs."""

    def run(load: Load) -> None:
        module = load("blackwell-triton-addmm-2cta_test")
        torch.manual_seed(0)
        a = torch.randn((256, 128), device="cuda", dtype=torch.float16)
        b = torch.randn((128, 128), device="cuda", dtype=torch.float16)
        check(getattr(module, name)(a, b), a.float() @ b.float(), 1e-1, 1e-2)

    return run


for _name in ("matmul_2cta", "matmul_2cta_ws", "matmul_2cta_host_tma", "matmul_2cta_host_tma_ws"):
    add(f"blackwell_addmm_{_name}", addmm_pair(_name), BLACKWELL)


# Products of MXFP8 ---------------------------------------------------------------------------------------------------


def mxfp8(tensor: torch.Tensor) -> Any:
    """A matrix in e4m3 with swizzled scales, quantized by torchao."""
    from torchao.prototype.mx_formats.mx_tensor import MXTensor, ScaleCalculationMode  # pyright: ignore

    return MXTensor.to_mx(tensor, torch.float8_e4m3fn, scaling_mode=ScaleCalculationMode.RCEIL, is_swizzled_scales=True)


def mxfp8_gemm(shape: tuple[int, int, int], config: Mapping[str, Any]) -> Callable[[Load], None]:
    """A product of two MXFP8 matrices."""

    def run(load: Load) -> None:
        m, n, k = shape
        torch.manual_seed(0)
        a, b = (mxfp8(torch.randn((rows, k), device="cuda", dtype=torch.bfloat16) * 0.5) for rows in (m, n))
        result = load("blackwell_gemm_ws_mxfp8").matmul(a.qdata, b.qdata, a.scale, b.scale, config=dict(config))
        check(result, a.dequantize(torch.float32) @ b.dequantize(torch.float32).T, 1e-1, 1e-2)

    return run


_MX_PAIR = {
    "BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 256, "BLOCK_SIZE_K": 128, "GROUP_SIZE_M": 2, "NUM_SMEM_BUFFERS": 3,
    "NUM_TMEM_BUFFERS": 1, "NUM_MMA_GROUPS": 1, "EPILOGUE_SUBTILE": 4, "NUM_CTAS": 2, "SPLIT_K": 1,
    "ctas_per_cga": (2, 1, 1),
}  # fmt: skip
for _name, _shape, _config in (
    ("1cta", (128, 128, 256), {"NUM_SMEM_BUFFERS": 2}),
    ("bn256", (128, 256, 128), {
        "BLOCK_SIZE_N": 256, "BLOCK_SIZE_K": 128, "GROUP_SIZE_M": 4, "NUM_SMEM_BUFFERS": 2, "NUM_TMEM_BUFFERS": 1,
        "EPILOGUE_SUBTILE": 1, "NUM_CTAS": 1, "SPLIT_K": 1,
    }),
    ("split_k", (128, 128, 256), {"SPLIT_K": 2, "NUM_SMEM_BUFFERS": 2}),
    ("2cta", (256, 256, 256), _MX_PAIR),
    ("2cta_64_columns", (256, 128, 128), _MX_PAIR | {"BLOCK_SIZE_N": 128}),
):  # fmt: skip
    add(f"blackwell_gemm_ws_mxfp8_{_name}", mxfp8_gemm(_shape, _config), BLACKWELL)


# Normalisation over several CTAs -------------------------------------------------------------------------------------


def layer_norm(file: str, function: str, shape: tuple[int, int], **options: Any) -> Callable[[Load], None]:
    """Layer normalisation whose rows are spread over the CTAs of a cluster."""

    def run(load: Load) -> None:
        module = load(file)
        for tuner in vars(module).values():
            if hasattr(tuner, "configs") and hasattr(tuner, "fn"):
                tuner.configs = tuner.configs[:1]
        torch.manual_seed(0)
        x = torch.randn(*shape, device="cuda", dtype=torch.float16)
        weight, bias = (torch.randn(shape[1], device="cuda", dtype=torch.float16) for _ in range(2))
        result = getattr(module, function)(x, weight, bias, 1e-5, **options)
        result = result[0] if isinstance(result, tuple) else result
        check(
            result,
            torch.nn.functional.layer_norm(x.float(), (shape[1],), weight.float(), bias.float(), 1e-5),
            1e-2,
            1e-2,
        )

    return run


for _count in (1, 2, 4):
    add(
        f"layer_norm_{_count}cta",
        layer_norm("testing/multi_cta_layer_norm", "multi_cta_layernorm", (2, 16384), NUM_CTAS=_count),
        HOPPER,
        BLACKWELL,
    )
for _count in (2, 4):
    add(
        f"layer_norm_2d_{_count}cta",
        layer_norm("testing/multi_cta_layer_norm", "multi_cta_layernorm_2d", (4, 16384), NUM_CTAS=_count),
        HOPPER,
        BLACKWELL,
    )
add(
    "blackwell_multi_cta_layernorm",
    layer_norm("blackwell-multi-cta-layernorm_test", "multi_cta_layernorm", (4, 16384)),
    BLACKWELL,
)
add(
    "blackwell_multi_cta_layernorm_ws",
    layer_norm("blackwell_multi_cta_layernorm_ws_test", "multi_cta_layernorm_ws", (4, 16384)),
    BLACKWELL,
)


# Attention -----------------------------------------------------------------------------------------------------------


def heads(shape: tuple[int, int, int, int], dtype: torch.dtype = torch.float16) -> list[torch.Tensor]:
    """Queries, keys and values, (batch, heads, tokens, head)."""
    torch.manual_seed(20)
    return [torch.empty(shape, device="cuda", dtype=dtype).normal_(0.0, 0.5).requires_grad_() for _ in range(3)]


def attention(file: str, tokens: int, head: int, causal: bool, config: Mapping[str, Any]) -> Callable[[Load], None]:
    """Forward attention; some tutorials have no `causal`."""

    def run(load: Load) -> None:
        forward = load(file).attention
        q, k, v = heads((1, 1, tokens, head))
        reference = torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=0.5, is_causal=causal)
        options = {"causal": causal} if "causal" in inspect.signature(forward).parameters else {}
        check(forward(q, k, v, 0.5, **options, config=dict(config)), reference.detach(), 1e-2)

    return run


def attention_backward(file: str, tokens: int, head: int, causal: bool, configs: str) -> Callable[[Load], None]:
    """Attention and its gradients, through autograd."""

    def run(load: Load) -> None:
        module = load(file)
        one_config(module._attn_fwd_ws)
        module._attn_bwd_ws.configs = [getattr(module, configs)[0]]
        q, k, v = heads((1, 1, tokens, head))
        reference = torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=0.5, is_causal=causal)
        gradient = torch.randn_like(reference)
        expected = torch.autograd.grad(reference, (q, k, v), gradient)
        result = module.attention(q, k, v, 0.5, causal)
        found = torch.autograd.grad(result, (q, k, v), gradient)
        check(result.detach(), reference.detach(), 1e-2)
        for name, ours, theirs in zip("qkv", found, expected, strict=True):
            del name
            check(ours, theirs, 2e-2)

    return run


_FA = {"BLOCK_M": 256, "BLOCK_N": 128, "NUM_BUFFERS_KV": 3, "NUM_BUFFERS_QK": 1, "NUM_MMA_GROUPS": 2}
_FA_PERSISTENT = _FA | {"NUM_BUFFERS_Q": 1}
_FA_SLICES = _FA_PERSISTENT | {"NUM_MMA_SLICES": 2, "GROUP_SIZE_N": 1}
_FA_FULL = _FA_SLICES | {"USE_WARP_BARRIER": False, "RESCALE_OPT": False, "USE_WHERE": False}
_PERSISTENT = "blackwell_fa_ws_pipelined_persistent"
for _name, _file, _causal, _config in (
    ("fa_ws", "blackwell_fa_ws", False, _FA),
    ("fa_ws_persistent", "blackwell_fa_ws_persistent", False, _FA_PERSISTENT),
    ("fa_ws_pipelined", "blackwell_fa_ws_pipelined", False, _FA),
    ("fa_clc", "blackwell_fa_clc", False, _FA_SLICES | {"RESCALE_OPT": True, "USE_WHERE": True}),
    ("fa_clc_causal", "blackwell_fa_clc", True, _FA_SLICES | {"RESCALE_OPT": False, "USE_WHERE": False}),
    ("fa_pipelined_persistent", _PERSISTENT, False, _FA_FULL),
    ("fa_pipelined_persistent_causal", _PERSISTENT, True, _FA_FULL | {"RESCALE_OPT": True}),
    ("fa_pipelined_persistent_bm128", _PERSISTENT, True, _FA_FULL | {"BLOCK_M": 128, "NUM_MMA_GROUPS": 1}),
    ("fa_pipelined_persistent_warp_barrier", _PERSISTENT, False, _FA_FULL | {"USE_WARP_BARRIER": True}),
):
    add(f"blackwell_{_name}", attention(_file, 256, 128, _causal, _config), BLACKWELL)
add("blackwell_fa_pipelined_persistent_2cta",
    attention(_PERSISTENT, 512, 128, False, _FA_FULL | {"NUM_BUFFERS_KV": 5, "NUM_CTAS": 2}), BLACKWELL)  # fmt: skip
for _causal in (False, True):
    _kind = "_causal" if _causal else ""
    add(
        f"blackwell_fa_backward{_kind}",
        attention_backward(_PERSISTENT, 256, 128, _causal, "configs_bwd_1cta"),
        BLACKWELL,
    )
    add(
        f"blackwell_fa_backward_2cta{_kind}",
        attention_backward(_PERSISTENT, 256, 128, _causal, "configs_bwd_2cta"),
        BLACKWELL,
    )

_HOPPER_FA = {"BLOCK_M": 128, "BLOCK_N": 128, "NUM_BUFFERS": 2, "NUM_MMA_WARPS": 8, "NUM_MMA_GROUPS": 2}
for _name in ("fa_ws", "fa_ws_pipelined", "fa_ws_pipelined_pingpong"):
    add(f"hopper_{_name}", attention(f"hopper_{_name}", 256, 128, False, _HOPPER_FA), HOPPER)
add("hopper_fa_ws_pipelined_pingpong_persistent", attention(
    "hopper_fa_ws_pipelined_pingpong_persistent", 256, 128, False,
    {"BLOCK_M": 128, "BLOCK_N": 128, "NUM_BUFFERS_Q": 1, "NUM_BUFFERS_KV": 2, "NUM_MMA_WARPS": 8, "NUM_MMA_GROUPS": 2},
), HOPPER)  # fmt: skip


def seeded(seed: int) -> None:
    """Make the inputs that a tutorial draws the same in every run."""
    random.seed(seed)
    torch.manual_seed(seed)
