"""`tlx doctor` says what is here, and gives a remedy for what is not."""

import os
import sys
from importlib import metadata

import pytest

from tlx_xdsl.backend import installed_triton_version
from tlx_xdsl.runtime.cuda_driver import CudaDriver, CudaDriverError
from tlx_xdsl.tools import doctor_command, tlx


class Driver(CudaDriver):
    """A driver that sees an H200, or fails at the call that is named."""

    def __init__(self, fails="", devices=1):
        super().__init__()
        self.fails, self.devices = fails, devices

    def _call(self, name, *arguments, detail=""):
        if name == self.fails:
            raise CudaDriverError(name, "CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected", code=100)
        values = {"cuDriverGetVersion": 13020, "cuDeviceGetCount": self.devices}
        if name == "cuDeviceGetAttribute":
            arguments[0]._obj.value = {75: 9, 76: 0, 16: 132, 97: 232448}[arguments[1]]
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
    for subject in ("tlx_xdsl", "Python", "Triton", "CUDA driver", "torch"):
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
    assert installed_triton_version() is not None
    path = script(tmp_path, "ptxas", "Cuda compilation tools, release 99.7, V99.7.1")
    monkeypatch.setenv("TRITON_PTXAS_PATH", path)
    assert doctor_command.ptxas("ptxas").found == f"99.7, {path} (TRITON_PTXAS_PATH)"


@pytest.mark.backend
@pytest.mark.parametrize("name", ["missing", "mute"])
def test_a_variable_that_names_no_ptxas_is_told(name, tmp_path, monkeypatch):
    script(tmp_path, "mute", "nothing of use")
    monkeypatch.setenv("TRITON_PTXAS_BLACKWELL_PATH", str(tmp_path / name))
    finding = doctor_command.ptxas("ptxas-blackwell")
    assert finding.found.endswith("/ptxas-blackwell")
    assert "unset or correct it" in (finding.remedy or "")
