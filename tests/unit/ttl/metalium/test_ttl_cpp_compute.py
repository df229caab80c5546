"""The machine's compute engine against numpy."""

import numpy as np
import pytest

from tests.unit.ttl.metalium.metalium_programs import Tensor, inputs, needs_compiler, output, program, results
from tlx_xdsl.ttl.elementwise import FUNCTIONS
from tlx_xdsl.ttl.metalium.program import MetaliumError

pytestmark = needs_compiler

ONE_TILE = """void kernel_main() {{
  {startup}
  cb_wait_front(0, get_tiles);
  {setup}
  cb_reserve_back({out}, 1);
  tile_regs_acquire();
  {body}
  tile_regs_commit();
  tile_regs_wait();
  pack_tile<true>(0, {out}, 0);
  tile_regs_release();
  {end}
  cb_push_back({out}, 1);
  {pops}
}}
"""
"""A kernel that makes one tile of all tiles of its inputs."""


def one_tile(body: str, tensors: list[Tensor], *, setup: str = "", end: str = "", startup: str = "") -> str:
    counts = [each.tiles for each in tensors[:-1]]
    out = len(counts)
    text = ONE_TILE.format(
        startup=startup or f"compute_kernel_hw_startup(0, {out - 1}, {out});",
        setup=setup,
        body=body,
        end=end,
        out=out,
        pops=" ".join(f"cb_pop_front({cb}, {count});" for cb, count in enumerate(counts)),
    )
    waits = " ".join(f"cb_wait_front({cb}, {count});" for cb, count in enumerate(counts))
    return text.replace("cb_wait_front(0, get_tiles);", waits)


def computed(body: str, tensors: list[Tensor], seed: int = 0, **parts: str) -> np.ndarray:
    (result,) = results(program(one_tile(body, tensors, **parts), tensors), tensors, seed=seed)
    return result


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


COPY = "copy_init(0); copy_tile(0, 0, 0);"


def many(steps: list[str], tensors: list[Tensor]) -> np.ndarray:
    """The tile that each step leaves in register 0, below each other."""
    *counts, total = (each.tiles for each in tensors)
    waits = "".join(f"cb_wait_front({cb}, {count});" for cb, count in enumerate(counts))
    pops = "".join(f"cb_pop_front({cb}, {count});" for cb, count in enumerate(counts))
    out = len(counts)
    lines = "".join(
        f"tile_regs_acquire(); {step} tile_regs_commit(); tile_regs_wait();"
        f" pack_tile<true>(0, {out}, {number}); tile_regs_release();\n"
        for number, step in enumerate(steps)
    )
    text = (
        f"void kernel_main() {{ compute_kernel_hw_startup(0, {out - 1}, {out}); {waits}"
        f" cb_reserve_back({out}, {total});\n{lines} cb_push_back({out}, {total}); {pops} }}"
    )
    (result,) = results(program(text, tensors), tensors)
    return result


def test_binary_operations_of_the_vector_unit() -> None:
    a, b = normal(2, 32, 32)
    functions = {
        "add_binary": np.add,
        "sub_binary": np.subtract,
        "mul_binary": np.multiply,
        "div_binary": np.divide,
        "binary_max": np.maximum,
        "binary_min": np.minimum,
        "remainder_binary": np.remainder,
    }
    both = "copy_init(0); copy_tile(0, 0, 0); copy_init(1); copy_tile(1, 0, 1);"
    steps = [f"{both} {name}_tile_init(); {name}_tile(0, 1, 0);" for name in functions]
    result = many(steps, [*inputs(a, b), output((32 * len(functions), 32))])
    for number, (name, function) in enumerate(functions.items()):
        np.testing.assert_array_equal(result[32 * number : 32 * number + 32], function(a, b), err_msg=name)


def test_functions_of_the_vector_unit() -> None:
    """Run all of the table, which our headers have to declare, in one program, in sequence, on a tile each."""
    x = np.abs(normal(32, 32)) + np.float32(0.1)
    x[0, :16] *= -1
    numbers = {each.name: tuple(1.5 + at for at, _ in enumerate(each.parameters)) for each in FUNCTIONS}
    steps: list[str] = []
    for each in FUNCTIONS:
        operands = ", ".join(["0", *(f"{bits}u" for bits in each.arguments(numbers[each.name]))])
        steps.append(f"{COPY} {each.preparation}(); {each.callee}({operands});")
    result = many(steps, [*inputs(x), output((32 * len(FUNCTIONS), 32))])
    with np.errstate(invalid="ignore"):
        for number, each in enumerate(FUNCTIONS):
            expected = np.asarray(each.compute(x.astype(np.float64), *numbers[each.name]), np.float32)
            found = result[32 * number : 32 * number + 32]
            np.testing.assert_allclose(found, expected, rtol=2**-22, atol=1e-7, err_msg=each.name)


