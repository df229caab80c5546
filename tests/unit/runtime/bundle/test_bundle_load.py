"""Bundles made by hand, loaded and launched on a fake driver; what is damaged or does not fit is refused."""

import dataclasses
import json
import os
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.unit.runtime.bundle.bundles import CUBIN, META, manifest, sizes_of
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime import BundleError, CudaDriverError, TensorDescriptor
from tlx_xdsl.runtime.bundle import folder as folder_module
from tlx_xdsl.runtime.bundle.load import load
from tlx_xdsl.runtime.bundle.manifest import MANIFEST, read_manifest
from tlx_xdsl.runtime.bundle.write import write_files
from tlx_xdsl.runtime.launch.cuda_driver import CudaDriver

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[4]

ARGUMENTS = (("x", "*fp16:16"), ("n", "i32"), ("scale", "fp32"))


def put(folder, *arguments, **changes):
    """Write a bundle into `folder`; returns its manifest."""
    described = manifest(*(arguments or ARGUMENTS), **changes)
    stages = {"cubin": CUBIN, "ptx": b"// ptx", "ttgir": b"module {}"}
    write_files(folder / described.name, described, stages)
    return described


@pytest.fixture
def on(make_cuda, tmp_path):
    """Return what writes a bundle and loads it on a fake driver: (bundle, fake)."""

    def make(*arguments, cuda_options=None, **changes):
        described = put(tmp_path, *arguments, **changes)
        cuda = make_cuda(parameter_sizes=sizes_of(described), **(cuda_options or {}))
        return load(tmp_path, driver=CudaDriver(cuda.library)), cuda

    return make


@pytest.fixture
def no_gpu(make_cuda):
    return CudaDriver(make_cuda(devices=0).library)


# --- what a bundle is ---------------------------------------------------------------------------------------------


def test_a_manifest_is_read_as_it_was_written(tmp_path):
    put(tmp_path, ("x", "*fp16:16"), ("a", "tensordesc<fp16[128, 64]>", META), cluster=[2, 1, 1], constants={"A": [1]})
    path = tmp_path / "sample" / MANIFEST
    found = read_manifest(path, path.read_bytes())
    assert found.arguments[1].descriptor == META
    assert (found.cluster, found.constants, sorted(found.files)) == (
        [2, 1, 1],
        {"A": [1]},
        ["cubin", "header", "ptx", "source", "ttgir"],
    )
    assert found.to_json().encode() == path.read_bytes()


def test_loading_needs_no_gpu_and_launching_says_so(tmp_path, make_cuda):
    put(tmp_path)
    bundle = load(tmp_path, driver=CudaDriver(make_cuda(failures={"cuInit": 100}).library))
    assert bundle.manifest.kernel == "kernel"
    assert repr(bundle) == "<LoadedBundle sample(x: *fp16:16, n: i32, scale: fp32) for sm_90a>"
    with pytest.raises(CudaDriverError, match="CUDA_ERROR_NO_DEVICE"):
        bundle((1,), None, 1, 0.5)


def test_a_launch(on, make_tensor):
    bundle, cuda = on(num_warps=12, shared=60_000, cluster=[2, 1, 1])
    bundle((4, 2), make_tensor(address=0x1230), 7, 0.5, stream=5)
    (launch,) = cuda.launches
    assert (launch.grid, launch.block, launch.shared, launch.stream) == ((4, 2, 1), (384, 1, 1), 60_000, 5)
    assert launch.attributes == [(4, (2, 1, 1))]
    assert launch.parameters[:3] == [struct.pack("<Q", 0x1230), struct.pack("<i", 7), struct.pack("<f", 0.5)]
    assert cuda.loaded == [CUBIN]


def test_arguments_by_name_and_bound(on, make_tensor):
    bundle, cuda = on()
    bundle(1, make_tensor(), 7, 0.5)
    bundle(1, make_tensor(), scale=0.5, n=7)
    bundle(1, x=make_tensor(), scale=0.5, n=7, stream=None)
    run = bundle.bind(1, make_tensor(), 7, scale=0.5)
    run()
    assert len(cuda.launches) == 4
    assert all(launch == cuda.launches[0] for launch in cuda.launches)


