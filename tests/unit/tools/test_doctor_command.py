"""`tlx doctor` says what is here, and gives a remedy for what is not."""

import os
import sys
from importlib import metadata

import pytest

from tlx_xdsl.backend import assemblers
from tlx_xdsl.runtime.launch.cuda_driver import CudaDriver, CudaDriverError
from tlx_xdsl.tools import tlx
from tlx_xdsl.tools.commands import doctor as doctor_command


class Driver(CudaDriver):
    """A driver that sees an H200, or fails at the call that is named."""

    def __init__(self, fails="", devices=1, major=9):
        super().__init__()
        self.fails, self.devices, self.major = fails, devices, major

    def _call(self, name, *arguments, detail=""):
        if name == self.fails:
            raise CudaDriverError(name, "CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected", code=100)
        values = {"cuDriverGetVersion": 13020, "cuDeviceGetCount": self.devices}
        if name == "cuDeviceGetAttribute":
            arguments[0]._obj.value = {75: self.major, 76: 0, 16: 132, 97: 232448}[arguments[1]]
        elif name in values:
            arguments[0]._obj.value = values[name]


def script(folder, name, says):
    path = folder / name
    path.write_text(f"#!{sys.executable}\nprint({says!r})\n")
    os.chmod(path, 0o755)
    return str(path)


def by_subject(found):
    return {finding.subject: finding for finding in found}


def test_the_command_reports_and_succeeds(capsys):
    assert tlx.main(["doctor"]) == 0
    out = capsys.readouterr().out
    for subject in ("tlx_xdsl", "Python", "Triton", "cache", "CUDA driver", "torch"):
        assert subject in out
    assert f"xdsl {metadata.version('xdsl')}" in out


def test_a_remedy_stands_below_what_it_is_for():
    found = [doctor_command.Finding("a", "one"), doctor_command.Finding("long", "none", "get one")]
    assert doctor_command.report(found) == "a     one\nlong  none\n      -> get one"


@pytest.mark.parametrize(
    ("version", "found", "remedy"),
    [
        (None, "not installed", "triton>=3.6,<3.10"),
        ("3.7.1", "3.7.1, profile 3.7", None),
        ("3.10.0", "3.10.0, profile 3.9", "3.6 to 3.9"),
        ("3.5.1", "3.5.1, no profile: Triton 3.5.1 is not supported", "triton>=3.6,<3.10"),
    ],
)
def test_triton_s_version_picks_the_profile(version, found, remedy):
    finding = doctor_command.triton(version)
    assert finding.found.startswith(found)
    assert finding.remedy is None if remedy is None else remedy in (finding.remedy or "")


def test_a_gpu_is_described():
    assert [(each.found, each.remedy) for each in doctor_command.gpu(Driver())] == [
        ("CUDA 13.2", None),
        ("sm_90, 132 SMs, 232448 bytes of shared memory a CTA", None),
    ]


@pytest.mark.parametrize(
    ("driver", "subject", "found", "remedy"),
    [
        (Driver(fails="cuDriverGetVersion"), "CUDA driver", "CUDA_ERROR_NO_DEVICE", "tlx run"),
        (Driver(devices=0), "GPU", "none", "CUDA_VISIBLE_DEVICES"),
        (Driver(fails="cuDeviceGetAttribute"), "GPU", "cuDeviceGetAttribute failed", "nvidia-smi"),
    ],
)
def test_what_the_driver_lacks_has_a_remedy(driver, subject, found, remedy):
    finding = by_subject(doctor_command.gpu(driver))[subject]
    assert found in finding.found
    assert remedy in (finding.remedy or "")


