"""Entry points of TLX kernels that are in no tutorial, on small shapes, each against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tests.conformance.tutorial_cases import BLACKWELL, HOPPER, Case, Defect, Load, check, seeded

TRITON = "triton@db4666f22"
EXAMPLES = "third_party/tlx/tools/sched2tlx/examples"
CASES: dict[str, Case] = {}


def add(name: str, place: str, target: str, run: Callable[[Any], None], defect: Defect | None = None) -> None:
    """Enter a case, of the file at `place`; `run` gets its module."""

    def loaded(load: Load) -> None:
        seeded(0)
        run(load(place))

    assert name not in CASES
    CASES[name] = Case(name, (target,), loaded, place.replace("//", "/"), defect)


def first_configs(module: Any) -> None:
    """Leave each tuner of a module its first configuration."""
    for each in list(vars(module).values()):
        if isinstance(getattr(each, "configs", None), list):
            each.configs = each.configs[:1]


def allocate(module: Any) -> None:
    """Give kernels that make descriptors memory for them."""
    module.triton.set_allocator(lambda size, _align, _stream: torch.empty(size, device="cuda", dtype=torch.int8))


# Kernels that Meta's scheduler has written, and those written by hand beside them ----------------------------------


def scheduled(
    case: str, file: str, shape: tuple[int, ...], defect: Defect | None = None, call: str = "", name: str = ""
) -> None:
    """Enter a kernel whose folder has a `bench_spec.py`: that makes inputs, launches, and has a reference."""
    folder = f"{TRITON}:{EXAMPLES}/{case}"

    def run(module: Any) -> None:
        spec = __import__("bench_spec")
        first_configs(module)
        allocate(module)
        inputs = spec.make_inputs(shape)
        launch = getattr(spec, call or ("gen_call" if file.startswith("generated") else "hw_call"))
        result, reference = launch(module, inputs), spec.reference(inputs)
        check(result, reference, spec.TOL * reference.float().abs().max().item())

    add(f"{name or case.partition('_')[0]} {file}", f"{folder}//{file}.py", BLACKWELL, run, defect)


_GEMM = (256, 256, 128)
for _case, _shape in (
    ("case1_simple_gemm", _GEMM),
    ("case2_persistent_gemm", (512, 512, 128)),
    ("case4_FA_bwd", (1, 256, 64)),
    ("case5_addmm_bias", _GEMM),
    ("case6_layernorm", (64, 512)),
    ("case7_wgrad_bias", (256, 128, 128)),
):
    for _file in ("generated", "handwritten"):
        scheduled(_case, _file, _shape)
scheduled("case3_FA", "generated", (1, 2, 256))
scheduled(
    "case3_FA",
    "handwritten",
    (1, 2, 256),
    Defect(
        "multiplies an accumulator in tensor memory that nothing has written",
        "'acc_tmem' is read before it is written",
    ),
)
scheduled("case8_multiphase_gemm", "generated", (128, 128, 128))
scheduled("case8_multiphase_gemm", "generated_sum", (128, 128, 128))
scheduled("case9_scaled_mm/blockwise", "generated", (256, 256, 256), name="case9")
scheduled("case9_scaled_mm/blockwise", "handwritten", (256, 256, 256), name="case9")
scheduled("case10_persistent_gemm_data_partition", "generated", (512, 512, 128))
scheduled(
    "case10_persistent_gemm_data_partition",
    "handwritten",
    (1792, 1792, 128),
    Defect(
        "its MMAs do not wait until the accumulator of the tile before is read: that wait passes at once",
        "nothing orders this wait for phase -1 of 'tmem_empty",
    ),
)
scheduled("case11_wait_order", "generated", (2, 2))


def _product(m: int, n: int, k: int) -> tuple[torch.Tensor, ...]:
    a, b = torch.randn(m, k).half(), torch.randn(k, n).half()
    return a, b, torch.full((m, n), float("nan"), dtype=torch.float16), a.float() @ b.float()


def persistent(module: Any) -> None:
    """The persistent product of 128 rows, before and after its epilogue is divided."""
    a, b, c, reference = _product(256, 256, 128)
    module._gemm_persistent[(148,)](
        a, b, c, 256, 256, 128, a.stride(0), b.stride(0), c.stride(0), num_warps=4, num_ctas=1, num_stages=2
    )
    check(c, reference, 5e-3 * reference.abs().max().item())


for _file in ("generated_base", "generated_subtile"):
    add(
        f"case2 {_file}", f"{TRITON}:{EXAMPLES}/case2_persistent_gemm//{_file}.py", BLACKWELL, persistent
    )  # fmt: skip


def partitioned(module: Any) -> None:
    """A product whose tiles of 256 rows are two groups'."""
    a, b, c, reference = _product(512, 512, 128)
    descriptors = [
        _descriptor(each, shape) for each, shape in ((a, (128, 64)), (b.T.contiguous(), (256, 64)), (c, (128, 256)))
    ]
    module.matmul_kernel[(2,)](
        *descriptors, 512, 512, 128, NUM_SMS=2, BLOCK_M=256, BLOCK_N=256, BLOCK_K=64, NUM_SMEM_BUFFERS=2,
        NUM_MMA_GROUPS=2, num_warps=4, num_stages=1,
    )  # fmt: skip
    check(c, reference, 5e-3 * reference.abs().max().item())


