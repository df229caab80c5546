"""Loads and stores by pointers as those of descriptors: the same numbers in memory, and what must be left as it is."""

import numpy as np
import pytest
from xdsl.context import Context

from tests.unit.transforms.warp_specialize import pointer_kernels
from tlx_xdsl.dialects import tt
from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.runtime.simulate.interpret import Options, interpret_module
from tlx_xdsl.runtime.specialize.read_host_part import host_part_of
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.registry import pass_class
from tlx_xdsl.transforms.rewriting import ops_of

IN_KERNEL = ("tlx-ws-form-descriptors",)
ON_HOST = (*IN_KERNEL, "tlx-ws-host-descriptors")
PERSISTENT = ("tlx-ws-make-persistent", *ON_HOST)
PROGRAMS = 3
"""Programs of a persistent launch, each with several tiles to do."""


def padded(*shape, seed=0):
    """Small integers, and after each row sentinels, up to a multiple of 16 bytes and 16 more."""
    full = np.full((*shape[:-1], shape[-1] + -shape[-1] % 8 + 8), 77, np.float16)
    full[..., : shape[-1]] = np.random.default_rng(seed).integers(-2, 3, shape)
    return full


def dense(*shape, seed=0):
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float16)


def product(m, n, k, *, transposed=False, make=padded, strides=True):
    a, b, c = make(m, k), make(n, k, seed=1) if transposed else make(k, n, seed=1), make(m, n, seed=2)
    args = {"a_ptr": a, "b_ptr": b, "c_ptr": c, "M": m, "N": n, "K": k}
    if strides:
        names = ("stride_am", "stride_bk", "stride_cm")
        args |= {name: array.shape[1] for name, array in zip(names, (a, b, c), strict=True)}
    return args


