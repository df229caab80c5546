"""`tlx_xdsl.interpret`: arguments, stages, what comes back, and what is refused."""

import importlib.util
import types
from collections import namedtuple
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.interpreter.faults import Deadlock, Fault
from tlx_xdsl.runtime.driver.compilation import Specialization, frontend_module
from tlx_xdsl.runtime.driver.host_values import signature_of
from tlx_xdsl.runtime.simulate.interpret import passes_until
from tlx_xdsl.transforms.pipelines import ttgir_pipeline

pytestmark = pytest.mark.quick

EXAMPLES = Path(__file__).parents[3] / "examples"


@tlx_xdsl.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


def vectors(n: int, dtype=np.float32):
    rng = np.random.default_rng(n)
    return rng.standard_normal(n).astype(dtype), rng.standard_normal(n).astype(dtype), np.full(n, np.nan, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.float64])
def test_arrays_are_written_in_place(dtype):
    x, y, out = vectors(100, dtype)
    result = tlx_xdsl.interpret(add, (4,), x, y, out, 100, 32)
    assert (out == x + y).all()
    assert (result.clusters, result.jobs, result.warnings) == (4, 1, ())
    assert result.turns >= 4
    assert result.seconds > 0


def test_positions_and_names_mean_the_same():
    x, y, out = vectors(64)
    other = out.copy()
    tlx_xdsl.interpret(add, (2,), x, y, out, 64, BLOCK=32)
    add.interpret((2,), BLOCK=32, n=64, out=other, y=y, x=x)
    assert (out == x + y).all()
    assert (other == out).all()


@pytest.mark.parametrize("grid", [4, (4,), (4, 1), [4, 1, 1], lambda meta: (-(-meta["n"] // meta["BLOCK"]),)])
def test_grids(grid):
    x, y, out = vectors(100)
    assert tlx_xdsl.interpret(add, grid, x, y, out, 100, BLOCK=32).clusters == 4
    assert (out == x + y).all()


@tlx_xdsl.jit
def fill(out, value=3, BLOCK: tl.constexpr = 16):
    tl.store(out + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), value)


def test_defaults_of_parameters_are_known_to_the_grid():
    out = np.zeros(64, np.int32)
    result = fill.interpret(lambda meta: 64 // meta["BLOCK"], out)
    assert result.clusters == 4
    assert (out == 3).all()


@pytest.mark.parametrize("grid", [(), (1, 1, 1, 1), (-1,), (1.5,), (True,), (1 << 31,), "4"])
def test_a_grid_that_is_not_one_to_three_numbers_is_refused(grid):
    with pytest.raises(ValueError, match="expected a grid of one to three numbers"):
        tlx_xdsl.interpret(add, grid, *vectors(8), 8, BLOCK=8)


def test_strides_are_those_of_the_array():
    whole = np.zeros((8, 2), np.float32)
    x, y, _ = vectors(16)
    # A column of `whole`: the kernel counts elements from its first one.
    tlx_xdsl.interpret(add, 1, x, y, whole[:, 1], 15, BLOCK=16)
    assert (whole.ravel()[1:] == (x + y)[:15]).all()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, "i1"),
        (np.True_, "i1"),
        (7, "i32"),
        (-(2**31), "i32"),
        (2**31, "i64"),
        (2**63, "u64"),
        (1.5, "fp32"),
        (np.float64(1.5), "fp32"),
        (np.int64(7), "i64"),
        (np.float16(1), "fp16"),
        (np.zeros(1, np.bool_), "*i1"),
        (np.zeros(1, np.uint8), "*u8"),
        (np.zeros(1, ml_dtypes.float8_e4m3fn), "*fp8e4nv"),
        (np.zeros(1, ml_dtypes.float8_e5m2), "*fp8e5"),
        ((1, np.zeros(1, np.float16)), ("i32", "*fp16")),
        (tlx_xdsl.TensorDescriptor.from_tensor(np.zeros((8, 8), np.float32), [4, 8]), "tensordesc<fp32[4, 8]>"),
    ],
)
def test_types_follow_values(value, expected):
    assert signature_of("x", value) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("text", "'x' must be an array, a TensorDescriptor, a number or a tuple of them, found str"),
        ((1, [2]), r"'x\[1\]' must be an array"),
        (np.zeros(1, np.complex64), "elements of the type complex64"),
    ],
)
def test_values_without_a_type(value, message):
    with pytest.raises(TypeError, match=message):
        signature_of("x", value)


