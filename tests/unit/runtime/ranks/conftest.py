"""Stand-ins of the tests of several GPUs."""

import pytest

from tests.unit.kernels import stand_in_torch


@pytest.fixture
def torch(monkeypatch):
    """A stand-in for torch on two GPUs."""
    made = stand_in_torch.install(monkeypatch)
    made.devices = 2
    return made
