"""GPUs that run the binary code of each target (CUDA C++ Programming Guide, "Binary Compatibility")."""

import pytest

from tlx_xdsl.targets import TARGETS, target_named

RUNS_ON = {
    "sm_80": [80, 86, 89],
    "sm_86": [86, 89],
    "sm_87": [87],
    "sm_89": [89],
    "sm_90a": [90],
    "sm_100a": [100],
    "sm_103a": [103],
    "sm_107a": [107],
    "sm_110a": [110],
    "sm_120a": [120],
    "sm_121a": [121],
}


@pytest.mark.parametrize("name", [target.name for target in TARGETS])
def test_runs_on(name):
    capabilities = [75, *(target.capability for target in TARGETS), 101]
    assert [capability for capability in capabilities if target_named(name).runs_on(capability)] == RUNS_ON[name]