def test_an_integer_of_more_than_64_bits():
    with pytest.raises(OverflowError, match="'x' is 18446744073709551616, which no integer of 64 bits can hold"):
        signature_of("x", 1 << 64)


@tlx_xdsl.jit
def pairs(arrays, scale, out, bias, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    total = tl.load(arrays[0] + at) * scale.factor + tl.load(arrays[1] + at)
    if bias is not None:
        total += tl.load(bias + at)
    tl.store(out + at, total)


Scale = namedtuple("Scale", ["name", "factor"])


@pytest.mark.parametrize("has_bias", [False, True])
def test_tuples_and_none(has_bias):
    x, y, out = vectors(32)
    bias = x + 1 if has_bias else None
    tlx_xdsl.interpret(pairs, 1, (x, y), Scale(3, 2.0), out, bias, BLOCK=32)
    assert (out == x * 2 + y + (bias if has_bias else 0)).all()


@tlx_xdsl.jit
def seeded(out, seed):
    tl.store(out, seed)


def test_parameters_win_over_options_of_the_same_name():
    out = np.zeros(1, np.int32)
    tlx_xdsl.interpret(seeded, 1, out, seed=5, schedule="random", options={"seed": 7})
    assert out[0] == 5


class Torch:
    """Stand-in with what the interpreter asks of a tensor of torch's."""

    def __init__(self, array: np.ndarray, dtype: str, device: str = "cpu"):
        self.array, self.dtype, self.shape = array, f"torch.{dtype}", array.shape
        self.device = types.SimpleNamespace(type=device)

    def data_ptr(self):
        return self.array.ctypes.data

    def stride(self):
        return tuple(stride // self.array.itemsize for stride in self.array.strides)

    def element_size(self):
        return self.array.itemsize


def test_tensors_of_torch_share_their_memory():
    x, y, out = vectors(32, ml_dtypes.bfloat16)
    result = tlx_xdsl.interpret(add, 1, *(Torch(array, "bfloat16") for array in (x, y, out)), 32, BLOCK=32)
    assert result.warnings == ()
    assert (out == x + y).all()


def test_tensors_on_a_gpu_are_refused():
    x, y, out = vectors(32)
    with pytest.raises(TypeError, match=r"'y' is on the device .*: the interpreter takes what is in the CPU's memory"):
        tlx_xdsl.interpret(add, 1, x, Torch(y, "float32", "cuda"), out, 32, BLOCK=32)


@tlx_xdsl.jit
def copy(src, dst, TILE: tl.constexpr):
    buf = tlx.local_alloc((TILE, TILE), tlx.dtype_of(src), 1)
    loaded = tlx.alloc_barriers(1)
    tlx.barrier_expect_bytes(loaded[0], TILE * TILE * 2)
    tlx.async_descriptor_load(src, buf[0], [0, 0], loaded[0])
    tlx.barrier_wait(loaded[0], 0)
    tlx.async_descriptor_store(dst, buf[0], [0, 0])
    tlx.async_descriptor_store_wait(0)


@pytest.mark.parametrize("stage", ["frontend", "aliased", "ttgir", "triton-tlx-fixup", "convert-triton-to-tritongpu"])
def test_descriptors_at_every_stage(stage):
    source = np.arange(40 * 64, dtype=np.float16).reshape(40, 64)
    target = np.zeros_like(source)
    # One of them holds a tensor of another library.
    descriptors = [
        tlx_xdsl.TensorDescriptor.from_tensor(source, [64, 64]),
        types.SimpleNamespace(
            base=Torch(target, "float16"), shape=[40, 64], strides=[64, 1], block_shape=[64, 64], padding="zero"
        ),
    ]
    tlx_xdsl.interpret(copy, 1, *descriptors, 64, stage=stage)
    assert (target == source).all()


@tlx_xdsl.jit
def two_warps_at_tensor_memory(x):
    acc = tlx.local_alloc((128, 64), tl.float32, 1, tlx.storage_kind.tmem)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tl.store(x, 1.0)
        with tlx.async_task(num_warps=2):
            tlx.local_store(acc[0], tl.zeros((128, 64), tl.float32))


def test_a_pass_s_refusal_is_the_located_error():
    """A module with fewer than whole warp groups at tensor memory is refused before anything runs."""
    x = np.zeros(1, np.float32)
    with pytest.raises(tlx_xdsl.CompilationError, match=r"test_interpret.py:\d+:\d+: error: tensor memory is read and"):
        two_warps_at_tensor_memory.interpret(1, x, target="sm_100a", stage="ttgir")


@tlx_xdsl.jit
def negate(x):
    tl.store(x, -tl.load(x))


@pytest.mark.parametrize("stage", ["frontend", "aliased", "expand-negf", "ttgir"])
def test_plain_kernels_at_every_stage(stage):
    x = np.ones(1, np.float32)
    negate.interpret(1, x, stage=stage)
    assert x[0] == -1


def test_the_stages_are_those_of_the_pipeline():
    with pytest.raises(ValueError, match="unknown stage 'sass' of a plain Triton kernel, expected frontend, aliased"):
        negate.interpret(1, np.ones(1, np.float32), stage="sass")
    signature = {name: "tensordesc<fp16[64, 64]>" for name in ("src", "dst")}
    module = frontend_module(copy.source, Specialization(signature, {"TILE": 64}))
    assert passes_until("frontend", module) == ()
    assert passes_until("aliased", module)[-1].name == "tlx-rewrite-local-alias"
    assert passes_until("tlx-lower-votes", module)[-1].name == "tlx-lower-to-ptx-with-layouts"
    assert passes_until("ttgir", module) == ttgir_pipeline()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schedule": "fair"}, "unknown schedule 'fair'"),
        ({"jobs": 0}, "jobs must be at least 1"),
        ({"cluster": (2, 1)}, "the cluster must be three numbers"),
        ({"cluster": (2, 1, 1)}, "the grid has 1 programs along x, no multiple of the cluster's 2"),
    ],
)
def test_options_that_can_not_be(options, message):
    with pytest.raises(ValueError, match=message):
        negate.interpret(1, np.ones(1, np.float32), **options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "^negate: missing a required argument: 'x', its parameters are x"),
        ((1.5,), "must be a pointer"),
        ((np.ones(1, np.float32), 2), "too many positional arguments"),
    ],
)
def test_arguments_that_do_not_fit(arguments, message):
    with pytest.raises((TypeError, tlx_xdsl.CompilationError), match=message):
        negate.interpret(1, *arguments)