def test_ctas_that_share_a_tile(on, make_tensor):
    bundle, cuda = on(num_ctas=2, cluster=[2, 1, 1])
    bundle(3, make_tensor(), 1, 1.0)
    bundle((3, 5), make_tensor(), 1, 1.0)
    assert [launch.grid for launch in cuda.launches] == [(6, 1, 1), (6, 5, 1)]


IMPORTS_NOTHING = """\
import sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("triton", "xdsl", "numpy", "ml_dtypes", "torch"):
            raise ImportError(f"{name} is not on this machine")

sys.meta_path.insert(0, Refused())
from tlx_xdsl import runtime

bundle = runtime.load(sys.argv[1])
assert bundle.manifest.arguments[0].name == "x"
try:
    bundle(1, 16, 1, 1.0)
except runtime.CudaDriverError as error:
    assert "libcuda" in str(error), error
ours = {name.split(".")[1] for name in sys.modules if name.startswith("tlx_xdsl.")}
assert ours == {"aliases", "element_types", "errors", "grid", "targets", "version", "runtime"}, ours
compilers = [name for name in sys.modules if name.startswith("tlx_xdsl.runtime.") and name.endswith(("write", "jit"))]
assert not compilers, compilers
"""


def test_nothing_but_the_standard_library_is_needed(tmp_path):
    put(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    subprocess.run([sys.executable, "-c", IMPORTS_NOTHING, str(tmp_path)], check=True, env=environment)


# --- several kernels ----------------------------------------------------------------------------------------------


def test_one_of_several_kernels(tmp_path, no_gpu):
    put(tmp_path, name="first")
    put(tmp_path, name="second")
    assert load(tmp_path, "second", driver=no_gpu).manifest.name == "second"
    assert load(tmp_path / "first", driver=no_gpu).manifest.name == "first"
    assert refusal(tmp_path) == "there are several kernels here: name one of first, second"
    assert refusal(tmp_path, "third") == "there is no kernel 'third' here, its kernels are first, second"


def test_folders_without_a_bundle(tmp_path):
    assert refusal(tmp_path / "none") == "no such folder"
    assert refusal(tmp_path).startswith("there is no bundle here: expected manifest.json")
    (tmp_path / "file").write_text("")
    assert refusal(tmp_path / "file") == "expected the folder of a bundle"


# --- refusals -----------------------------------------------------------------------------------------------------


def refusal(folder, name=None, driver=None):
    with pytest.raises(BundleError) as caught:
        load(folder, name, driver=driver or CudaDriver(object()))
    assert isinstance(caught.value, CompilationError)
    assert str(caught.value).startswith(str(folder).removesuffix("none"))
    assert "\n" not in caught.value.message
    return caught.value.message


def test_a_missing_binary(tmp_path):
    put(tmp_path)
    (tmp_path / "sample" / "sample.cubin").unlink()
    assert refusal(tmp_path) == "the bundle's cubin is missing"


def test_what_only_people_read_may_be_left_out(tmp_path, no_gpu):
    put(tmp_path)
    for path in (tmp_path / "sample").iterdir():
        if path.suffix not in (".cubin", ".json"):
            path.unlink()
    assert load(tmp_path, driver=no_gpu).manifest.name == "sample"


@pytest.mark.parametrize("file", ["sample.cubin", "sample.ptx", "sample.ttgir", "sample.c", "sample.h"])
def test_a_damaged_file(tmp_path, file):
    put(tmp_path)
    path = tmp_path / "sample" / file
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(BundleError, match=r"is damaged: expected the SHA-256 .*, found") as caught:
        load(tmp_path)
    assert caught.value.location is not None
    assert caught.value.location.filename == str(path)


def test_every_changed_figure_of_a_manifest_is_found(tmp_path):
    put(tmp_path, shared=60_000)
    path = tmp_path / "sample" / MANIFEST
    right = path.read_text()
    path.write_text(right.replace("60000", "60001"))
    assert refusal(tmp_path) == "the manifest is damaged: its entries are not those that its checksum was made of"
    path.write_text(json.dumps(json.loads(right), indent=7).replace("\n", "\r\n"))
    load(tmp_path, driver=CudaDriver(object()))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the manifest is damaged: Expecting value"),
        (b"\xff\xfe\x00", "the manifest is damaged: it is no text"),
        (b'{"format": "tlx_xdsl bundle", "vers', "the manifest is damaged: Unterminated string"),
        (b'{"name": "matmul", "target": "sm_90a"}', "this is no manifest of a bundle"),
        (b"[1, 2]", "this is no manifest of a bundle"),
        (b'{"format": "tlx_xdsl bundle"}', "the manifest is damaged: expected a version, found None"),
    ],
)
def test_what_is_no_manifest(tmp_path, content, message):
    put(tmp_path)
    (tmp_path / "sample" / MANIFEST).write_bytes(content)
    assert refusal(tmp_path).startswith(message)


