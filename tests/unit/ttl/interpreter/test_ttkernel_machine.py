"""The machine: schedules, reports, deadlocks, and what its cores, network and units do and refuse."""

# The lines of the IR are as long as they are.
# ruff: noqa: E501

import time

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.unit.ttl.interpreter.ttkernel_programs import TENSOR, TILE, add, multicast, parse
from tlx_xdsl.errors import InputError
from tlx_xdsl.interpreter.faults import Deadlock, Fault
from tlx_xdsl.ttl.interpreter.ttkernel import make_plan, run

pytestmark = pytest.mark.quick

every_schedule = pytest.mark.parametrize("schedule", ["round-robin", "random", "adversarial"])


def arrays_of(rows: int, columns: int) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((rows * 32, columns * 32), dtype=np.float32) for _ in range(2))
    return [a, b, np.full_like(a, np.nan)]


@every_schedule
@pytest.mark.parametrize("seed", [0, 1])
def test_an_addition(schedule: str, seed: int):
    a, b, c = arrays_of(2, 4)
    run(parse(add(2, 4)), [a, b, c], schedule=schedule, seed=seed)
    np.testing.assert_array_equal(c, a + b)


def test_what_is_planned_once_runs_often():
    plan = make_plan(parse(add(8, 8)))
    a, b, c = arrays_of(8, 8)
    began = time.process_time()
    for _ in range(3):
        report = run(plan, [a, b, c])
    assert time.process_time() - began < 1.5
    np.testing.assert_array_equal(c, a + b)
    assert (report.registers, report.noc_bytes) == (2, 3 * 64 * 4096)


@every_schedule
def test_a_run_can_be_followed_again(schedule: str):
    plan = make_plan(parse(multicast(2, 2)))
    arrays = [np.ones((32, 64), np.float32), np.zeros((96, 64), np.float32)]
    report = run(plan, arrays, schedule=schedule, seed=7)
    assert run(plan, arrays, schedule=report.choices).choices == report.choices
    assert (arrays[1] == 1).all()


def test_the_capacity_can_be_less():
    with pytest.raises(Fault, match="uses register 1, but the registers are 0 to 0"):
        run(parse(add()), arrays_of(2, 2), capacity=1)


def test_bf16_is_rounded_to_nearest_when_it_is_packed():
    text = add(2, 2).replace("32x32, f32", "32x32, bf16").replace("xf32, #ttl", "xbf16, #ttl")
    text = text.replace("constant 4096", "constant 2048")
    a, b, c = (array.astype(np.float32) for array in arrays_of(2, 2))
    run(parse(text), [a, b, c])
    import ml_dtypes

    def half(values: np.ndarray) -> np.ndarray:
        return values.astype(ml_dtypes.bfloat16).astype(np.float32)

    np.testing.assert_array_equal(c, half(half(a) + half(b)))


def test_arrays_must_fit():
    with pytest.raises(InputError, match=r"the kernel takes 3 arrays \(a, b, c\), found 2"):
        run(parse(add()), arrays_of(2, 2)[:2])
    with pytest.raises(InputError, match=r"argument 0, 'a': expected an array of shape \(64, 64\), found \(32, 32\)"):
        run(parse(add()), arrays_of(1, 1))


def test_a_deadlock_says_who_waits_for_what():
    """A reader that forgets the second operand: where the waiting begins comes first."""
    lines = [
        ""
        if any(words in line for words in ("ttkernel.cb_push_back(%cb1", "_back(%cb1", "%pb", "%idb, %accb"))
        else line
        for line in add(2, 4).split("\n")
    ]
    with pytest.raises(Deadlock) as caught:
        run(parse("\n".join(lines)), arrays_of(2, 4))
    assert caught.value.message == (
        "deadlock: thread 'compute' of core (0, 0) waits for 2 pages of circular buffer 1, which has 0"
    )
    assert caught.value.notes[1] == "    no line pushes it"
    (reader,) = (note for note in caught.value.notes if "'reader' of core" in note)
    assert "waits for 2 free pages of circular buffer 0, which has 0 of 4" in reader
    (pop,) = (note for note in caught.value.notes if "it can be popped at" in note)
    assert "by 'compute', which waits at kernel.py" in pop