for _case in ("case2_persistent_gemm", "case10_persistent_gemm_data_partition"):
    add(
        f"{_case.partition('_')[0]} handwritten_data_partition",
        f"{TRITON}:{EXAMPLES}/{_case}//handwritten_data_partition.py", BLACKWELL, partitioned,
    )  # fmt: skip


def _descriptor(tensor: torch.Tensor, block: tuple[int, ...]) -> Any:
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor.from_tensor(tensor, list(block))


def divided_bias(module: Any) -> None:
    """A product with a bias, whose epilogue is in four parts."""
    a, b, c, reference = _product(256, 256, 128)
    bias = torch.randn(256, 256).half()
    descriptors = [_descriptor(*each) for each in ((a, (128, 64)), (b, (64, 128)), (bias, (128, 128)), (c, (128, 32)))]
    module.addmm_persistent_2d_bias[(148,)](*descriptors, 256, 256, 128, num_warps=4, num_ctas=1, num_stages=2)
    reference += bias.float()
    check(c, reference, 5e-3 * reference.abs().max().item())


add(
    "case5 generated_subtile", f"{TRITON}:{EXAMPLES}/case5_addmm_bias//generated_subtile.py", BLACKWELL, divided_bias
)  # fmt: skip


def rows_in_three_tasks(module: Any) -> None:
    """A layer norm with tasks for the loads, the numbers and the stores."""
    allocate(module)
    x, w, b = (torch.randn(size).half() for size in ((64, 512), (512,), (512,)))
    y = torch.empty_like(x)
    module.layernorm_3wg[(4,)](x, w, b, y, 64, 1e-5, N=512, BLOCK_M=8)
    check(y, torch.nn.functional.layer_norm(x.float(), (512,), w.float(), b.float(), 1e-5), 1e-2, 1e-2)


add("case6 bench_3wg", f"{TRITON}:{EXAMPLES}/case6_layernorm//bench_3wg.py", BLACKWELL, rows_in_three_tasks)


