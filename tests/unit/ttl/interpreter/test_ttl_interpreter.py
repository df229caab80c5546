"""Meaning of `ttl` on whole blocks: copies and their edges, the protocol, pipes without semaphores, refusals."""

# The lines of the IR are as long as they are.
# ruff: noqa: E501

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tlx_xdsl.ttl.language as ttl_language
from tests.unit.ttl.interpreter.ttkernel_programs import TENSOR, TILE, parse
from tests.unit.ttl.interpreter.ttl_kernels import CASES
from tlx_xdsl.errors import InputError
from tlx_xdsl.interpreter.faults import Deadlock, Fault
from tlx_xdsl.ttl.frontend import compile_kernel
from tlx_xdsl.ttl.interpreter import explore, run
from tlx_xdsl.ttl.runtime.specs import specs_of

pytestmark = pytest.mark.quick

CB = f"!ttl.cb<[1, 2], {TILE}, 2>"
BLOCK = f"tensor<1x2x{TILE}>"


def add(rows: int = 64, columns: int = 128, *, changes: dict[str, str] | None = None) -> str:
    """c = a + b of `rows` by `columns` elements, two tiles of a row at a time, with some lines replaced."""
    tensor = TENSOR.format(rows, columns)
    accessor = f"!ttl.tensor_accessor<{tensor}>"
    tile_rows, blocks = -(-rows // 32), -(-columns // 64)
    made = "\n".join(
        f"  %cb_{name} = ttl.create_cb shape=[1, 2], element_type={TILE}, buffer_factor=2 : {CB}\n"
        f"  %acc_{name} = ttl.tensor_accessor %{name} : {tensor} -> {accessor}"
        for name in "abc"
    )
    loops = f"    affine.for %i = 0 to {tile_rows} {{\n    affine.for %j = 0 to {blocks} {{\n    %k = affine.apply affine_map<(d0) -> (d0 * 2)> (%j)\n"
    reads = "\n".join(
        f"""\
    %v{name} = ttl.cb_reserve %cb_{name} : {CB} -> {BLOCK}
    %x{name} = ttl.copy %acc_{name}[%i, %k], %v{name} : {accessor}, {BLOCK} -> !ttl.transfer_handle<read>
    ttl.wait %x{name}
    ttl.cb_push %cb_{name}"""
        for name in "ab"
    )
    text = f"""\
ttl.kernel @add(%a : {tensor}, %b : {tensor}, %c : {tensor}) attributes {{grid = #ttcore.grid<1x1>}} {{
{made}
  ttl.datamovement_thread @read {{
{loops}{reads}
    }}
    }}
    ttl.thread_return
  }}
  ttl.compute_thread @compute {{
    affine.for %i = 0 to {tile_rows * blocks} {{
    %va = ttl.cb_wait %cb_a : {CB} -> {BLOCK}
    %vb = ttl.cb_wait %cb_b : {CB} -> {BLOCK}
    %vc = ttl.cb_reserve %cb_c : {CB} -> {BLOCK}
    %s = ttl.add %va, %vb : {BLOCK}, {BLOCK} -> {BLOCK}
    ttl.store %s, %vc : {BLOCK}, {BLOCK}
    ttl.cb_pop %cb_a
    ttl.cb_pop %cb_b
    ttl.cb_push %cb_c
    }}
    ttl.thread_return
  }}
  ttl.datamovement_thread @write {{
{loops}    %v = ttl.cb_wait %cb_c : {CB} -> {BLOCK}
    %x = ttl.copy %v, %acc_c[%i, %k] : {BLOCK}, {accessor} -> !ttl.transfer_handle<write>
    ttl.wait %x
    ttl.cb_pop %cb_c
    }}
    }}
    ttl.thread_return
  }}
  ttl.kernel_return
}}
"""
    for old, new in (changes or {}).items():
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def arrays_of(rows: int = 64, columns: int = 128) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((rows, columns), dtype=np.float32) for _ in range(2))
    return [a, b, np.full_like(a, np.nan)]


@pytest.mark.parametrize("schedule", ["round-robin", "random", "adversarial"])
@pytest.mark.parametrize("shape", [(64, 128), (40, 100)])
def test_an_addition(shape: tuple[int, int], schedule: str):
    """Edges that do not fill a tile are padded with zeros, and cut when they are written."""
    a, b, c = arrays_of(*shape)
    run(parse(add(*shape)), [a, b, c], schedule=schedule)
    np.testing.assert_array_equal(c, a + b)


