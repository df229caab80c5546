"""`tlx doctor` says what is here, and gives a remedy for what is not."""

import os
import sys
from importlib import metadata

import pytest

from tests.versions import INSTALLED
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


@pytest.mark.backend
def test_the_variable_s_ptxas_is_taken_when_it_runs(tmp_path, monkeypatch):
    assert INSTALLED is not None
    path = script(tmp_path, "ptxas", "Cuda compilation tools, release 99.7, V99.7.1")
    monkeypatch.setenv("TRITON_PTXAS_PATH", path)
    assert doctor_command.ptxas("ptxas").found == f"99.7, {path} (TRITON_PTXAS_PATH)"


@pytest.mark.backend
@pytest.mark.parametrize("name", ["missing", "mute"])
def test_a_variable_that_names_no_ptxas_is_reported(name, tmp_path, monkeypatch):
    script(tmp_path, "mute", "nothing of use")
    monkeypatch.setenv("TRITON_PTXAS_BLACKWELL_PATH", str(tmp_path / name))
    finding = doctor_command.ptxas("ptxas-blackwell")
    assert finding.found.endswith("/ptxas-blackwell")
    assert "unset or correct it" in (finding.remedy or "")


@pytest.mark.backend
def test_an_older_ptxas_is_warned_of(tmp_path, monkeypatch):
    path = script(tmp_path, "ptxas", "Cuda compilation tools, release 9.0, V9.0.1")
    monkeypatch.setenv("TRITON_PTXAS_PATH", path)
    finding = doctor_command.ptxas("ptxas")
    assert finding.found == f"9.0, {path} (TRITON_PTXAS_PATH)"
    assert "older than Triton's own" in (finding.remedy or "")


@pytest.mark.parametrize(
    ("major", "releases", "remedy"),
    [
        (9, {"ptxas": "13.0", "ptxas-blackwell": "14.0"}, None),
        (9, {"ptxas": "14.1"}, "install one of CUDA 14.0 on"),
        (10, {"ptxas": "12.9", "ptxas-blackwell": "14.0"}, "binaries of ptxas 14.0"),
        (10, {"ptxas": "14.0", "ptxas-blackwell": "13.1"}, None),
        (9, {"ptxas": "/path/ptxas does not run"}, None),
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