def test_a_truncated_manifest_is_located(tmp_path):
    put(tmp_path)
    path = tmp_path / "sample" / MANIFEST
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(BundleError, match=r"manifest\.json:\d+:\d+: error: the manifest is damaged"):
        load(tmp_path)


def rewritten(path, **changes):
    """Give a manifest other entries, with a checksum that fits; None takes an entry out."""
    from tlx_xdsl.runtime.bundle.manifest import _checksum

    data = json.loads(path.read_text()) | changes
    data = {name: value for name, value in data.items() if value is not None and name != "sha256"}
    path.write_text(json.dumps(data | {"sha256": _checksum(data)}))


def test_a_newer_form(tmp_path):
    put(tmp_path)
    rewritten(tmp_path / "sample" / MANIFEST, version=2, unheard_of=1)
    with pytest.raises(BundleError) as caught:
        load(tmp_path)
    assert caught.value.message == "the bundle has the format version 2, this tlx_xdsl reads versions up to 1"
    assert caught.value.notes == ("install the tlx_xdsl that wrote it, or a later one",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shared": "many"}, "the manifest does not fit: expected 'shared' to be int, found \"many\""),
        ({"launch_pdl": 1}, "the manifest does not fit: expected 'launch_pdl' to be bool, found 1"),
        ({"cluster": [2, 1, "x"]}, "the manifest does not fit: expected 'cluster'[2] to be int, found \"x\""),
        ({"arguments": [{"name": "x"}]}, "the manifest does not fit: 'arguments'[0] lacks entry 'type'"),
        ({"entry": None}, "the manifest does not fit: the manifest lacks entry 'entry'"),
        ({"more": 1}, "the manifest does not fit: the manifest has the unknown entry 'more'"),
        ({"files": {}}, "the manifest does not fit: it names no cubin"),
        (
            {"files": {"cubin": {"name": "../x", "sha256": ""}}},
            "the manifest does not fit: '../x' is no name of a file",
        ),
        ({"num_warps": 64}, "kernel 'kernel': expected num_warps of 1 to 32, got 64"),
        (
            {"arguments": [{"name": "x", "type": "t", "descriptor": None}]},
            "argument 1, 'x' of kernel 'kernel': expected",
        ),
        ({"profile_scratch_size": 8}, "kernel 'kernel' needs 8 bytes of profile scratch memory per CTA"),
    ],
)
def test_manifests_that_do_not_fit(tmp_path, changes, message):
    put(tmp_path)
    rewritten(tmp_path / "sample" / MANIFEST, **changes)
    assert refusal(tmp_path).startswith(message)


@pytest.mark.parametrize(
    ("target", "needs"),
    [("sm_100a", "10.0"), ("sm_80", "8.0 or 8.6 or 8.9"), ("sm_87", "8.7"), ("sm_120a", "12.0")],
)
def test_another_gpu(tmp_path, cuda, driver, target, needs):
    put(tmp_path, target=target)
    with pytest.raises(BundleError) as caught:
        load(tmp_path, driver=driver)
    assert (
        caught.value.message
        == f"the bundle is for {target}, which runs on GPUs of compute capability {needs}; found 9.0"
    )
    assert caught.value.notes == ("compile the kernel with --target sm_90a",)
    assert not cuda.loaded