def scheduled_attention(rows: int, dtype: torch.dtype) -> Callable[[Any], None]:
    """Attention whose programs have tiles of `rows` rows, in two halves where the kernel is called subtiled."""

    def run(module: Any) -> None:
        allocate(module)
        q, k, v = (torch.randn(1, 2, 256, 128).to(dtype) for _ in range(3))
        out, sums = torch.empty_like(q), torch.empty(2, 256)
        kernel = getattr(module, "fa_fwd_kernel_nows_subtiled", None) or module.fa_fwd_kernel_nows
        flat = [each.view(-1, 128) for each in (q, k, v, out)]
        kernel[(256 // rows, 2)](*flat, sums, 128**-0.5, 2, 256, num_warps=4)
        # The scheduler leaves out the stores of the sums of rows.
        check(out, torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float()), 1e-2)

    return run


_JOINT, _RAU = "triton@3cae32a18", "triton@71445ae9f"
_BOTH_TASKS = Defect(
    "two tasks rescale the accumulator, and nothing orders them (what one of them computes is not used)",
    "partition 3 writes 'acc_tmem.*nothing orders it after partition 4",
)
_TWO_ARRIVALS = Defect(
    "two MMAs arrive at a barrier for one; fa_subtiled_rau_handpatched.py says so and mends it",
    "nothing orders this wait for phase 0 of 'L0_smem_1_empty",
)
for _name, _folder, _file, _commit, _rows, _dtype, _defect in (
    ("fp16", "case3_FA_fp16", "generated", _JOINT, 128, torch.float16, None),
    ("subtiled", "case3_FA_fp16_subtiled", "generated", _JOINT, 128, torch.float16, None),
    ("subtiled", "case3_FA_fp16_subtiled", "generated_jos", _JOINT, 128, torch.float16, _BOTH_TASKS),
    ("bf16", "testing/subtiling", "fa_subtiled_rau_generated", _RAU, 256, torch.bfloat16, _TWO_ARRIVALS),
    ("bf16", "testing/subtiling", "fa_subtiled_rau_handpatched", _RAU, 256, torch.bfloat16, None),
):
    add(
        f"case3 {_name} {_file}", f"{_commit}:{EXAMPLES}/{_folder}//{_file}.py", BLACKWELL,
        scheduled_attention(_rows, _dtype), _defect,
    )  # fmt: skip


def scheduled_gradients(module: Any) -> None:
    """The gradients of attention with 128 columns."""
    allocate(module)
    rows, columns = 256, 128
    q, k, v, gradient = (torch.randn(1, rows, columns).half() for _ in range(4))
    q = (q * columns**-0.5).half()
    leaves = [each.float().requires_grad_() for each in (q, k, v)]
    scores = leaves[0] @ leaves[1].transpose(1, 2)
    out = torch.softmax(scores, -1) @ leaves[2]
    expected = torch.autograd.grad(out, leaves, gradient.float())
    maxima = (torch.logsumexp(scores, -1) * 1.44269504).detach().contiguous()
    delta = (gradient.float() * out.detach()).sum(-1).contiguous()
    found = [torch.zeros_like(q), torch.empty_like(k), torch.empty_like(v)]
    module.fa_bwd_dkdv_5mma[(rows // 128, 1)](
        q, k, v, gradient, *found, maxima, delta, columns, columns, rows, num_warps=4, num_ctas=1, num_stages=1
    )
    for ours, theirs in zip(found, expected, strict=True):
        check(ours, theirs, 3e-2 * theirs.abs().max().item())


_NO_BARRIER = Defect("waits for a barrier that it does not allocate", "name 'L0_smem_3_full' is not defined")
for _file, _defect in (("generated_hd128", None), ("generated_hd128_jos", _NO_BARRIER)):
    add(f"case4 {_file}", f"{_JOINT}:{EXAMPLES}/case4_FA_bwd//{_file}.py", BLACKWELL, scheduled_gradients, _defect)

# HSTU ----------------------------------------------------------------------------------------------------------------

HSTU = "generative-recommenders@db1bf8f:generative_recommenders//ops/triton"


def swiglu(module: Any) -> None:
    """silu(x @ w_gate.T) * (x @ w_up.T), with tensor memory."""
    first_configs(module)
    x, gate, up = (torch.randn(size).bfloat16() * 0.1 for size in ((256, 128), (256, 128), (256, 128)))
    expected = torch.nn.functional.silu(x.float() @ gate.float().T) * (x.float() @ up.float().T)
    check(module.triton_swiglu_fwd_tma_ws_persistent_tlx(x, gate, up), expected, 1e-2, 1e-2)


add("hstu swiglu", f"{HSTU}/triton_swiglu.py", BLACKWELL, swiglu)


def addmm(name: str, rows: int) -> Callable[[Any], None]:
    """y + x @ w; `rows` of y, one of which is broadcast."""

    def run(module: Any) -> None:
        # What prunes the configurations of the persistent kernel sets a parameter; the tuner runs it for more than one.
        persistent = module._addmm_fwd_tma_ws_persistent
        persistent.configs = [each for each in persistent.configs if "BLOCK_N: 128" in str(each)]
        module._addmm_fwd_tma_ws.configs = module._addmm_fwd_tma_ws.configs[:1]
        x, w = (torch.randn(size).bfloat16() * 0.1 for size in ((512, 128), (128, 512)))
        y = torch.randn((rows, 512) if rows > 1 else (512,)).bfloat16()
        result = getattr(module, name)(x, w, y)
        check(result, y.float() + x.float() @ w.float(), 2e-2, 1e-2)

    return run


for _name in ("triton_addmm_fwd_tma_ws_tlx", "triton_addmm_fwd_tma_ws_persistent_tlx"):
    for _rows, _kind in ((512, "full"), (1, "broadcast")):
        add(f"hstu {_name} {_kind}", f"{HSTU}/triton_addmm.py", BLACKWELL, addmm(_name, _rows))


def hstu_attention(lengths: tuple[int, ...], window: int = 0, targets: bool = False) -> Callable[[Any], None]:
    """Attention with silu instead of a softmax, on sequences of several lengths."""

    def run(module: Any) -> None:
        module._hstu_attn_fwd.configs = [each for each in module._get_fw_configs() if each.kwargs["USE_TLX"]]
        longest, alpha, head = max(lengths), 0.1, 64
        q, k, v = (torch.randn(sum(lengths), 2, head).bfloat16() for _ in range(3))
        offsets = torch.tensor((0, *lengths)).cumsum(0)
        wanted = torch.full((len(lengths),), 5) if targets else None
        result = module.triton_hstu_attention_fwd(longest, alpha, q, k, v, offsets, wanted, window, 0, None, True, 0)
        expected = torch.zeros(q.shape)
        for start, length in zip(offsets.tolist(), lengths, strict=False):
            part = slice(start, start + length)
            scores = torch.einsum("nhd,mhd->hnm", q[part].float(), k[part].float()) * alpha
            place = torch.arange(length).clamp(max=length - 5 if targets else length)
            apart = place[:, None] - place[None, :]
            seen = (apart > 0) | torch.eye(length, dtype=torch.bool)
            seen &= (apart <= window) if window else True
            weights = torch.nn.functional.silu(scores) / longest * seen
            expected[part] = torch.einsum("hnm,mhd->nhd", weights, v[part].float())
        # The weights have 16 bits.
        check(result, expected, 2e-2, 2e-2)

    return run


add("hstu attention", f"{HSTU}/triton_hstu_attention.py", HOPPER, hstu_attention((200, 128)))
add("hstu attention window", f"{HSTU}/triton_hstu_attention.py", HOPPER, hstu_attention((256, 70), 40))
add("hstu attention targets", f"{HSTU}/triton_hstu_attention.py", HOPPER, hstu_attention((150, 256), 0, True))

# Early tutorials, and variants in branches ----------------------------------------------------------------------------


def product(scale: float = 1.0, shape: tuple[int, int, int] = (256, 256, 256)) -> Callable[[Any], None]:
    """`matmul(a, b)`."""

    def run(module: Any) -> None:
        first_configs(module)
        allocate(module)
        m, n, k = shape
        a, b = (torch.randn(size).half() * scale for size in ((m, k), (k, n)))
        check(module.matmul(a, b), a.float() @ b.float(), 5e-2, 1e-2)

    return run


def attention(*more: Any) -> Callable[[Any], None]:
    """`attention(q, k, v, scale)`, forward."""

    def run(module: Any) -> None:
        first_configs(module)
        allocate(module)
        q, k, v = (torch.randn(1, 2, 256, 128).half() for _ in range(3))
        expected = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float(), scale=0.5)
        with torch.no_grad():
            check(module.attention(q, k, v, 0.5, *more), expected, 2e-2)

    return run


RUNNER = "triton-runner@5651639:examples/native_kernel/tlx/"
for _file in ("hopper-fa-ws", "hopper-fa-ws-pipelined", "hopper-fa-ws-pipelined-pingpong"):
    add(f"triton-runner {_file}", f"{RUNNER}/{_file}.py", HOPPER, attention())
for _file in ("hopper-gemm-pipelined", "hopper-gemm-ws"):
    add(f"triton-runner {_file}", f"{RUNNER}/{_file}.py", HOPPER, product())

OLD = "third_party/tlx/tutorials"
_NO_RELEASE = Defect(
    "two tasks wait for each other: a buffer's first use waits, by parity 0, for a release",
    "deadlock: .*'consumer_m_i0",
)
for _file, _commit, _target, _run in (
    ("flash-attention-WS-hopper", "e79329702", HOPPER, attention()),
    ("flash-attention-WS-pipelined-hopper", "e79329702", HOPPER, attention()),
    ("hopper-fa-ws-pipelined-pingpong-persistent_test", "371bf608b", HOPPER, attention()),
    ("hopper-gemm-ws_test", "f58e86585", HOPPER, product()),
    ("blackwell-fa", "31334ae63", BLACKWELL, attention()),
    ("blackwell-gemm-2cta", "ae22f0ee6", BLACKWELL, product(shape=(256, 128, 128))),
    ("blackwell-gemm-ws-2cta", "68b813261", BLACKWELL, product(shape=(512, 256, 128))),
    ("blackwell-gemm-ws_test", "fbdbe1cdf", BLACKWELL, product()),
    ("blackwell_gemm_ws_persist_b", "231ea4c69", BLACKWELL, product()),
    ("blackwell-fa-ws-pipelined-persistent_test", "371bf608b", BLACKWELL, attention(False, 64, 1)),
):
    add(
        f"early {_file}", f"triton@{_commit}:{OLD}//{_file}.py", _target, _run,
        _NO_RELEASE if _file == "blackwell-fa" else None,
    )  # fmt: skip


def over_ctas(name: str) -> Callable[[Any], None]:
    """Sums of rows that the CTAs of a cluster share."""

    def run(module: Any) -> None:
        first_configs(module)
        x = torch.rand(4, 1024) + 0.5
        sums = x.sum(1, keepdim=True)
        result, expected = (torch.empty_like(sums), sums) if name == "sum" else (torch.empty_like(x), x / sums)
        check(getattr(module, f"do_{name}")(x, result, 4, 1024, torch.float32, single_cta=False), expected, 1e-2)

    return run


for _name in ("sum", "norm"):
    add(f"early multi-cta-{_name}", f"triton@cd56dc376:{OLD}//multi-cta-{_name}.py", HOPPER, over_ctas(_name))


def triplets(module: Any) -> None:
    """Attention of each query to pairs of keys of two windows."""
    first_configs(module)
    steps, heads, head, near, far = 6, 64, 128, 2, 64
    q = torch.randn(1, steps, heads, head).bfloat16() * 0.5
    k1, k2, v1, v2 = (torch.randn(1, steps, 1, head).bfloat16() * 0.5 for _ in range(4))
    result, _ = module.block_local_triplet_attn_fwd_gqa_pack(q, k1, k2, v1, v2, near, far)
    expected = torch.zeros(q.shape)
    for step in range(steps):
        first = slice(max(0, step - near + 1), step + 1)
        second = slice(max(0, step - far + 1), step + 1)
        scores = torch.einsum(
            "hd,id,jd->hij", q[0, step].float(), k1[0, first, 0].float(), k2[0, second, 0].float()
        ) * head**-0.5  # fmt: skip
        weights = torch.softmax(scores.flatten(1), 1).view(scores.shape)
        expected[0, step] = torch.einsum("hij,id,jd->hd", weights, v1[0, first, 0].float(), v2[0, second, 0].float())
    check(result, expected, 2e-2, 2e-2)


add("early tripletFA", f"triton@c9d6eee2c:{OLD}//tripletFA.py", HOPPER, triplets)


def votes(module: Any) -> None:
    """Rescaling that a vote of each warp leaves out; the file's own test compares."""
    module.test_vote_ballot_select()


add("early vote_ballot_select_test", f"triton@2ab169075:{OLD}//vote_ballot_select_test.py", BLACKWELL, votes)

for _name in ("triton_addmm_fwd_tma_ws_tlx", "triton_addmm_fwd_tma_ws_persistent_tlx"):
    add(f"early {_name}", f"triton@4bf3a17b5:{OLD}//triton_addmm.py", BLACKWELL, addmm(_name, 512))


def handed_over(module: Any) -> None:
    """A block that two tasks pass to and fro, one more at each pass."""
    cycles, result = torch.zeros(1, dtype=torch.int64), torch.zeros(1)
    module.k_data_pingpong[(1,)](cycles, result, NITER=5, ROWS=64, COLS=64, num_warps=4)
    check(result, torch.full((1,), 64 * 64 * 6.0), 0)
    module.k_named_pingpong[(1,)](cycles, NITER=5, num_warps=4)
    module.k_arrive_issue[(1,)](cycles, NITER=5, num_warps=4)


add(
    "microbench cross_wg_handoff", f"{TRITON}:third_party/tlx/tools/microbench//cross_wg_handoff.py", HOPPER,
    handed_over,
)  # fmt: skip
