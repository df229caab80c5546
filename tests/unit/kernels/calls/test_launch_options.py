"""The options with which the kernels to import are compiled: what `build` is called with."""

import pytest

from tlx_xdsl.kernels.calls import launching
from tlx_xdsl.runtime import build


@pytest.mark.parametrize(("variable", "fuses"), [(None, True), ("0", False), ("1", True)])
def test_products_are_fused_whatever_the_version_of_triton(monkeypatch, variable, fuses):
    monkeypatch.delenv("TRITON_DEFAULT_FP_FUSION", raising=False)
    if variable is not None:
        monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", variable)
    monkeypatch.setattr(build, "build", lambda *_, **options: options)
    options = launching._launcher.__wrapped__(None, (), (), 4, (1, 1, 1), False, None)
    assert options["enable_fp_fusion"] == fuses