def tutorial(m, n, k):
    constexprs = {"BM": 16, "BN": 32, "BK": 16, "GROUP": 2, "stride_ak": 1, "stride_bn": 1, "stride_cn": 1}
    return (-(-m // 16) * -(-n // 32),), product(m, n, k), constexprs


def clamped(m, n, k, *, by_minimum):
    args = product(m, n, k, transposed=True)
    return (-(-m // 16), -(-n // 16)), args, {"BM": 16, "BN": 16, "BK": 16, "BY_MINIMUM": by_minimum}


def attention(length, *, causal):
    shape = 2, 3, length, 16
    args = {name: dense(*shape, seed=seed) for seed, name in enumerate(("q_ptr", "k_ptr", "v_ptr", "o_ptr"))}
    args |= {"stride_b": 48 * length, "stride_h": 16 * length, "stride_m": 16, "H": 3, "L": length, "scale": 0.25}
    return (-(-length // 16), 6), args, {"BM": 16, "BN": 16, "D": 16, "CAUSAL": causal}


def chunks(length):
    args = {"k_ptr": dense(2, length, 3, 16), "v_ptr": dense(2, length, 3, 16, seed=1)}
    args |= {"h_ptr": np.full((2, -(-length // 16), 3, 16, 16), 7, np.float16), "T": length}
    return (6,), args, {"H": 3, "D": 16, "C": 16}


def blocks(m, n, k):
    return (-(-m // 16), -(-n // 16)), product(m, n, k, make=dense, strides=False), {"BM": 16, "BN": 16, "BK": 16}


def shifted(length):
    args = {"x_ptr": padded(length, 16), "y_ptr": padded(length, 16, seed=1), "T": length, "stride": 24}
    return (-(-length // 16),), args, {"B": 16, "D": 16, "SHIFT": 3, "LOWER": True}


def rows(length, programs):
    args = {"x_ptr": padded(length, 16), "y_ptr": padded(length, 16, seed=1), "T": length, "stride": 24}
    return (programs,), args, {"B": 16, "D": 16}


def grouped(n, k, *rows):
    offsets, a, b = np.cumsum([0, *rows]).astype(np.int32), dense(sum(rows), k), dense(len(rows), k, n, seed=1)
    args = {"a_ptr": a, "b_ptr": b, "c_ptr": dense(sum(rows), n, seed=2), "offsets_ptr": offsets, "N": n, "K": k}
    return (-(-max(rows) // 16), -(-n // 16), len(rows)), args, {"BM": 16, "BN": 16, "BK": 16}


FORMED = {
    "rows that end with a loaded number": ("grouped", grouped(24, 40, 17, 0, 33), 2, 0),
    "tutorial": ("matmul", tutorial(33, 40, 20), 2, 1),
    "tutorial with whole tiles": ("matmul", tutorial(32, 64, 48), 2, 1),
    "rows below a bound": ("clamped", clamped(40, 24, 40, by_minimum=False), 2, 1),
    "rows at most a number": ("clamped", clamped(21, 40, 17, by_minimum=True), 2, 1),
    "attention": ("attention", attention(40, causal=False), 3, 1),
    "causal attention": ("attention", attention(23, causal=True), 3, 1),
    "chunks": ("chunks", chunks(41), 2, 1),
    "advanced blocks": ("advanced", blocks(40, 24, 48), 2, 1),
    "a loop backwards": ("backwards", rows(37, 1), 1, 1),
    "programs backwards": ("last_first", rows(37, 3), 1, 1),
    "bounds below and above": ("shifted", shifted(37), 1, 1),
}  # fmt: skip


def signature_of(value):
    if isinstance(value, np.ndarray):
        return "*fp16:16" if value.dtype == np.float16 else "*i32:16" if value.dtype == np.int32 else "*fp32:16"
    return "i32" if isinstance(value, int) else "fp32"


def built(kernel, args, constexprs):
    """The module of a kernel for arguments; the divisors of strides are left to the conditions of a launch."""
    signature = {name: signature_of(value) for name, value in args.items()}
    return build_module(source_of(getattr(pointer_kernels, kernel)), signature, constexprs)


def transformed(kernel, args, constexprs, passes):
    module = built(kernel, args, constexprs)
    for name in passes:
        pass_class(name)().apply(Context(), module)
        verify_module(module)
    return module


def copied(args):
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in args.items()}


def reason(module, grid, args, constexprs):
    """Run a module that the passes have made; why it may not be launched, if so."""
    made = host_part_of(module).arguments(grid, {**args, **constexprs}, PROGRAMS)
    if isinstance(made, str):
        return made
    interpret_module(module, *made, Options())
    return None


def check(kernel, case, *pipelines):
    """Compare what each pipeline makes of a kernel with the kernel, in memory; return the modules."""
    grid, args, constexprs = case
    expected = copied(args)
    interpret_module(built(kernel, args, constexprs), grid, list(expected.values()), Options())
    modules = [transformed(kernel, args, constexprs, passes) for passes in pipelines]
    for module in modules:
        found = copied(args)
        assert reason(module, grid, found, constexprs) is None
        for name, value in expected.items():
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(found[name], value, err_msg=name)
    return modules


@pytest.mark.parametrize("name", FORMED)
def test_the_same_numbers(name):
    kernel, case, loads, stores = FORMED[name]
    for module in check(kernel, case, ON_HOST, PERSISTENT):
        assert len(ops_of(module, tt.DescriptorLoadOp)) == loads
        assert len(ops_of(module, tt.DescriptorStoreOp)) == stores
        assert not ops_of(module, tt.MakeTensorDescOp)
        if stores:
            # Nothing is left of pointers and masks.
            assert not ops_of(module, tt.LoadOp, tt.StoreOp, tt.AddPtrOp, tt.AdvanceOp)


def test_descriptors_that_the_kernel_makes():
    (module,) = check("matmul", tutorial(33, 40, 20), IN_KERNEL)
    assert len(ops_of(module, tt.MakeTensorDescOp)) == 3


def test_equal_descriptors_of_a_kernel_become_one_argument():
    for module in check("described", blocks(40, 24, 64), ON_HOST, PERSISTENT):
        (function,) = ops_of(module, tt.FuncOp)
        names = [each.name_hint for each in function.body.block.args if isinstance(each.type, tt.TensorDescType)]
        assert names == ["a_desc", "b_desc", "c_desc"]
        assert not ops_of(module, tt.MakeTensorDescOp)


N_ROWS = 40
FAULTS = {
    "mask": "its mask is not made of bounds",
    "other": "TMA gives 0 outside of a tensor",
    "overlap": "two of its dimensions are contiguous",
    "stride": "no multiple of 16 bytes as far as known",
    "extent": "its mask ends at -16*program_id() + load(n_ptr), and 'store' may bring",
    "gather": "not linear in the positions",
    "scattered columns": "none of its dimensions is contiguous",
    "sum of wrapped": "'reduce' may bring what is there into memory",
    "unmasked wrapped": "'store' may bring what is there into memory",
    "loose wrapped": "'store' may bring what is there into memory",
    "column": "its rows begin at",
}


def faulty(kind):
    x = np.arange(100 * 64).reshape(100, 64).astype(np.float16)
    args = {"x_ptr": x, "y_ptr": np.full((48, 16), 7, np.float16)}
    args |= {"n_ptr": np.array([30, *range(15)], np.int32), "M": N_ROWS, "N": 24, "stride": 64}
    return (3,), args, {"KIND": kind, "B": 16}


@pytest.mark.parametrize("kind", FAULTS)
def test_what_is_no_box_is_left_with_the_reason(kind):
    (module,) = check("fault", faulty(kind), IN_KERNEL)
    (load,) = [op for op in ops_of(module, tt.LoadOp) if "tlx.note" in op.attributes]
    assert FAULTS[kind] in load.attributes["tlx.note"].data
    assert not ops_of(module, tt.DescriptorLoadOp)


def test_the_same_load_without_a_fault_is_a_box():
    (module,) = check("fault", faulty("fine"), IN_KERNEL)
    assert len(ops_of(module, tt.DescriptorLoadOp)) == 1


def test_rows_before_the_tensor_need_a_lower_bound():
    _, args, constexprs = shifted(37)
    module = transformed("shifted", args, {**constexprs, "LOWER": False}, IN_KERNEL)
    (load,) = ops_of(module, tt.LoadOp)
    assert "its tensor begins -3*stride elements after the pointer" in load.attributes["tlx.note"].data


def test_a_tensor_that_is_written_is_not_loaded_by_tma():
    args = {"x_ptr": padded(40, 16), "M": 40, "stride": 24}
    (module,) = check("in_place", ((3,), args, {"B": 16}), IN_KERNEL)
    (load,) = ops_of(module, tt.LoadOp)
    assert "stores to the same tensor" in load.attributes["tlx.note"].data


@pytest.mark.parametrize(("change", "why"), [
    ({"stride_am": 25}, "stride_am % 8 == 0"),
    ({"N": 37}, "N % 8 == 0"),
    ({"K": 0}, "K > 0"),
    ({"M": 100_000_000}, "M * stride_am < 2**31"),
])  # fmt: skip
def test_launches_that_do_not_fit_are_left_to_the_plain_kernel(change, why):
    grid, args, constexprs = tutorial(33, 40, 20)
    module = transformed("matmul", args, constexprs, ON_HOST)
    assert why in reason(module, grid, {**args, **change}, constexprs)


def test_stores_that_may_ask_nothing_of_a_launch_stay_with_the_threads():
    _, args, constexprs = tutorial(33, 40, 20)
    module = built("matmul", args, constexprs)
    pass_class("tlx-ws-form-descriptors")(ask_of_stores=False).apply(Context(), module)
    (store,) = ops_of(module, tt.StoreOp)
    assert "which is no multiple of 16 bytes as far as known" in store.attributes["tlx.note"].data
    assert len(ops_of(module, tt.DescriptorLoadOp)) == 2


@pytest.mark.parametrize(("counts", "is_persistent"), [(0, True), (1, True), (2, False)])
def test_a_grid_of_three_axes_is_taken_tile_by_tile(counts, is_persistent):
    args = {"x_ptr": dense(192), "y_ptr": dense(192, seed=1), "count_ptr": np.zeros(1, np.float32), "N": 185}
    (module,) = check("cube", ((2, 3, 2), args, {"B": 16, "COUNTS": counts}), ("tlx-ws-make-persistent",))
    assert ("tlx.host_value" in str(module)) == is_persistent
    assert len(ops_of(module, tt.GetProgramIdOp)) == (1 if is_persistent else 3)


def test_an_axis_without_a_use_has_one_program():
    grid, args, constexprs = tutorial(33, 40, 20)
    module = transformed("matmul", args, constexprs, PERSISTENT)
    assert "grid[1] == 1" in reason(module, (*grid, 2), args, constexprs)


@pytest.mark.parametrize(("kind", "is_hidden"), [
    ("left operand", True), ("right operand", False), ("accumulator", True), ("carried", True),
    ("carried to a sum", False), ("sum of the row", True), ("transposed", False), ("transposed with its mask", True),
    ("scan", False), ("scan of the row", False), ("added", True), ("address", False),
])  # fmt: skip
def test_ways_of_wrapped_rows_to_memory(kind, is_hidden):
    args = {"x_ptr": dense(40, 16), "w_ptr": dense(16, 16), "y_ptr": dense(48, 16), "M": 40, "stride": 16}
    module = transformed("wrapped", args, {"KIND": kind, "B": 16}, IN_KERNEL)
    # The load of `w` is a box in any case.
    assert len(ops_of(module, tt.DescriptorLoadOp)) == 1 + is_hidden