def test_an_unknown_operation_is_refused():
    with pytest.raises(Fault, match=r"the interpreter can't run 'cf\.assert'"):
        run(
            parse(add().replace("  func.return", '  %t = arith.constant true\n  cf.assert %t, "no"\n  func.return', 1)),
            arrays_of(2, 2),
        )


def test_a_module_without_a_driver_is_refused():
    with pytest.raises(InputError, match="expected the driver of a kernel"):
        make_plan(ModuleOp([]))


# What compute threads do ---------------------------------------------------------------------------------------------


def unit(body: str, *, inputs: int = 1, tiles: int = 1, out: int = 1) -> str:
    """A kernel whose compute thread has `tiles` tiles each of one or two tensors, and makes `out` tiles of `c`."""
    names = "ab"[:inputs]
    shapes = {**dict.fromkeys(names, TENSOR.format(32, 32 * tiles)), "c": TENSOR.format(32, 32 * out)}
    pages = {**dict.fromkeys(names, tiles), "c": out}
    binds, accessors, functions, threads = "", "", "", ""
    for index, (name, tensor) in enumerate(shapes.items()):
        count = pages[name]
        cb = f"!ttkernel.cb<{count}, {TILE}>"
        binds += f"  %{name}_cb = ttl.bind_cb {{cb_index = {index} : i32, buffer_factor = 1 : i32}} : !ttl.cb<[1, {count}], {TILE}, 1>\n"
        accessors += f"  %acc_{name} = ttl.tensor_accessor %{name} : {tensor} -> !ttl.tensor_accessor<{tensor}>\n"
        threads += f"  ttl.launch_thread @move_{name}(%{name}_cb, %acc_{name})\n"
        verb, acquire, release, pointer = (
            ("write", "wait_front", "pop_front", "read")
            if name == "c"
            else ("read", "reserve_back", "push_back", "write")
        )
        functions += f"""\
func.func @move_{name}() attributes {{ttkernel.thread = #ttkernel.thread<noc>}} {{
  %bytes = arith.constant 4096 : i32
  %count = arith.constant {count} : i32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %cb = ttkernel.get_compile_time_arg_val() {{index = {index} : i32}} : () -> {cb}
  %base = ttkernel.get_common_arg_val() {{index = 0 : i32}} : () -> i32
  %args = ttkernel.TensorAccessorArgs() {{cta = {len(shapes) + index} : i32, crta = 0 : i32}} : () -> !ttkernel.TensorAccessorArgs
  %acc = ttkernel.TensorAccessor(%args, %base, %bytes) {{layout = #ttl.layout<tiled>, shape = [32 : i32, {32 * count} : i32], element = {TILE}}} : (!ttkernel.TensorAccessorArgs, i32, i32) -> !ttkernel.TensorAccessor
  ttkernel.cb_{acquire}(%cb, %count) : ({cb}, i32) -> ()
  %first = ttkernel.get_{pointer}_ptr(%cb) : ({cb}) -> i32
  scf.for %i = %c0 to %count step %c1 : i32 {{
    %offset = arith.muli %i, %bytes : i32
    %place = arith.addi %first, %offset : i32
    ttkernel.noc_async_{verb}_tile(%i, %acc, %place) : (i32, !ttkernel.TensorAccessor, i32) -> ()
  }}
  ttkernel.noc_async_{verb}_barrier() : () -> ()
  ttkernel.cb_{release}(%cb, %count) : ({cb}, i32) -> ()
  func.return
}}
"""
    cbs = "".join(
        f"  %{name} = ttkernel.get_compile_time_arg_val() {{index = {index} : i32}} : () -> !ttkernel.cb<{pages[name]}, {TILE}>\n"
        for index, name in enumerate(shapes)
    )
    kinds = {name: f"!ttkernel.cb<{pages[name]}, {TILE}>" for name in shapes}
    for name, kind in kinds.items():
        body = body.replace(f"<{name}>", kind)
    waits = "".join(f"  ttkernel.cb_wait_front(%{name}, %tiles) : ({kinds[name]}, i32) -> ()\n" for name in names)
    pops = "".join(f"  ttkernel.cb_pop_front(%{name}, %tiles) : ({kinds[name]}, i32) -> ()\n" for name in names)
    numbers = "".join(f"  %{number} = arith.constant {number} : i32\n" for number in range(4))
    arguments = ", ".join(f"%{name} : {tensor}" for name, tensor in shapes.items())
    return f"""\
ttl.kernel_driver @unit_driver({arguments}) attributes {{grid = #ttcore.grid<1x1>}} {{
{binds}{accessors}{threads}  ttl.launch_thread @compute({", ".join(f"%{name}_cb" for name in shapes)})
  ttl.kernel_driver_return
}}
{functions}func.func @compute() attributes {{ttkernel.thread = #ttkernel.thread<compute>}} {{
{numbers}  %tiles = arith.constant {tiles} : i32
  %made = arith.constant {out} : i32
{cbs}{waits}  ttkernel.cb_reserve_back(%c, %made) : ({kinds["c"]}, i32) -> ()
  ttkernel.tile_regs_acquire() : () -> ()
{body}
  ttkernel.tile_regs_release() : () -> ()
{pops}  ttkernel.cb_push_back(%c, %made) : ({kinds["c"]}, i32) -> ()
  func.return
}}
"""