def test_a_target_that_is_unknown(tmp_path, driver):
    put(tmp_path)
    rewritten(tmp_path / "sample" / MANIFEST, target="sm_999a")
    assert refusal(tmp_path, driver=driver).startswith("unknown target 'sm_999a'")


def test_the_gpu_of_each_context_is_looked_at(on, cuda):
    """The machine has a GPU that fits when the bundle is loaded; another context has another one."""
    bundle, cuda = on()
    bundle(1, 16, 1, 1.0)
    cuda._cuDeviceGetAttribute = lambda out, attribute, device: out.__setitem__(0, 8 if attribute == 75 else 9)
    bundle(1, 16, 1, 1.0)
    cuda.context = 0xAAA
    with pytest.raises(BundleError, match=r"is for sm_90a, .* found 8\.9"):
        bundle(1, 16, 1, 1.0)
    assert len(cuda.launches) == 2


@pytest.mark.parametrize(
    ("args", "named", "cause", "message"),
    [
        ((16, 1), {}, TypeError, "kernel 'kernel': expected 3 arguments (x, n, scale), got 2"),
        ((16, 1), {"factor": 1}, TypeError, "kernel 'kernel': there is no argument 'factor', expected x, n, scale"),
        ((16, 1), {"n": 1}, TypeError, "kernel 'kernel': got two values for the argument 'n'"),
        ((16,), {"scale": 1}, TypeError, "kernel 'kernel': no value for the argument 'n'"),
        ((16, "1", 1), {}, TypeError, "argument 2, 'n' of kernel 'kernel': expected an integer (i32), got str"),
        ((16, 2**31, 1), {}, OverflowError, "argument 2, 'n' of kernel 'kernel': expected -2147483648 to"),
        (
            (24, 1, 1),
            {},
            ValueError,
            "argument 1, 'x' of kernel 'kernel': the kernel was compiled for an address (*fp16) "
            "that is a multiple of 16, got 0x18, 8 past one",
        ),
    ],
)
def test_wrong_arguments(on, args, named, cause, message):
    bundle, cuda = on()
    with pytest.raises(BundleError) as caught:
        bundle(1, *args, **named)
    assert caught.value.message.startswith(message)
    assert isinstance(caught.value.__cause__, cause)
    assert caught.value.location.filename == str(bundle.path / MANIFEST)
    assert not cuda.launches


def test_wrong_tensors_and_grids(on, make_tensor):
    bundle, _ = on(("a", "tensordesc<fp16[128, 64]>", META), cluster=[2, 1, 1])
    descriptor = TensorDescriptor.from_tensor(make_tensor(), [64, 64])
    with pytest.raises(BundleError, match=r"expected block_shape \[128, 64\], got \[64, 64\]"):
        bundle(2, descriptor)
    with pytest.raises(BundleError, match="multiple of the cluster's 2 CTAs in x, got 3"):
        bundle(3, descriptor)
    bundle, _ = on(num_ctas=2)
    with pytest.raises(BundleError, match=r"expected a grid .*found \('3',\)"):
        bundle(("3",), 16, 1, 1.0)
    with pytest.raises(BundleError, match="expected a grid of one to three numbers"):
        bundle((), 16, 1, 1.0)


# --- replacing a bundle -------------------------------------------------------------------------------------------


@pytest.fixture(params=["exchange", "two renames"])
def renaming(request, monkeypatch):
    if request.param == "two renames":
        monkeypatch.setattr(folder_module, "_renameat2", lambda one, other: False)
    return request.param


def test_a_bundle_is_replaced_and_other_files_stay(tmp_path, no_gpu, renaming):
    put(tmp_path, shared=1)
    (tmp_path / "sample" / "sample.o").write_text("mine")
    put(tmp_path, shared=2)
    assert load(tmp_path, driver=no_gpu).manifest.shared == 2
    assert (tmp_path / "sample" / "sample.o").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["sample"]


def test_a_damaged_bundle_is_replaced(tmp_path, no_gpu):
    put(tmp_path)
    (tmp_path / "sample" / MANIFEST).write_text("damaged")
    put(tmp_path)
    assert load(tmp_path, driver=no_gpu).manifest.name == "sample"


