"""Kernels as machine code of other CPUs and systems: made on any machine, and run where something can run them.

QEMU runs the code for Linux on Arm and on x86-64 of every level but AVX-512. The loader of this process takes objects
of macOS and Windows too: those for x86-64 run in it.
"""

# covers: target.cpu

import ctypes
import re

import numpy as np
import pytest

from tests.oracle import ours
from tests.unit.cpu.codegen.emulated import MODELS, lowered_for, missing, run_on
from tests.unit.cpu.codegen.native import Native, compiled
from tests.unit.cpu.codegen.object_files import is_for, undefined
from tests.unit.cpu.linalg.side_by_side import _copied, _spread
from tests.unit.cpu.linalg.test_oracle_kernels import REFUSED
from tests.unit.interpreter.oracle import checking, running
from tests.unit.interpreter.oracle.test_oracle_by_value import CHECKS
from tests.unit.volume import is_full
from tlx_xdsl.cpu.codegen import llvm
from tlx_xdsl.cpu.codegen.host import NATIVE, host, named_host
from tlx_xdsl.cpu.codegen.llvm import LIBRARY_CALLS, Loaded
from tlx_xdsl.cpu.codegen.module import CpuObject
from tlx_xdsl.errors import InputError

KERNELS = [check for check in (getattr(each, "values", (each,))[0] for each in CHECKS) if check.kernel not in REFUSED]
RUN = [check for check in KERNELS if check.prepare is None]
"""Kernels whose arrays hold no addresses."""
UNFUSED = {"functions": 1, "gelu": 2, "small_helpers": 1, "flips_and_swizzles": 2}
"""Kernels whose results differ on CPUs without fused multiplication and addition, and by how many units of an element:
polynomials take two roundings for one there. Everything else has the same bits on all CPUs."""

a_few = pytest.mark.parametrize("check", KERNELS if is_full() else KERNELS[5::100], ids=lambda check: check.kernel)
on_avx2 = pytest.mark.skipif(
    not host().triple.startswith("x86_64") or not host().has("avx2"), reason="this CPU is no x86-64 with AVX2"
)


def module_of(check):
    return ours.launchable(running.cases()[check.kernel], capability=running.CAPABILITIES.get(check.kernel, 90))


def arguments_of(check):
    """Two copies of the arguments of a launch."""
    rng = np.random.default_rng([1, *check.kernel.encode()])
    _, values = checking._spread({name: make(rng) for name, make in check.arguments.items()})
    return ([part for value in values for part in _spread(_copied(value))] for _ in range(2))


def assert_same(here, there, units=0):
    for one, other in zip(here, there, strict=True):
        if isinstance(one, np.ndarray) and not np.array_equal(with_one_nan(one), with_one_nan(other)):
            assert units, "the bits differ"
            apart = np.abs(one.astype(np.float64) - other.astype(np.float64))
            # These kernels compute in f32, whatever they store.
            single = np.abs(one).astype(np.float32)
            assert (apart <= units * np.spacing(single)).all(), f"{np.max(apart / np.spacing(single))} units"


def with_one_nan(values):
    """The bits; a NaN that an operation makes is negative on x86 and positive on Arm."""
    if values.dtype.kind not in "iub":
        values = np.where(np.isnan(values), np.nan, values).astype(values.dtype)
    return values.view(np.uint8)


# --- object code -----------------------------------------------------------------------------------------------------

NAMES = [*MODELS, "macos-arm64", "macos-x86-64-v2", "windows-arm64", "windows-x86-64", "windows-x86-64-v4"]


@pytest.mark.parametrize("name", NAMES)
@a_few
def test_a_kernel_becomes_an_object_that_calls_what_is_known(name, check):
    made, metadata = lowered_for(name, module_of(check))
    code = made.object_code()
    assert is_for(code, re.sub(r"-(v\d|sve\d+)$", "", name))
    called = undefined(code)
    if "macos" in name:
        assert all(each.startswith("_") for each in called)
        called = {each[1:] for each in called}
    own = {each for each in LIBRARY_CALLS if "windows" in name or not each.startswith("_")}
    assert called <= {*metadata.symbols, *own}
    if name.startswith("windows-x86-64") or not own.isdisjoint(called):
        assert "x86-64" in name


@pytest.mark.quick
def test_every_cpu_has_a_name_on_every_machine():
    arm = named_host("aarch64")
    assert arm == named_host("linux-arm64")
    assert (arm.triple, arm.cpu, arm.attributes) == ("aarch64-unknown-linux-gnu", "generic", "")
    assert arm.features.vector_bytes == 16
    wide = named_host("linux-arm64-sve512")
    assert (wide.attributes, wide.features.vector_bytes, wide.features.sve) == ("+sve", 64, True)
    assert named_host("macos-arm64").triple == "arm64-apple-macosx11.0.0"
    assert named_host("windows-x86-64-v3").features == named_host("linux-x86-64-v3").features
    assert named_host(NATIVE).triple