def test_what_is_no_kernel():
    with pytest.raises(TypeError, match=r"expected a kernel decorated with tlx_xdsl\.jit, found int"):
        tlx_xdsl.interpret(3, 1)


def test_a_fault_has_the_line_and_the_program():
    x, y, out = vectors(100)
    with pytest.raises(Fault) as caught:
        add.interpret(5, x, y, out, 160, 32)
    assert caught.value.location.filename == __file__
    assert "tl.load(x + at, mask=inside)" in caught.value.source_line
    assert "out of bounds" in caught.value.message
    assert any("program (3, 0, 0)" in note for note in caught.value.notes)


@tlx_xdsl.jit
def hangs(out):
    barrier = tlx.alloc_barriers(1)
    tlx.barrier_wait(barrier[0], 0)
    tl.store(out, 1)


def test_a_deadlock_is_a_fault_of_its_own():
    with pytest.raises(Deadlock, match="waits at 'barrier"):
        hangs.interpret(1, np.zeros(1, np.int32))


@tlx_xdsl.jit
def leaves_a_phase(out):
    barrier = tlx.alloc_barriers(1, arrive_count=2)
    tlx.barrier_arrive(barrier[0])
    tl.store(out + tl.program_id(0), 1)


def test_warnings_come_back_once():
    out = np.zeros(3, np.int32)
    result = leaves_a_phase.interpret(3, out)
    (warning,) = result.warnings
    assert "ends in the middle of its phase 0" in warning.message
    assert (warning.location.filename, warning.severity) == (__file__, "warning")
    assert out.all()


@tlx_xdsl.jit
def asserts(x):
    tl.device_assert(tl.load(x) == 1, "one is wanted")


def test_assertions_of_the_kernel_hold_or_are_reported():
    asserts.interpret(1, np.ones(1, np.int32))
    with pytest.raises(Fault, match="one is wanted"):
        asserts.interpret(1, np.zeros(1, np.int32))


