"""Sources of specialised kernels: they compile to what the passes have made, and read like what authors write."""

import re

import numpy as np
import pytest

from tests.gallery.plain.families import FAMILIES
from tests.unit import volume
from tests.unit.decompile.equal_ttgir import difference_from_source, source_of, specialised, table_of
from tests.unit.decompile.reversing import compiled, imported, kernel_of
from tlx_xdsl import TensorDescriptor
from tlx_xdsl.runtime.specialize.specialized import warp_specialized
from tlx_xdsl.transforms.warp_specialize.specialize import Decisions

SOME = ["delta_state", "matmul_gathered", "matmul_persistent"]
"""One consumer with several loops, copies of threads, and a loop over tiles whose end is staged."""


@pytest.mark.parametrize("name", sorted(FAMILIES) if volume.is_full() else SOME)
def test_the_source_compiles_to_the_same_module(name, tmp_path):
    family = FAMILIES[name]
    # Two slots fit the memory of any kernel.
    module = specialised(family, depth=2)
    path = tmp_path / f"{name}.py"
    again = compiled(*kernel_of(imported(source_of(family, module), path), path))
    assert difference_from_source(module, again) is None
    if volume.is_full():
        assert difference_from_source(module, again, passes=True) is None


ATTENTION = FAMILIES["attention"]


@pytest.fixture(scope="module")
def attention(tmp_path_factory):
    """The specialised attention: its module, its source, and the file's kernel."""
    module = specialised(ATTENTION)
    return module, source_of(ATTENTION, module), tmp_path_factory.mktemp("attention")


def test_two_groups_in_turns_compile_to_the_same_ttgir(attention):
    module, text, folder = attention
    path = folder / "attention.py"
    again = compiled(*kernel_of(imported(text, path), path))
    assert difference_from_source(module, again) is None
    assert difference_from_source(module, again, passes=True) is None


@pytest.mark.parametrize("causal", [True, False] if volume.is_full() else [True])
def test_joined_programs_compile_to_the_same_ttgir(causal, tmp_path):
    """Three consumers in turns, tiles in another order, turns that others have more, stores of some programs alone."""
    constants = {"BLOCK_M": 64, "HEAD_DIM": 64, "CAUSAL": causal}
    module = specialised(ATTENTION, constants)
    text = source_of(ATTENTION, module, constants)
    path = tmp_path / "joined.py"
    again = compiled(*kernel_of(imported(text, path), path))
    assert difference_from_source(module, again) is None
    assert difference_from_source(module, again, passes=True) is None
    assert "replicate=3, registers=160" in text
    assert text.count("for rest in range(") == causal
    assert "if program < grid_x:" in text
    assert ("is_back" in text) == causal


def test_loops_that_programs_share_compile_to_the_same_ttgir(tmp_path):
    """Memory of the launch, which its function makes beside the first array, and the grid with all parts."""
    module = specialised(FAMILIES["matmul"], split=4)
    text = source_of(FAMILIES["matmul"], module)
    path = tmp_path / "shared.py"
    made = imported(text, path)
    again = compiled(*kernel_of(made, path))
    assert difference_from_source(module, again) is None
    assert difference_from_source(module, again, passes=True) is None
    assert 'before = tl.atomic_add(counter, 1, sem="acq_rel", scope="gpu")' in text
    a, b, c = (np.zeros((256, 256), np.float16) for _ in range(3))
    grid, values = made.launch_arguments((4,), a, b, c, 256, 256, 256, 256, 1, 256, 1, 256)
    assert grid == (16, 1, 1)
    assert (values[-2].dtype, values[-2].size) == (np.float32, 16 * 128 * 128)
    assert (values[-1].dtype, values[-1].tolist()) == (np.int32, [0] * (values[-1].size))


def test_clusters_compile_to_the_same_ttgir(tmp_path):
    """Loads for one CTA and for several, arrivals at the other one's barriers, and the cluster of the launch."""
    module = specialised(FAMILIES["matmul"], cluster=2)
    text = source_of(FAMILIES["matmul"], module)
    path = tmp_path / "clusters.py"
    again = compiled(*kernel_of(imported(text, path), path))
    assert difference_from_source(module, again) is None
    assert difference_from_source(module, again, passes=True) is None
    assert "tlx.barrier_arrive(tlx.remote_view(far[" in text
    assert text.count("multicast_targets=[") == 2
    assert '"cluster": (2, 1, 1)' in text
    other = tmp_path / "other.py"
    for line, changed in (("[other_rank]", "[rank]"), ("[0, 1]", "[0]"), ("if is_same", "if is_owner")):
        again = compiled(*kernel_of(imported(text.replace(line, changed, 1), other), other))
        assert difference_from_source(module, again) is not None, line