@pytest.mark.quick
@pytest.mark.parametrize("name", ["arm", "linux", "linux-v3", "macos-arm64-sve256", "windows-x86-64-v5"])
def test_an_unknown_cpu_is_an_error_with_the_known_ones(name):
    with pytest.raises(InputError, match=f"unknown CPU '{name}', expected one of native, .*macos-arm64"):
        named_host(name)


# --- runs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("check", RUN if is_full() else RUN[5::100], ids=lambda check: check.kernel)
def test_a_kernel_gives_the_same_bits_as_here(name, check, tmp_path):
    if (reason := missing(name)) is not None:
        pytest.skip(reason)
    module = module_of(check)
    here, there = arguments_of(check)
    assert compiled(module).run(check.grid, here) is None
    assert run_on(name, module, check.grid, there, tmp_path) == 0
    is_fused = "arm64" in name or name.endswith("v3")
    assert_same(here, there, 0 if is_fused else UNFUSED.get(check.kernel, 0))


@pytest.mark.skipif(missing("linux-arm64-sve256") is not None, reason=str(missing("linux-arm64-sve256")))
def test_code_for_short_vectors_of_sve_runs_on_long_ones(tmp_path, monkeypatch):
    check = next(each for each in RUN if each.kernel == "blocked_product")
    monkeypatch.setitem(MODELS, "linux-arm64-sve256", MODELS["linux-arm64-sve512"])
    here, there = arguments_of(check)
    assert compiled(module_of(check)).run(check.grid, here) is None
    assert run_on("linux-arm64-sve256", module_of(check), check.grid, there, tmp_path) == 0
    assert_same(here, there)


@on_avx2
@pytest.mark.parametrize("system", ["macos", "windows"])
@pytest.mark.parametrize("check", RUN if is_full() else RUN[5::100], ids=lambda check: check.kernel)
def test_an_object_of_another_system_runs_in_this_process(system, check):
    made, metadata = lowered_for(f"{system}-x86-64-v3", module_of(check))
    code = made.object_code()
    here, there = arguments_of(check)
    assert compiled(module_of(check)).run(check.grid, here) is None
    loaded = loaded_here(code, metadata, made.llvm_ir(), system)
    assert Native(CpuObject(code, metadata), loaded).run(check.grid, there) is None
    assert_same(here, there)


def loaded_here(code, metadata, ir, system):
    """Load an object for x86-64; what is called has the calling convention of its system.

    That of macOS is Linux's. Between Windows and Linux, functions of LLVM IR pass each call on.
    """
    binding, prefix = llvm.llvm(), "_" if system == "macos" else ""
    convention = "win64cc " if system == "windows" else ""
    builder = binding.JITLibraryBuilder().add_object_img(code).export_symbol(prefix + metadata.symbol)
    declared = {found[2]: found for found in re.finditer(r"declare (\w+) @(\w+)\(([^)]*)\)", ir)}
    linker = binding.create_lljit_compiler(llvm._machine(host(), 0), use_jit_link=True)
    held = []
    for name in metadata.symbols:
        result, _, types = declared[name].groups()
        types = [each for each in types.split(", ") if each]
        given = ", ".join(f"{each} %a{number}" for number, each in enumerate(types))
        call = f"call {result} inttoptr (i64 {llvm._address_of(name) or silent(held)} to ptr)({given})"
        ends = f"{call} ret void" if result == "void" else f"%r = {call} ret {result} %r"
        text = f"define {convention}{result} @to_{name}({given}) {{ {ends} }}"
        held.append(binding.JITLibraryBuilder().add_ir(text).export_symbol(f"to_{name}").link(linker, f"to_{name}"))
        builder.import_symbol(prefix + name, held[-1][f"to_{name}"])
    if system == "windows":
        builder.import_symbol("_fltused", llvm._address_of("_fltused"))
    linked = builder.link(linker, "kernel")
    parameters = "ptr %arguments, ptr %launch, ptr %scratch"
    call = f"call {convention}i32 inttoptr (i64 {linked[prefix + metadata.symbol]} to ptr)({parameters})"
    text = f"define i32 @enter({parameters}) {{ %r = {call} ret i32 %r }}"
    entry = binding.JITLibraryBuilder().add_ir(text).export_symbol("enter").link(linker, "enter")
    return Loaded((linker, linked, entry, held), entry["enter"])


def silent(held):
    """The address of a function that does nothing."""
    held.append(ctypes.CFUNCTYPE(None)(lambda: None))
    return ctypes.cast(held[-1], ctypes.c_void_p).value