def test_choice_of_elements() -> None:
    a, b = normal(2, 32, 32)
    load = " ".join(f"copy_init({cb}); copy_tile({cb}, 0, {dst});" for cb, dst in ((0, 0), (1, 1), (0, 2)))
    step = (
        f"{load} signbit_tile_init(); signbit_tile(0); where_tile_init(); where_tile<DataFormat::Float32>(0, 1, 2, 3);"
    )
    result = computed(f"{step} copy_dest_values_init(); copy_dest_values<DataFormat::Float32>(3, 0);",
                      [*inputs(a, b), output((32, 32))])  # fmt: skip
    np.testing.assert_array_equal(result, np.where(np.signbit(a), b, a))


def test_matrix_unit() -> None:
    a, b = normal(2, 32, 32)
    for name, function in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply)):
        result = computed(
            f"{name}_tiles(0, 1, 0, 0, 0);", [*inputs(a, b), output((32, 32))], setup=f"{name}_init(0, 1);"
        )
        np.testing.assert_array_equal(result, function(a, b))


def test_matmul_adds_up_over_tiles() -> None:
    generator = np.random.default_rng(0)
    a = generator.integers(-8, 8, (32, 96)).astype(np.float32)
    b = generator.integers(-8, 8, (96, 32)).astype(np.float32)
    result = computed(
        "for (size_t k = 0; k < 3; k += 1) { matmul_tiles(0, 1, k, k, 0); }",
        [*inputs(a, b), output((32, 32))],
        startup="compute_kernel_hw_startup<SrcOrder::Reverse>(0, 1, 2);",
        setup="matmul_init(0, 1);",
    )
    np.testing.assert_array_equal(result, a @ b)


def test_broadcast() -> None:
    x = normal(32, 32)
    steps = [
        f"unary_bcast_init<{call}>(0); unary_bcast<{call}>(0, 0, 0); unary_bcast_uninit<{call}>(0);"
        for call in ("BroadcastType::COL", "BroadcastType::ROW", "BroadcastType::SCALAR")
    ]
    result = many(steps, [*inputs(x), output((96, 32))])
    spread = [np.broadcast_to(part, (32, 32)) for part in (x[:, :1], x[:1], x[:1, :1])]
    np.testing.assert_array_equal(result, np.concatenate(spread))


def test_transpose() -> None:
    x = normal(32, 32)
    result = computed("transpose_tile(0, 0, 0);", [*inputs(x), output((32, 32))], setup="transpose_init(0);")
    np.testing.assert_array_equal(result, x.T)


def test_reduction() -> None:
    """The result is in a column, a row or one element; the packer makes the rest zero."""
    x = np.random.default_rng(0).integers(-50, -1, (32, 32)).astype(np.float32)
    kinds = [(pool, dim) for pool in ("SUM", "MAX") for dim in ("ROW", "COL", "SCALAR")]
    calls = [f"PoolType::{pool}, ReduceDim::REDUCE_{dim}" for pool, dim in kinds]
    steps = [f"reduce_init<{call}>(0, 1, 2); reduce_tile<{call}>(0, 1, 0, 0, 0);" for call in calls]
    result = many(steps, [*inputs(x, np.ones((32, 32), np.float32)), output((32 * len(steps), 32))])
    everything = slice(None)
    places = {"ROW": (everything, [0]), "COL": ([0], everything), "SCALAR": ([0], [0])}
    axes = {"ROW": 1, "COL": 0, "SCALAR": None}
    for number, (pool, dim) in enumerate(kinds):
        expected = np.zeros((32, 32), np.float32)
        expected[places[dim]] = (np.sum if pool == "SUM" else np.max)(x, axis=axes[dim], keepdims=True)
        np.testing.assert_array_equal(result[32 * number : 32 * number + 32], expected, err_msg=calls[number])


def test_a_reduction_without_its_mask_leaves_what_was_not_computed() -> None:
    call = "PoolType::SUM, ReduceDim::REDUCE_ROW"
    result = computed(
        f"reduce_tile<{call}>(0, 1, 0, 0, 0); reduce_uninit(0);",
        [*inputs(normal(32, 32), np.ones((32, 32), np.float32)), output((32, 32))],
        setup=f"reduce_init<{call}>(0, 1, 2);",
    )
    assert np.isnan(result[:, 1:]).all()


