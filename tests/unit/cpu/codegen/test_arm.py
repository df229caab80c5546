"""Kernels as machine code of 64-bit Arm: made on any machine, and run in QEMU where that is installed."""

# covers: target.cpu

import numpy as np
import pytest

from tests.oracle import ours
from tests.unit.cpu.codegen.arm import emulator, lowered_for_arm, run_on_arm
from tests.unit.cpu.codegen.native import compiled
from tests.unit.cpu.linalg.side_by_side import _copied, _spread
from tests.unit.cpu.linalg.test_oracle_kernels import REFUSED
from tests.unit.interpreter.oracle import checking, running
from tests.unit.interpreter.oracle.test_oracle_by_value import CHECKS
from tests.unit.volume import is_full
from tlx_xdsl.cpu.codegen.host import NATIVE, named_host

KERNELS = [check for check in (getattr(each, "values", (each,))[0] for each in CHECKS) if check.kernel not in REFUSED]


def module_of(check):
    return ours.launchable(running.cases()[check.kernel], capability=running.CAPABILITIES.get(check.kernel, 90))


@pytest.mark.parametrize("check", KERNELS if is_full() else KERNELS[5::40], ids=lambda check: check.kernel)
def test_a_kernel_becomes_machine_code(check):
    made, _ = lowered_for_arm(module_of(check))
    # The machine of an ELF file: 183 is AArch64.
    assert made.object_code()[18:20] == (183).to_bytes(2, "little")
    assert "ret" in made.assembly()


@pytest.mark.quick
def test_arm_has_a_name_on_every_machine():
    arm = named_host("aarch64")
    assert (arm.triple, arm.cpu, arm.attributes) == ("aarch64-unknown-linux-gnu", "generic", "")
    assert arm.features.vector_bytes == 16
    assert named_host(NATIVE).triple


@pytest.mark.skipif(emulator() is None, reason="neither QEMU for Arm nor its compiler is installed")
@pytest.mark.parametrize("check", KERNELS if is_full() else KERNELS[5::40], ids=lambda check: check.kernel)
def test_a_kernel_gives_the_same_bits_as_here(check, tmp_path):
    if check.prepare is not None:
        pytest.skip("its arrays hold addresses")
    rng = np.random.default_rng([1, *check.kernel.encode()])
    _, values = checking._spread({name: make(rng) for name, make in check.arguments.items()})
    module = module_of(check)
    here, there = ([part for value in values for part in _spread(_copied(value))] for _ in range(2))
    assert compiled(module).run(check.grid, here) is None
    assert run_on_arm(module, check.grid, there, tmp_path) == 0
    for pair in zip(here, there, strict=True):
        if isinstance(pair[0], np.ndarray):
            np.testing.assert_array_equal(*map(with_one_nan, pair))


def with_one_nan(values):
    """The bits; a NaN that an operation makes is negative on x86 and positive on Arm."""
    if values.dtype.kind not in "iub":
        values = np.where(np.isnan(values), np.nan, values).astype(values.dtype)
    return values.view(np.uint8)