def test_what_is_no_bundle_is_not_replaced(tmp_path):
    (tmp_path / "sample").mkdir()
    (tmp_path / "sample" / "thesis.tex").write_text("mine")
    with pytest.raises(BundleError, match="something here that is no bundle, and it is not replaced"):
        put(tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["sample", "thesis.tex"]


def test_a_failed_write_leaves_the_old_bundle(tmp_path, no_gpu, monkeypatch):
    put(tmp_path, shared=1)
    write = Path.write_bytes

    def full(path, content):
        if path.name == MANIFEST:
            raise OSError(28, "No space left on device")
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        put(tmp_path, shared=2)
    assert load(tmp_path, driver=no_gpu).manifest.shared == 1
    assert [path.name for path in tmp_path.iterdir()] == ["sample"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges two folders")
def test_readers_see_one_bundle_or_the_other(tmp_path, no_gpu):
    put(tmp_path, shared=0)
    ends = threading.Event()

    def replace_again_and_again():
        for shared in range(1, 60):
            put(tmp_path, shared=shared)
        ends.set()

    writer = threading.Thread(target=replace_again_and_again)
    writer.start()
    seen = []
    while not ends.is_set():
        seen.append(load(tmp_path, "sample", driver=no_gpu).manifest.shared)
    writer.join()
    assert seen == sorted(seen)
    assert load(tmp_path, driver=no_gpu).manifest.shared == 59


# --- hostile bundles ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["manifest.json", "sample.cubin"])
def test_a_folder_in_the_place_of_a_file(tmp_path, no_gpu, name):
    put(tmp_path)
    file = tmp_path / "sample" / name
    file.unlink()
    file.mkdir()
    with pytest.raises(BundleError, match=r"no bundle here|the bundle can't be read"):
        load(tmp_path / "sample", driver=no_gpu)


@pytest.mark.parametrize("content", ["[" * 100_000, '{"format": ' + "1" * 5000 + "}", '{"a":' * 50_000])
def test_manifests_that_python_does_not_read(tmp_path, no_gpu, content):
    put(tmp_path)
    (tmp_path / "sample" / MANIFEST).write_text(content)
    with pytest.raises(BundleError, match="the manifest is damaged"):
        load(tmp_path, driver=no_gpu)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"entry": "ker\0nel"}, "no name of a kernel"),
        ({"target": "sm_1"}, "unknown target 'sm_1'"),
        ({"cluster": [2]}, "expected cluster as three positive numbers"),
        ({"num_warps": 10**6}, "expected num_warps of 1 to"),
    ],
)
def test_entries_without_a_meaning(tmp_path, no_gpu, changes, message):
    put(tmp_path)
    path = tmp_path / "sample" / MANIFEST
    changed = dataclasses.replace(read_manifest(path, path.read_bytes()), **changes)
    path.write_text(changed.to_json())
    with pytest.raises(BundleError, match=message):
        load(tmp_path, driver=no_gpu)


@pytest.mark.parametrize("type_", ["*evil", "evil", "*", "tensordesc<evil>", "i32:0"])
def test_types_that_no_argument_has(tmp_path, no_gpu, type_):
    put(tmp_path)
    path = tmp_path / "sample" / MANIFEST
    found = read_manifest(path, path.read_bytes())
    found.arguments[0] = dataclasses.replace(found.arguments[0], type=type_)
    path.write_text(found.to_json())
    with pytest.raises(BundleError, match=r"the manifest does not fit|kernel 'kernel': expected"):
        load(tmp_path, driver=no_gpu)


def test_a_name_that_leaves_the_folder(tmp_path, no_gpu):
    put(tmp_path)
    path = tmp_path / "sample" / MANIFEST
    path.write_text(dataclasses.replace(read_manifest(path, path.read_bytes()), name="../x").to_json())
    with pytest.raises(BundleError, match="no name of a bundle"):
        load(tmp_path, driver=no_gpu)


def test_a_name_that_no_file_can_have(no_gpu):
    with pytest.raises(BundleError):
        load("a\0b", driver=no_gpu)