@tlx_xdsl.jit
def warns_and_fails(out):
    barrier = tlx.alloc_barriers(1, arrive_count=2)
    tlx.barrier_arrive(barrier[0])
    tl.store(out + tl.program_id(0), 1)


def test_warnings_before_a_fault_are_not_lost(capsys):
    with pytest.raises(Fault, match="out of bounds"):
        warns_and_fails.interpret(3, np.zeros(2, np.int32))
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "warning: " in line]
    assert "ends in the middle of its phase 0" in line


@pytest.mark.backend
def test_kernels_and_functions_of_stock_triton(tmp_path):
    path = tmp_path / "theirs.py"
    path.write_text(
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef double(x, BLOCK: tl.constexpr):\n"
        "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(x + at, tl.load(x + at) * 2)\n"
    )
    spec = importlib.util.spec_from_file_location("theirs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = np.arange(64, dtype=np.float32)
    tlx_xdsl.interpret(module.double, (module.triton.cdiv(64, 16),), x, 16)
    assert (x == 2 * np.arange(64)).all()


@pytest.mark.parametrize(("rounds", "expected"), [(False, 1 + 2**-11), (True, 1 + 2**-10)])
def test_descriptors_that_round_to_tf32(rounds, expected):
    source = np.full((8, 8), 1 + 2**-11, np.float32)
    target = np.zeros_like(source)
    descriptors = [
        tlx_xdsl.TensorDescriptor.from_tensor(source, [8, 8], round_f32_to_tf32=rounds),
        tlx_xdsl.TensorDescriptor.from_tensor(target, [8, 8]),
    ]
    move.interpret(1, *descriptors)
    assert (target == expected).all()


@tlx_xdsl.jit
def move(src, dst):
    dst.store([0, 0], src.load([0, 0]))


# From text -----------------------------------------------------------------------------------------------------------

ADD = """\
tt.func public @add(%x: !tt.ptr<f32>, %n: i32) {
  %at = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
  %first = tt.splat %x : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %places = tt.addptr %first, %at : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %more = arith.sitofp %n : i32 to f32
  %many = tt.splat %more : f32 -> tensor<8xf32>
  %old = tt.load %places : tensor<8x!tt.ptr<f32>>
  %new = arith.addf %old, %many : tensor<8xf32>
  tt.store %places, %new : tensor<8x!tt.ptr<f32>>
  tt.return
}
"""


@pytest.mark.parametrize("by_name", [False, True])
def test_a_text_runs_with_arguments_by_name_or_position(by_name):
    x = np.zeros(8, np.float32)
    result = tlx_xdsl.interpret_text(ADD, 2, {"n": 3, "x": x} if by_name else [x, 3])
    assert (x == 6).all()
    assert result.clusters == 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([1], "'add' takes 2 arguments, found 1"),
        ({"x": 1}, "'add' needs a value for 'n', its arguments are x, n"),
        ({"x": 1, "n": 1, "m": 1}, "'add' has no argument 'm'"),
    ],
)
def test_arguments_of_text_that_do_not_fit(args, message):
    with pytest.raises(TypeError, match=message):
        tlx_xdsl.interpret_text(ADD, 1, args)


def test_text_with_several_functions():
    x = np.zeros(8, np.float32)
    other = ADD.replace("@add", "@again")
    with pytest.raises(ValueError, match="name the kernel"):
        tlx_xdsl.interpret_text(ADD + other, 1, [x, 1])
    tlx_xdsl.interpret_text(ADD + other, 1, [x, 1], function="again")
    assert (x == 1).all()


def test_wrong_text_is_a_located_error():
    with pytest.raises(tlx_xdsl.CompilationError, match=r"a.mlir:2:\d+: error: "):
        tlx_xdsl.interpret_text("tt.func @f() {\n  nonsense\n}", 1, [], filename="a.mlir")


def test_the_extents_of_descriptors_need_no_values():
    text = copy.compile_text({name: "tensordesc<fp16[64, 64]>" for name in ("src", "dst")}, {"TILE": 64})
    source = np.arange(64 * 64, dtype=np.float16).reshape(64, 64)
    target = np.zeros_like(source)
    describe = tlx_xdsl.TensorDescriptor.from_tensor
    tlx_xdsl.interpret_text(text, 1, {"src": describe(source, [64, 64]), "dst": describe(target, [64, 64])})
    assert (target == source).all()
