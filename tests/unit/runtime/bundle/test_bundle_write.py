"""Bundles of kernels, from Python and from the command line; what can't be bundled is refused before the compile."""

import ctypes
import json
import re
from typing import Any, NamedTuple

import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.runtime.bundle import bundles
from tests.unit.runtime.bundle.bundles import ADD, EXAMPLE, add, compile_c, cuda_include, has_c_compiler, transposed
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import Fixed
from tlx_xdsl.runtime import TensorDescriptor, load, write_bundle
from tlx_xdsl.runtime.bundle.c_launcher import in_comment
from tlx_xdsl.runtime.launch.cuda_driver import CudaDriver
from tlx_xdsl.tools.tlx import main

# Kernels are read by the frontend, not run by Python.
# pyright: basic

FILE = bundles.__file__


@pytest.fixture
def no_gpu(make_cuda):
    return CudaDriver(make_cuda(devices=0).library)


def parameter_sizes(ptx, entry):
    """Bytes of the kernel's parameters as its PTX declares them."""
    (declared,) = re.findall(rf"\.entry {entry}\((.*?)\)", ptx, re.DOTALL)
    found = []
    for line in re.findall(r"\.param\s+(.*?)(?:,\s*$|$)", declared, re.MULTILINE):
        array = re.search(r"\.b8 \w+\[(\d+)\]", line)
        found.append(int(array[1]) if array else int(re.match(r"\.[a-z](\d+)", line)[1]) // 8)
    return found


# --- what is written ----------------------------------------------------------------------------------------------


@pytest.mark.backend
def test_the_command_line_and_python_write_the_same(tmp_path, capsys, no_gpu):
    arguments = [f"{FILE}:add", *(word for name, type_ in ADD.items() for word in ("--signature", f"{name}={type_}"))]
    assert main(["compile", *arguments, "--target", "sm_80", "--bundle", str(tmp_path / "a")]) == 0
    shown = capsys.readouterr().out
    path = write_bundle(tmp_path / "b", add, ADD, target="sm_80")
    assert path == tmp_path / "b" / "add"
    names = ["add.c", "add.cubin", "add.h", "add.ptx", "add.ttgir", "manifest.json"]
    assert sorted(each.name for each in path.iterdir()) == names
    for name in names:
        assert str(tmp_path / "a" / "add" / name) in shown
    first, second = load(tmp_path / "a", driver=no_gpu).manifest, load(tmp_path / "b", driver=no_gpu).manifest
    assert (first.arguments, first.constants, first.build) == (second.arguments, second.constants, second.build)
    assert not (tmp_path / "build").exists()
    assert second.constants == {"BLOCK": 1024}
    assert [argument.type for argument in second.arguments] == list(ADD.values())
    assert (second.target, second.num_warps, second.shared, second.entry) == ("sm_80", 4, 0, "add")


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """A folder with the bundle of the example GEMM, and below it `build` with what is written without a bundle."""
    folder = tmp_path_factory.mktemp("example")
    options = ["--bundle", str(folder), "-o", str(folder / "build"), "--emit", "json,ptx,ttgir", "-q"]
    assert main(["compile", f"{EXAMPLE}:matmul", *options]) == 0
    return folder


@pytest.mark.backend
def test_the_example_s_bundle(example, no_gpu):
    kernel = load(example, driver=no_gpu)
    output = example / "build"
    written = json.loads((output / "matmul.json").read_text())
    manifest = kernel.manifest
    assert [argument.type for argument in manifest.arguments] == list(written["arguments"].values())
    assert list(manifest.tensordesc_meta) == written["tensordesc_meta"]
    for name in ("num_warps", "num_ctas", "cluster", "shared", "global_scratch_size", "triton_version", "target"):
        assert getattr(manifest, name) == written[name], name
    assert manifest.build["assembler"] == written["assembler"]
    assert written["assembler"].startswith("ptxas ")
    assert manifest.constants == {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "NUM_STAGES": 3, "GROUP_M": 8}
    ptx = (kernel.path / "matmul.ptx").read_text()
    assert ptx == (output / "matmul.ptx").read_text()
    assert (kernel.path / "matmul.ttgir").read_text() == (output / "matmul.ttgir").read_text()
    assert (kernel.path / "matmul.cubin").read_bytes().startswith(b"\x7fELF")
    assert parameter_sizes(ptx, "matmul") == bundles.sizes_of(manifest)


@pytest.mark.backend
@pytest.mark.skipif(not has_c_compiler() or cuda_include() is None, reason="there is no C compiler or no cuda.h")
def test_the_example_s_c_code(example, tmp_path, make_cuda, make_tensor):
    """Down to the binary in the C source, and the same launch from C and from Python."""
    kernel = load(example, driver=CudaDriver(object()))
    manifest, binary = kernel.manifest, (kernel.path / "matmul.cubin").read_bytes()
    fakes = []
    for _ in ("Python", "C"):
        cuda = make_cuda(parameter_sizes=bundles.sizes_of(manifest), context=0xC0)
        cuda._cuModuleLoadData = lambda out, image, cuda=cuda: keep(cuda, out, image, len(binary))
        cuda._cuModuleGetFunction = lambda out, module, name: out.__setitem__(0, 0xF0 if name == b"matmul" else 0)
        fakes.append(cuda)
    a, b, c = (
        make_tensor(rows=r, columns=k, address=x) for r, k, x in ((256, 128, 64), (128, 512, 128), (256, 512, 192))
    )
    shapes = zip((a, b, c), ([64, 64], [64, 256], [64, 256]), strict=True)
    given = (*(TensorDescriptor.from_tensor(tensor, box) for tensor, box in shapes), 256, 512, 128)
    load(example, driver=CudaDriver(fakes[0].library))(4, *given)
    program = bundles.CProgram(kernel.path, fakes[1], manifest)
    assert program.load() == program.launch((4, 1, 1), *given) == 0
    python, c = fakes
    assert python.loaded == c.loaded == [binary]
    assert python.launches == c.launches
    assert python.tensor_maps == c.tensor_maps
    assert python.function_attributes == c.function_attributes == [(8, manifest.shared)]
    assert python.launches[0].block == (384, 1, 1)
    compile_c([kernel.path / "matmul.c"], tmp_path / "matmul.o", "-c", language="c++")


def keep(cuda, out, image, size):
    cuda.loaded.append(ctypes.string_at(image, size))
    out[0] = 0xD0


@pytest.mark.backend
def test_scratch_memory_and_options(tmp_path, no_gpu):
    signature = {"x": "*fp32:16", "out": "*fp32"}
    write_bundle(tmp_path, transposed, signature, {"ROWS": 64, "COLUMNS": 96}, name="t", num_warps=8)
    manifest = load(tmp_path, "t", driver=no_gpu).manifest
    # Two tensor maps of 128 bytes.
    assert (manifest.global_scratch_size, manifest.global_scratch_align) == (256, 128)
    assert (manifest.num_warps, manifest.kernel, manifest.name) == (8, "transposed", "t")
    assert "cuMemAllocAsync" in (tmp_path / "t" / "t.c").read_text()


@pytest.mark.backend
def test_ctas_that_share_a_tile_and_launch_flags(tmp_path, no_gpu):
    arguments = [f"{FILE}:add", *(word for name, type_ in ADD.items() for word in ("--signature", f"{name}={type_}"))]
    flags = ["--launch-pdl", "--launch-cooperative-grid", "--num-ctas", "2", "--bundle-name", "pair", "-q"]
    assert main(["compile", *arguments, "--bundle", str(tmp_path), *flags]) == 0
    manifest = load(tmp_path, driver=no_gpu).manifest
    assert (manifest.num_ctas, manifest.cluster) == (2, [2, 1, 1])
    assert manifest.launch_pdl
    assert manifest.launch_cooperative_grid


# --- what is refused ----------------------------------------------------------------------------------------------


def complaint(capsys, *arguments):
    assert main(["compile", *arguments]) == 1
    return capsys.readouterr().err


KERNELS = """\
import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def pair(both, both_0):
    tl.store(both_0, tl.load(both[0]))


@tlx_xdsl.jit
def tile(desc):
    desc.store([0, 0], desc.load([0, 0]))


@tlx_xdsl.jit
def größe(x):
    tl.store(x, 1.0)


TLX_COMPILE = {
    "pair": {"signature": {"both": "(*fp32, i32)", "both_0": "*fp32"}},
    "tile": {"signature": {"desc": "tensordesc<fp16[64, 64]>"}, "target": "sm_80"},
    "größe": {"signature": {"x": "*fp32"}},
}
"""


@pytest.mark.backend
@pytest.mark.parametrize(
    ("kernel", "options", "message"),
    [
        (
            "pair",
            ["--bundle", "out"],
            "kernels.py:6:10: error: the argument 'both' is a tuple with an item that a bundle calls 'both_0'",
        ),
        ("tile", ["--bundle", "out"], "kernels.py:11:10: error: a tensor descriptor as the argument 'desc' needs TMA"),
        ("größe", ["--bundle", "out"], "error: the name of a bundle is an identifier of C, found 'größe'"),
        (
            "tile",
            ["--bundle", "out", "--bundle-name", "a/b"],
            "the name of a bundle is an identifier of C, found 'a/b'",
        ),
        ("tile", ["--bundle", "out", "-o", "-", "--emit", "ttgir"], "error: --output -: text is printed"),
        ("tile", ["--bundle-name", "x"], "error: --bundle-name: there is no bundle that it is for, add --bundle DIR"),
        ("tile", ["--launch-pdl"], "error: --launch-pdl: there is no bundle"),
    ],
)
def test_what_can_t_be_bundled(tmp_path, monkeypatch, capsys, kernel, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels.py").write_text(KERNELS, encoding="utf-8")
    assert message in complaint(capsys, f"kernels.py:{kernel}", *options)
    assert [path.name for path in tmp_path.iterdir() if path.name != "__pycache__"] == ["kernels.py"]


class Sizes(NamedTuple):
    rows: Any
    by_rows: Any
    name: Any = None


@tlx_xdsl.jit
def with_sizes(out, sizes):
    tl.store(out + tl.arange(0, 16), sizes.by_rows[1], tl.arange(0, 16) < sizes.rows)


@pytest.mark.backend
def test_items_of_a_tuple_are_arguments(tmp_path, no_gpu):
    """Each item that is not fixed has a name that C takes, and the order of the parameters in the PTX."""
    signature = {"out": "*i32", "sizes": Sizes("i32", ("i64", "i32"), Fixed(None))}
    path = write_bundle(tmp_path, with_sizes, signature)
    bundle = load(tmp_path, "with_sizes")
    passed = [(each.name, each.type) for each in bundle.manifest.arguments]
    assert passed == [("out", "*i32"), ("sizes_rows", "i32"), ("sizes_by_rows_0", "i64"), ("sizes_by_rows_1", "i32")]
    sizes = parameter_sizes((path / "with_sizes.ptx").read_text(), bundle.manifest.entry)
    assert sizes[: len(passed)] == [8, 4, 8, 4]
    assert "sizes_by_rows_1" in (path / "with_sizes.h").read_text()


@pytest.mark.backend
def test_scratch_memory_does_not_go_with_an_early_start(tmp_path):
    from tlx_xdsl.runtime.bundle.write import LaunchFlags

    signature = {"x": "*fp32:16", "out": "*fp32"}
    with pytest.raises(
        CompilationError, match=r"the kernel 'transposed' can't be bundled: .*share with its predecessor"
    ):
        write_bundle(tmp_path, transposed, signature, {"ROWS": 64, "COLUMNS": 96}, flags=LaunchFlags(pdl=True))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.backend
def test_a_folder_with_other_files_is_left_alone(tmp_path, capsys):
    (tmp_path / "add").mkdir()
    (tmp_path / "add" / "notes").write_text("mine")
    arguments = [word for name, type_ in ADD.items() for word in ("--signature", f"{name}={type_}")]
    said = complaint(capsys, f"{FILE}:add", *arguments, "--bundle", str(tmp_path), "-q")
    assert said == f"{tmp_path / 'add'}: error: there is something here that is no bundle, and it is not replaced\n"


def test_comments_of_the_header_hold_no_comment():
    assert in_comment("a */ b /* c\nd") == "a * / b / * c d"
