"""Random nets of pipes, on the three machines and with numpy."""

from __future__ import annotations

import random
import shutil

import numpy as np
import pytest

from tests.fuzz.ttl_pipes import Nets
from tests.unit import volume
from tlx_xdsl.ttl.runtime import MACHINES, Options, Prepared

COUNT = 150 if volume.is_full() else 8


def check(nets: Nets, machine: str, seed: int) -> None:
    a, expected = nets.arrays()
    out = np.zeros_like(expected)
    prepared = Prepared(nets.kernel(), [a, out], machine, Options(arch=nets.arch))
    prepared.run([a, out], **({} if machine == "cpp" else {"schedule": "random", "seed": seed}))
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_nets(seed: int) -> None:
    nets = Nets(random.Random(seed))
    has_all = volume.is_full() and shutil.which("g++") is not None
    for machine in MACHINES if has_all else ("ttkernel", "tensors")[seed % 2 :][:1]:
        check(nets, machine, seed)