def test_the_packer_rounds_to_even() -> None:
    x = np.array([[1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, np.inf, -np.inf, np.nan]], np.float32)
    tensors = [*inputs(x), output((1, 6), "bf16")]
    result = computed(COPY, tensors)
    np.testing.assert_array_equal(result, [[1, 1 + 2**-6, 1 + 2**-7, np.inf, -np.inf, np.nan]])


def test_the_packer_adds_in_l1() -> None:
    """The sum is rounded to the type of the buffer each time."""
    x = np.full((1, 1), 1 + 2**-7, np.float32)
    tensors = [*inputs(x, dtype="bf16"), output((1, 1), "bf16")]
    again = " ".join(
        [
            "tile_regs_acquire();",
            COPY,
            "tile_regs_commit(); tile_regs_wait(); pack_tile<true>(0, 1, 0); tile_regs_release();",
        ]
    )
    end = f"pack_reconfig_l1_acc(1); {again} {again} pack_reconfig_l1_acc(0);"
    # 2 + 2^-6 is a number of bf16; 3 + 3 * 2^-7 is between two, and rounded to the even one.
    assert computed(COPY, tensors, end=end).item() == 3 + 2**-5


def test_values_between_registers() -> None:
    x = normal(32, 32)
    body = f"{COPY} fill_tile_init(); fill_tile(1, 2.5f); copy_dest_values_init(); "
    for call in ("copy_dest_values<DataFormat::Float32>(1, 0);", "copy_dest_values(0, 1);"):
        assert (computed(body + call, [*inputs(x), output((32, 32))]) == 2.5).all()


def test_old_names() -> None:
    """Inits of 2025 configure the engine, too."""
    x = normal(32, 32)
    tensors = [*inputs(x), output((32, 32))]
    result = computed(
        "copy_tile(0, 0, 0); negative_tile_init(); negative_tile(0);", tensors, startup="init_sfpu(0, 1);"
    )
    np.testing.assert_array_equal(result, -x)


@pytest.mark.parametrize(
    ("body", "parts", "message"),
    [
        ("copy_tile(0, 0, 0);", {}, "the matrix unit is set up for nothing: an init is missing"),
        (f"{COPY} exp_tile(0);", {}, "the vector unit is set up for nothing: an init is missing"),
        (f"{COPY} log_tile_init(); exp_tile(0);", {}, "the vector unit is set up for log"),
        ("exp_tile_init(); exp_tile(0);", {}, "tile 0 of DST is read, but nothing has been put there"),
        ("copy_init(0); copy_tile(0, 1, 0);", {}, "tile 1 of circular buffer 0 is read, but 1 have been waited for"),
        ("copy_init(0); copy_tile(1, 0, 0);", {}, "tile 0 of circular buffer 1 is read, but 0 have been waited for"),
        (f"{COPY} compute_kernel_hw_startup(0, 1);", {}, "the startup has to be the first call"),
        (COPY, {"startup": "cb_wait_front(0, 1);"}, "the compute engine has not been started"),
        (f"{COPY} tile_regs_release();", {}, "the DST registers are acquired: they have to be being packed"),
        (f"{COPY} noc_async_read_barrier();", {}, "is a compute thread, which has no access to the NoC"),
        (f"{COPY} pack_tile(0, 1);", {}, "packed outside of tile_regs_wait and tile_regs_release"),
    ],
)
def test_what_is_no_computation(body: str, parts: dict[str, str], message: str) -> None:
    with pytest.raises(MetaliumError, match=message):
        computed(body, [*inputs(normal(32, 32)), output((32, 32))], **parts)


def test_formats_have_to_be_configured() -> None:
    """A buffer of another format needs `reconfig_data_format_srca` before its init."""
    tensors = [*inputs(normal(32, 32)), *[Tensor("b", normal(32, 32), "bf16")], output((32, 32))]
    startup = "compute_kernel_hw_startup(0, 2);"
    body = f"{COPY} copy_init(1); copy_tile(1, 0, 0);"
    with pytest.raises(
        MetaliumError, match="operand A is configured for another data format than that of circular buffer 1"
    ):
        computed(body, tensors, startup=startup)
    right = body.replace("copy_init(1)", "reconfig_data_format_srca(1); copy_init(1)")
    assert np.isfinite(computed(right, tensors, startup=startup)).all()