END = """
  ttkernel.tile_regs_commit() : () -> ()
  ttkernel.tile_regs_wait() : () -> ()
  ttkernel.pack_tile(%0, %c, %0) : (i32, <c>, i32) -> ()"""
RANDOM = np.random.default_rng(5)
A, B = (RANDOM.standard_normal((32, 32), dtype=np.float32) for _ in range(2))


def computed(body: str, *inputs: np.ndarray, **sizes: int) -> np.ndarray:
    c = np.full((32, 32 * sizes.get("out", 1)), np.nan, np.float32)
    run(parse(unit(body, inputs=len(inputs), **sizes)), [*inputs, c])
    return c


def test_matrix_unit_arithmetic():
    for name, expected in (("add", A + B), ("sub", A - B), ("mul", A * B)):
        body = f"  ttkernel.{name}_tiles(%a, %b, %0, %0, %0) : (<a>, <b>, i32, i32, i32) -> ()" + END
        np.testing.assert_array_equal(computed(body, A, B), expected)


def test_a_product_is_added_to_what_the_register_has():
    body = "\n".join(
        f"  ttkernel.matmul_tiles(%a, %b, %{k}, %{k}, %0) : (<a>, <b>, i32, i32, i32) -> ()" for k in range(2)
    )
    a, b = np.hstack([A, B]), np.hstack([B, A])
    np.testing.assert_allclose(computed(body + END, a, b, tiles=2), A @ B + B @ A, rtol=1e-4, atol=1e-5)


def test_a_transposition():
    body = "  ttkernel.transpose_wh_tile(%a, %0, %0) : (<a>, i32, i32) -> ()" + END
    np.testing.assert_array_equal(computed(body, A), A.T)


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        ("0", np.broadcast_to(A[:1], A.shape)),
        ("1", np.broadcast_to(A[:, :1], A.shape)),
        ("0, 1", np.full_like(A, A[0, 0])),
    ],
)
def test_a_broadcast(dims: str, expected: np.ndarray):
    attribute = ", ".join(f"{dim} : i64" for dim in dims.split(", "))
    body = f"  ttkernel.unary_bcast(%a, %0, %0) {{dims = [{attribute}]}} : (<a>, i32, i32) -> ()" + END
    np.testing.assert_array_equal(computed(body, A), expected)


