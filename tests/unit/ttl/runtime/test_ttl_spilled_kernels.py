"""Kernels with more values alive than there are DST registers: what the compiler keeps in circular buffers."""

import importlib.util

import ml_dtypes
import numpy as np
import pytest

from tests.fuzz.ttl import has_compiler
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.diagnostics import collected_diagnostics
from tlx_xdsl.ttl.runtime import Options, compile_kernel, run, specs_of

MACHINES = ["tensors", "ttkernel", *(["cpp"] if has_compiler() else [])]
SOURCE = """\
import tlx_xdsl.language.ttl as ttl


@ttl.kernel({options})
def tree(a, b, out):
    a_cb = ttl.make_circular_buffer_like(a, shape=(2, {columns}), buffer_factor={blocks})
    b_cb = ttl.make_circular_buffer_like(b, shape=(2, {columns}), buffer_factor={blocks})
    out_cb = ttl.make_circular_buffer_like(out, shape=(2, {columns}), buffer_factor={blocks})

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as x, b_cb.reserve() as y:
            ttl.copy(a[0:2, 0:{columns}], x).wait()
            ttl.copy(b[0:2, 0:{columns}], y).wait()

    @ttl.compute()
    def compute():
        with a_cb.wait() as x, b_cb.wait() as y, out_cb.reserve() as o:
            {body}
            o.store({result})

    @ttl.datamovement()
    def write():
        with out_cb.wait() as o:
            ttl.copy(o, out[0:2, 0:{columns}]).wait()
"""


def leaves(count, point=".0"):
    """Values that all are read by the next one and, in reverse, by a sum at the end: all are alive at once."""
    return [f"v{n} = v{n - 1} * {'xy'[n % 2]} - {n}{point}" for n in range(1, count)]


def kernel_of(tmp_path, count, *, columns=2, blocks=2, options="", dtype=np.float32):
    """The kernel, and what it computes of numbers of a type."""
    lines = ["v0 = x + y", *leaves(count, ".0" if dtype == np.float32 else "")]
    result = "x"
    for n in reversed(range(count)):
        result = f"v{n} - ({result}) * x"
    text = SOURCE.format(
        options=options, columns=columns, blocks=blocks, body="\n            ".join(lines), result=result
    )
    path = tmp_path / "spilled.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("spilled", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def expected(x, y):
        names = {"x": x.astype(dtype), "y": y.astype(dtype)}
        exec("\n".join(lines), names)
        return eval(result, names)

    return module.tree, expected


def arrays_of(columns=2, dtype=np.float32):
    random = np.random.default_rng(3)
    a, b = (random.uniform(-1, 1, (64, 32 * columns)).astype(dtype) for _ in range(2))
    return a, b, np.full_like(a, np.nan)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("count", [5, 12])
def test_f32_loses_nothing(tmp_path, machine, count):
    kernel, expected = kernel_of(tmp_path, count)
    a, b, out = arrays_of()
    with collected_diagnostics() as said:
        run(kernel, a, b, out, machine=machine)
    assert [each.severity for each in said] == (["warning"] if machine != "tensors" else [])
    np.testing.assert_array_equal(out, expected(a, b))


@pytest.mark.parametrize(("options", "is_exact"), [("fp32_dest_acc_en=True", True), ("", False)])
def test_bf16_is_rounded_where_registers_have_16_bits(tmp_path, options, is_exact):
    kernel, expected = kernel_of(tmp_path, 12, options=options)
    a, b, out = arrays_of(dtype=ml_dtypes.bfloat16)
    with collected_diagnostics() as said:
        run(kernel, a, b, out)
    assert len(said) == 1
    wanted = expected(a, b)
    assert (out == wanted.astype(ml_dtypes.bfloat16)).all() == is_exact
    np.testing.assert_allclose(out.astype(np.float32), wanted, atol=0.02 * np.abs(wanted).max())


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_integers_stay_integers(tmp_path, machine, dtype):
    """No f32 number is between: these need all 32 bits, and wrap around."""
    kernel, expected = kernel_of(tmp_path, 6, dtype=dtype)
    a, b = np.random.default_rng(3).integers(0, 2**31 - 1, (2, 64, 64)).astype(dtype)
    out = np.zeros_like(a)
    with collected_diagnostics() as said:
        run(kernel, a, b, out, machine=machine)
    assert len(said) == (machine != "tensors")
    np.testing.assert_array_equal(out, expected(a, b))


def test_the_warning_names_the_values_and_what_helps(tmp_path):
    kernel, _ = kernel_of(tmp_path, 5)
    with collected_diagnostics() as said:
        compile_kernel(kernel, specs_of(kernel, arrays_of()))
    (warning,) = said
    assert warning.message.startswith("4 DST registers are too few for this computation: ")
    assert warning.location.line == 24
    assert any(note.startswith("spilled: ") and "spilled.py:2" in note for note in warning.notes)
    assert "dst_full_sync_en" in warning.notes[-1]
    with collected_diagnostics() as said:
        compile_kernel(kernel_of(tmp_path, 5, options="dst_full_sync_en=True")[0], specs_of(kernel, arrays_of()))
    assert not said


def test_what_is_spilled_is_in_the_budget_and_the_manifest(tmp_path):
    kernel, _ = kernel_of(tmp_path, 12)
    with collected_diagnostics():
        buffers = compile_kernel(kernel, specs_of(kernel, arrays_of())).manifest["cbs"]
    assert len(buffers) > 3
    assert sum(each["bytes"] for each in buffers) < 400_000
    # The user's buffers fit, these do not any more.
    kernel, _ = kernel_of(tmp_path, 12, columns=15, blocks=4)
    with pytest.raises(CompilationError, match="B of a core's memory") as caught, collected_diagnostics():
        compile_kernel(kernel, specs_of(kernel, arrays_of(15)))
    assert "the compiler's own" in str(caught.value)
    assert caught.value.location is not None


def test_too_many_buffers(tmp_path):
    kernel, _ = kernel_of(tmp_path, 40)
    with pytest.raises(CompilationError, match="a core has 32 circular buffers") as caught, collected_diagnostics():
        compile_kernel(kernel, specs_of(kernel, arrays_of()), Options(capacity=2))
    assert caught.value.location.filename.endswith("spilled.py")