@pytest.fixture
def assembled(tmp_path, monkeypatch):
    """A machine with Triton's two assemblers alone, whose releases the function says that it gives."""
    for name in (*assemblers.TOOLS.values(), "TLX_PTXAS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(assemblers, "_of_triton", lambda name: str(tmp_path / name))
    named = assemblers._named_places
    monkeypatch.setattr(assemblers, "_named_places", lambda: [each for each in named() if "triton's" in each[1]])

    def releases(ptxas, blackwell):
        for name, release in (("ptxas", ptxas), ("ptxas-blackwell", blackwell)):
            script(tmp_path, name, f"Cuda compilation tools, release {release.rpartition('.')[0]}, V{release}")

    return releases


def test_each_target_s_assembler_is_named_and_who_chose_it(assembled):
    assembled("12.9.86", "13.4.59")
    found = doctor_command.ptxas("3.9.0", None)
    assert found["sm_89"] == doctor_command.Finding(
        "ptxas sm_80 to sm_89", "13.4.59 (triton's ptxas-blackwell), the best here; stock Triton takes 12.9.86"
    )
    assert found["sm_90a"] == doctor_command.Finding(
        "ptxas sm_90a to sm_121a", "13.4.59 (triton's ptxas-blackwell), as stock Triton takes"
    )
    assert doctor_command.ptxas("3.9.0", 12)["sm_100a"].found == (
        "12.9.86 (triton's ptxas), the best for CUDA 12; stock Triton takes 13.4.59"
    )
    assert doctor_command.other_ptxas().found == "13.4.59 (triton's ptxas-blackwell), 12.9.86 (triton's ptxas)"


@pytest.mark.parametrize(
    ("newest_cuda", "release", "remedy"),
    [(None, "13.1.80", "pip install nvidia-cuda-nvcc, which"), (12, "12.8.93", "need a driver of CUDA 13")],
)
def test_hopper_s_products_are_warned_of_with_an_old_assembler(assembled, newest_cuda, release, remedy):
    assembled("12.8.93", "13.1.80")
    found = doctor_command.ptxas("3.7.1", newest_cuda)
    assert found["sm_90a"].found.startswith(release)
    assert remedy in (found["sm_90a"].remedy or "")
    # Only Hopper has such products.
    assert found["sm_89"].remedy is None
    assert found["sm_100a"].remedy is None


def test_a_variable_that_names_no_ptxas_is_reported(assembled, tmp_path, monkeypatch):
    assembled("12.9.86", "13.4.59")
    mute = script(tmp_path, "mute", "nothing of use")
    for named in (str(tmp_path / "missing"), mute):
        monkeypatch.setenv("TRITON_PTXAS_PATH", named)
        found = doctor_command.ptxas("3.9.0", None)
        assert f"TRITON_PTXAS_PATH={named} does not run" in (found["sm_80"].remedy or "")
        assert found["sm_90a"].remedy is None


def test_a_choice_by_a_variable_is_said(assembled, tmp_path, monkeypatch):
    assembled("12.9.86", "13.4.59")
    path = script(tmp_path, "other", "Cuda compilation tools, release 99.7, V99.7.1")
    monkeypatch.setenv("TRITON_PTXAS_PATH", path)
    assert doctor_command.ptxas("3.9.0", 12)["sm_80"].found == "99.7.1 (TRITON_PTXAS_PATH), as stock Triton takes"
    monkeypatch.setenv("TLX_PTXAS", "12.9")
    found = doctor_command.ptxas("3.9.0", None)
    assert {each.found for each in found.values()} == {"12.9.86 (triton's ptxas, pinned), by TLX_PTXAS"}
    # Hopper's has a remedy.
    assert [found[name].subject for name in ("sm_89", "sm_90a", "sm_103a")] == [
        "ptxas sm_80 to sm_89", "ptxas sm_90a", "ptxas sm_100a to sm_121a"
    ]  # fmt: skip
    monkeypatch.setenv("TLX_PTXAS", "12.1")
    finding = doctor_command.ptxas("3.9.0", None)["sm_80"]
    assert finding.found.startswith("ptxas: expected one of release 12.1")
    assert "unset or correct TLX_PTXAS" in (finding.remedy or "")


@pytest.mark.parametrize(
    ("major", "releases", "remedy"),
    [
        (9, {"sm_90a": "13.0.88", "sm_100a": "14.0.1"}, None),
        (9, {"sm_90a": "14.1.1"}, "install one of CUDA 14.0 on"),
        (10, {"sm_90a": "12.9.86", "sm_100a": "14.0.1"}, "binaries of ptxas 14.0.1"),
        (10, {"sm_90a": "14.0.1", "sm_100a": "13.1.80"}, None),
        (9, {"sm_90a": "ptxas:"}, None),
        (7, {}, "sm_80 and newer"),
    ],
)
def test_the_gpu_must_fit_driver_and_ptxas(major, releases, remedy):
    finding = by_subject(doctor_command.gpu(Driver(major=major), releases))["GPU"]
    assert finding.remedy is None if remedy is None else remedy in (finding.remedy or "")


# The cache ------------------------------------------------------------------------------------------------------------


def test_the_cache_is_measured(tmp_path, monkeypatch):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "kernel.cubin").write_bytes(bytes(3 * 2**20))
    (tmp_path / "two").mkdir()
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(doctor_command, "LITTLE", 0)
    assert doctor_command.cache() == doctor_command.Finding(
        "cache", f"{tmp_path} (TRITON_CACHE_DIR), 3 MiB in 2 kernels"
    )
    monkeypatch.setattr(doctor_command, "MANY", 1)
    assert "more than " in doctor_command.cache().found


@pytest.mark.parametrize("variable", ["TRITON_HOME", "HOME"])
def test_the_cache_without_a_variable(variable, tmp_path, monkeypatch):
    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    monkeypatch.delenv("TRITON_HOME", raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    finding = doctor_command.cache()
    assert finding.found == f"{tmp_path / '.triton' / 'cache'}, not made yet"
    assert finding.remedy is None


def test_a_cache_that_can_t_be_written_has_a_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "inside"))
    monkeypatch.setattr(os, "access", lambda path, _mode: path != tmp_path)
    remedy = doctor_command.cache().remedy or ""
    assert remedy.startswith(f"{tmp_path} can't be written: set TRITON_CACHE_DIR")


def test_a_cache_that_is_a_file_has_a_remedy(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert "is no folder: set TRITON_CACHE_DIR" in (doctor_command.cache().remedy or "")


def test_a_full_disk_has_a_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(doctor_command, "LITTLE", 1 << 62)
    assert "empty the folder" in (doctor_command.cache().remedy or "")