def reduction(kind: str, *, init: bool = True, uninit: bool = True, more: str = "") -> str:
    start = f'  ttkernel.reduce_init(%a, %b, %c) {{dims = [1 : i64], kind = "{kind}"}} : (<a>, <b>, <c>) -> ()\n'
    step = f'  ttkernel.reduce_tile(%a, %b, %0, %0, %0) {{dims = [1 : i64], kind = "{kind}"}} : (<a>, <b>, i32, i32, i32) -> ()'
    return (start if init else "") + step + more + END + ("\n  ttkernel.reduce_uninit() : () -> ()" if uninit else "")


@pytest.mark.parametrize(("kind", "function"), [("sum", np.sum), ("max", np.max)])
def test_a_reduction_is_in_the_first_column(kind: str, function):
    found = computed(reduction(kind), A, np.ones_like(A))
    np.testing.assert_allclose(found[:, 0], function(A, axis=1), rtol=1e-5)
    assert (found[:, 1:] == 0).all()


def test_a_reduction_needs_its_mask():
    with pytest.raises(Fault, match="packs the result of a reduction without 'reduce_init' before"):
        computed(reduction("sum", init=False), A, np.ones_like(A))


def test_a_mask_that_is_left_would_spoil_what_follows():
    late = """
  ttkernel.tile_regs_release() : () -> ()
  ttkernel.tile_regs_acquire() : () -> ()
  ttkernel.copy_tile(%a, %0, %0) : (<a>, i32, i32) -> ()
  ttkernel.tile_regs_commit() : () -> ()
  ttkernel.tile_regs_wait() : () -> ()
  ttkernel.pack_tile(%0, %c, %1) : (i32, <c>, i32) -> ()"""
    with pytest.raises(Fault, match="expected 'reduce_uninit' before"):
        computed(reduction("sum", uninit=False) + late, A, np.ones_like(A), out=2)


def test_the_packer_adds_to_what_is_there():
    again = """
  ttkernel.tile_regs_release() : () -> ()
  ttkernel.tile_regs_acquire() : () -> ()
  ttkernel.copy_tile(%b, %0, %0) : (<b>, i32, i32) -> ()
  ttkernel.pack_reconfig_l1_acc(%1) : (i32) -> ()"""
    first = "  ttkernel.copy_tile(%a, %0, %0) : (<a>, i32, i32) -> ()"
    np.testing.assert_array_equal(computed(first + END + again + END, A, B), A + B)
    enabled = "  ttkernel.pack_reconfig_l1_acc(%1) : (i32) -> ()\n"
    with pytest.raises(Fault, match="adds to tile 0 of circular buffer 2, which was not written"):
        computed(enabled + first + END, A, B)
    with pytest.raises(Fault, match="packs into tile 0 of circular buffer 2 once more"):
        computed(first + END + again.replace("acc(%1)", "acc(%0)") + END, A, B)


def test_vector_unit_arithmetic():
    body = """\
  ttkernel.copy_tile(%a, %0, %0) : (<a>, i32, i32) -> ()
  ttkernel.abs_tile(%0) : (i32) -> ()
  ttkernel.copy_dest_values(%0, %1) : (i32, i32) -> ()
  ttkernel.sqrt_tile(%1) : (i32) -> ()
  ttkernel.fill_tile(%2) {value = 3.0 : f32} : (i32) -> ()
  ttkernel.mul_binary_tile(%1, %2, %1) : (i32, i32, i32) -> ()
  ttkernel.div_binary_tile(%1, %0, %0) : (i32, i32, i32) -> ()"""
    x = np.abs(A)
    np.testing.assert_array_equal(computed(body + END, A), np.sqrt(x) * np.float32(3) / x)