@pytest.mark.parametrize(
    ("line", "other"),
    [
        # In a consumer; in the producer; a barrier; what is captured.
        ("acc = tlx.async_dot_wait(0, acc)", "acc = tlx.async_dot_wait(1, acc)"),
        ("tlx.barrier_expect_bytes(q_full[0], 32768)", "tlx.barrier_expect_bytes(q_full[0], 16384)"),
        ("arrive_count=2", "arrive_count=1"),
        ("tl.exp2(", "tl.exp("),
    ],
)
def test_another_source_is_another_module(attention, line, other):
    module, text, folder = attention
    assert line in text
    path = folder / "other.py"
    again = compiled(*kernel_of(imported(text.replace(line, other, 1), path), path))
    assert difference_from_source(module, again) is not None


def test_tasks_read_like_those_of_authors(attention):
    _, text, _ = attention
    lines = text.splitlines()
    assert max(map(len, lines)) <= 100
    # Both copies of the consumer are one task, which says the number of its copy by name.
    assert text.count("tlx.async_task(") == 2
    assert "        with tlx.async_task(num_warps=4, replicate=2, registers=240):\n            replica = " in text
    # What stands before the tasks is used in them, and a ring's slot and phase are one call.
    assert re.search(
        r"\n            for start in range\(.*\):\n                stage, phase = tlx.get_bufidx_phase\(", text
    )
    assert re.search(r"async_descriptor_store\(\s+o_desc, o_staging\[replica\], \[batch, head, off_block", text)
    # Reasons stand at what they are about.
    assert "# TMA stores from here, while the task goes on\n    o_staging = tlx.local_alloc(" in text
    assert "tl.max(" in text


# The host's part -----------------------------------------------------------------------------------------------------


def written(name, **decisions):
    table = table_of(FAMILIES[name])
    made = warp_specialized(FAMILIES[name].kernel, table.signature, table.constexprs, Decisions(**decisions))
    assert made.refused is None
    return made


@pytest.mark.parametrize("cluster", [None, 2])
def test_the_files_own_launch_is_that_of_the_runtime(tmp_path, cluster):
    made = written("matmul", persistent=True, cluster=cluster)
    file = imported(made.source, tmp_path / "matmul.py")
    a, b, c = (np.zeros(shape, np.float16) for shape in ((300, 64), (64, 200), (300, 200)))
    plain = (a, b, c, 300, 200, 64, 64, 1, 200, 1, 200, 1)
    grid, arguments = file.launch_arguments((6,), *plain)
    constants = {name: value for name, value in table_of(FAMILIES["matmul"]).constexprs.items() if name.isupper()}
    expected = made.arguments((6,), *plain, **constants)
    assert (*grid, 1, 1) == expected[0]
    assert list(arguments) == expected[1]
    # Fewer programs than tiles.
    assert file.launch_arguments((6,), *plain, programs=4)[0] == (4,)
    # Clusters are full, also where there is a tile too few, or a program too many.
    assert (
        file.launch_arguments((5,), *plain)[0]
        == made.arguments((5,), *plain, **constants)[0][:1]
        == (5 + bool(cluster),)
    )
    assert file.launch_arguments((6,), *plain, programs=5)[0] == (5 - bool(cluster),)


def test_a_launch_that_the_kernel_is_not_for_is_refused(tmp_path):
    file = imported(written("matmul").source, tmp_path / "matmul.py")
    empty = np.zeros((0, 64), np.float16)
    with pytest.raises(ValueError, match="matmul is not for this launch: M > 0 does not hold"):
        file.launch_arguments((0,), empty, empty, empty, 0, 64, 64, 64, 1, 64, 1, 64, 1)


def test_descriptors_of_the_plain_launch_get_the_kernels_blocks(tmp_path):
    file = imported(written("matmul_descriptors").source, tmp_path / "matmul.py")
    a = TensorDescriptor.from_tensor(np.zeros((256, 64), np.float16), [128, 64])
    _, (first, *_) = file.launch_arguments((2,), a, a, a, 256, 256, 64)
    assert (first.block_shape, first.shape, first.base is a.base) == ([64, 64], [256, 64], True)
