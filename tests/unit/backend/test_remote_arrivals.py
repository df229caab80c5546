"""Device code (SASS) of arrivals at other CTAs' mbarriers, which no text before it shows."""

# covers: tlx-weaken-remote-arrivals

import re
import subprocess
import tempfile
from pathlib import Path

import pytest
from backend_kernels import needs_triton

from tests.gallery.synchronisation.cluster_runs import multicast, total
from tests.gallery.synchronisation.lowered_clusters import specialization
from tests.versions import INSTALLED
from tlx_xdsl.backend import BackendOptions, compile_ttgir
from tlx_xdsl.runtime.driver.compilation import compile_text

pytestmark = needs_triton

ARRIVAL = "SYNCS.ARRIVE.TRANS64.RED"
"""An arrival at an mbarrier of any CTA of the cluster."""
SLOW = ("MEMBAR.ALL.GPU", "ERRBAR")
"""What waits for all accesses to reach the L2 cache."""
MANY = 64
"""Turns of a loop that is not unrolled."""


def sass(case, change=lambda text: text) -> list[str]:
    """The lines of a kernel's device code."""
    from triton import knobs

    wanted = specialization(case)
    text = compile_text(case.kernel.source, wanted, triton_version=INSTALLED).ttgir
    cubin = compile_ttgir(change(text), BackendOptions(wanted.target, wanted.num_warps)).cubin
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(cubin)
        command = [knobs.nvidia.nvdisasm.path, "-c", file.name]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def innermost_loop(lines: list[str], instruction: str) -> str:
    """The shortest loop with that instruction: from a label to a jump back to it."""
    labels = {found[1]: at for at, line in enumerate(lines) if (found := re.match(r"\s*(\.L_x_\d+):", line))}
    loops = [
        lines[labels[found[1]] : at + 1]
        for at, line in enumerate(lines)
        if (found := re.search(r"BRA\S* .*`\((\.L_x_\d+)\)", line)) and labels[found[1]] < at
    ]
    return "\n".join(min((loop for loop in loops if any(instruction in line for line in loop)), key=len))


def test_the_loop_of_a_matrix_product_waits_for_no_memory():
    loop = innermost_loop(sass(multicast()), "HGMMA")
    assert loop.count(ARRIVAL) == 2
    assert not [text for text in (*SLOW, "MEMBAR", "CCTL") if text in loop]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda text: text, {"MEMBAR.ALL.CTA"}),
        # This is what is not done: an arrival that releases all.
        (
            lambda text: text.replace("relaxed.cluster.shared::cluster", "release.cluster.shared::cluster"),
            {"MEMBAR.ALL.CTA", *SLOW},
        ),
    ],
)
def test_a_fence_for_shared_memory_does_not_wait_for_global_memory(change, found):
    loop = innermost_loop(sass(total(MANY), change), ARRIVAL)
    assert loop.count(ARRIVAL) == 2
    assert {text for text in ("MEMBAR.ALL.CTA", *SLOW) if text in loop} == found


def test_acquiring_shared_memory_costs_no_instruction():
    fence = "fence.acquire.sync_restrict::shared::cluster.cluster;"
    texts: list[str] = []

    def without(text):
        texts.append(text)
        return text.replace(fence, "// no fence")

    one, other = (
        re.findall(r"/\*\w{4}\*/ +((?:@\S+ +)?(?!NOP)[A-Z][^\s;]+)", "\n".join(sass(total(MANY), change)))
        for change in (lambda text: text, without)
    )
    assert fence in texts[0]
    assert len(one) > 100
    assert sorted(one) == sorted(other)