def test_one_barrier_waits_for_all():
    changes = {
        "    ttl.wait %xa\n    ttl.cb_push %cb_a": "",
        "    ttl.wait %xb\n": "    ttl.dma_barrier read\n    ttl.cb_push %cb_a\n",
    }
    a, b, c = arrays_of()
    run(parse(add(changes=changes)), [a, b, c])
    np.testing.assert_array_equal(c, a + b)


MISTAKES = {
    "a push before the wait": (
        {"    ttl.wait %xa\n    ttl.cb_push %cb_a": "    ttl.cb_push %cb_a\n    ttl.wait %xa"},
        "pushes circular buffer 'cb_a' before a barrier for its copy of [0, 0] of tensor 'a'",
        "ttl.cb_push %cb_a",
    ),
    "no copy": (
        {f"    %xa = ttl.copy %acc_a[%i, %k], %va : !ttl.tensor_accessor<{TENSOR.format(64, 128)}>, {BLOCK} -> !ttl.transfer_handle<read>\n    ttl.wait %xa\n": ""},
        "pushes page 0 of 1 of circular buffer 'cb_a', which was not written",
        "ttl.cb_push %cb_a",
    ),
    "a use after the pop": (
        {"    ttl.cb_pop %cb_a\n": "", "    %s = ttl.add": "    ttl.cb_pop %cb_a\n    %s = ttl.add"},
        "uses a block of circular buffer 'cb_a' after it was popped",
        "ttl.add",
    ),
    "a store into what was waited for": (
        {"    ttl.store %s, %vc": f"    ttl.store %s, %va : {BLOCK}, {BLOCK}\n    ttl.store %s, %vc"},
        "writes a block of circular buffer 'cb_a' that it has waited for, not reserved",
        "ttl.store",
    ),
    "a read of what is reserved": (
        {"ttl.add %va, %vb": "ttl.add %va, %vc"},
        "reads a block of circular buffer 'cb_c', which was not written",
        "ttl.add",
    ),
    "a wait for the same block again": (
        {"    ttl.cb_pop %cb_b\n": f"    %again = ttl.cb_wait %cb_b : {CB} -> {BLOCK}\n    ttl.cb_pop %cb_b\n"},
        "waits for circular buffer 'cb_b' again before it has popped: that gives the same pages",
        "%again",
    ),
    "a place beyond the tensor": (
        {"%acc_a[%i, %k]": "%acc_a[%k, %i]"},
        "copies the 1x2 tiles at [2, 0] of tensor 'a', which has 2x4",
        "ttl.copy %acc_a",
    ),
    "one place for all": (
        {"%acc_c[%i, %k]": "%acc_c[%i, %i]"},
        "is written once more, while page 2 never is",
        "ttl.copy %v,",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found(name: str):
    changes, message, line = MISTAKES[name]
    text = add(changes=changes)
    with pytest.raises(Fault) as caught:
        run(parse(text), arrays_of())
    assert message in caught.value.message
    assert caught.value.location is not None
    assert line in text.split("\n")[caught.value.location.line - 1]


def test_a_deadlock_names_the_producer():
    text = add(changes={"    affine.for %i = 0 to 2 {": "    affine.for %i = 0 to 1 {"})
    with pytest.raises(Deadlock) as caught:
        run(parse(text), arrays_of())
    assert (
        "thread 'compute' of core (0, 0) waits for 1 block of circular buffer 'cb_a', which has 0"
        in caught.value.message
    )
    assert any(
        "it can be pushed at kernel.py" in note and "by 'read', which has ended" in note for note in caught.value.notes
    )


def test_the_grid_can_be_another():
    """Two cores do the same: the second one overwrites what the first one has written."""
    with pytest.raises(Fault, match=r"race: .*\(1, 0\) writes page 0 of tensor .c. .*, which .*\(0, 0\) writes"):
        run(parse(add()), arrays_of(), grid=(2, 1))


def test_arrays_and_kernels_are_checked():
    with pytest.raises(InputError, match="the kernel takes 3 arrays"):
        run(parse(add()), arrays_of()[:1])
    with pytest.raises(InputError, match="expected the name of a kernel, one of: none"):
        run(ModuleOp([]), [])


# Pipes, by what they mean --------------------------------------------------------------------------------------------


def module_of(kernel: ttl_language.kernel, arrays: list[np.ndarray]) -> ModuleOp:
    return compile_kernel(kernel, specs_of(kernel, arrays))


def test_pipes_need_no_semaphores():
    case = CASES["shared"]
    arrays = case.arrays()
    module = module_of(case.kernel, arrays)
    assert not any(op.name == "ttl.create_semaphore" for op in module.walk())
    run(module, arrays, schedule="random", seed=2)
    np.testing.assert_array_equal(arrays[-1], case.result(*arrays[:-1]))
    assert explore(module, case.arrays()).complete


def pipes(body: str, *, destinations: str = "[[1, 0], [1, 0]]") -> str:
    """Two cores with a pipe from (0, 0): each reserves a block, runs `body`, and writes its block to a row of `c`."""
    a, c = TENSOR.format(32, 64), TENSOR.format(64, 64)
    return f"""\
ttl.kernel @pipes(%a : {a}, %c : {c}) attributes {{grid = #ttcore.grid<2x1>}} {{
  %cb = ttl.create_cb shape=[1, 2], element_type={TILE}, buffer_factor=2 : {CB}
  %acc_a = ttl.tensor_accessor %a : {a} -> !ttl.tensor_accessor<{a}>
  %acc_c = ttl.tensor_accessor %c : {c} -> !ttl.tensor_accessor<{c}>
  %x, %y = ttl.core(dims = 2) : index, index
  %p = ttl.create_pipe src=[0, 0] dst_range={destinations} : !ttl.pipe
  ttl.datamovement_thread @exchange {{
    %zero = arith.constant 0 : index
    %is_source = arith.cmpi eq, %x, %zero : index
    %v = ttl.cb_reserve %cb : {CB} -> {BLOCK}
{body}
    ttl.cb_push %cb
    ttl.thread_return
  }}
  ttl.datamovement_thread @write {{
    %zero = arith.constant 0 : index
    %w = ttl.cb_wait %cb : {CB} -> {BLOCK}
    %xw = ttl.copy %w, %acc_c[%x, %zero] : {BLOCK}, !ttl.tensor_accessor<{c}> -> !ttl.transfer_handle<write>
    ttl.wait %xw
    ttl.cb_pop %cb
    ttl.thread_return
  }}
  ttl.kernel_return
}}
"""


READ = f"""\
    scf.if %is_source {{
    %xa = ttl.copy %acc_a[%zero, %zero], %v : !ttl.tensor_accessor<{TENSOR.format(32, 64)}>, {BLOCK} -> !ttl.transfer_handle<read>
    ttl.wait %xa
    }}
"""
SEND = f"""\
    %xs = ttl.copy %v, %p : {BLOCK}, !ttl.pipe -> !ttl.transfer_handle<write>
    ttl.wait %xs
"""
RECEIVE = f"""\
    %xr = ttl.copy %p, %v : !ttl.pipe, {BLOCK} -> !ttl.transfer_handle<read>
    ttl.wait %xr
"""


def guarded(side: str, body: str) -> str:
    return f"    ttl.if_{side} %p {{\n{body}    }}\n"


def pipe_arrays() -> list[np.ndarray]:
    return [np.random.default_rng(1).standard_normal((32, 64), dtype=np.float32), np.zeros((64, 64), np.float32)]


def test_a_pipe_moves_a_block():
    a, c = pipe_arrays()
    run(parse(pipes(READ + guarded("src", SEND) + guarded("dst", RECEIVE))), [a, c])
    np.testing.assert_array_equal(c, np.tile(a, (2, 1)))


def test_only_the_source_sends():
    text = pipes(READ + guarded("src", SEND) + guarded("dst", RECEIVE.replace("%xr", "%xq") + SEND))
    with pytest.raises(Fault, match=r"core \(1, 0\) copies to the pipe from \(0, 0\).*it is not its source"):
        run(parse(text), pipe_arrays())


def test_only_receivers_receive():
    text = pipes(READ + guarded("src", RECEIVE) + guarded("dst", RECEIVE))
    with pytest.raises(Fault, match=r"core \(0, 0\) copies from the pipe .*it is none of its receivers"):
        run(parse(text), pipe_arrays())


def test_a_source_waits_for_its_receivers():
    text = pipes(READ.replace("scf.if %is_source", "scf.if %always") + guarded("src", SEND))
    text = text.replace("    %is_source =", "    %always = arith.constant true\n    %is_source =")
    with pytest.raises(Deadlock, match=r"waits until the receivers \[\(1, 0\)\] of the pipe .* ask for block 0"):
        run(parse(text), pipe_arrays())


def test_a_receiver_waits_for_the_source():
    with pytest.raises(Deadlock, match=r"waits for block 0 of the pipe .*, 0 were sent"):
        run(parse(pipes(READ + guarded("dst", RECEIVE))), pipe_arrays())


def test_a_pipe_needs_its_cores():
    text = pipes(READ + guarded("src", SEND) + guarded("dst", RECEIVE), destinations="[[1, 0], [2, 0]]")
    with pytest.raises(Fault, match=r"needs core \(2, 0\), which the grid does not have"):
        run(parse(text), pipe_arrays())
