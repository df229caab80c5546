"""Constructs of tt-lang 1.1, one a kernel: each gives what numpy does, or is refused at its line."""

from __future__ import annotations

import pytest
import tlx_xdsl.language.ttl as ttl

from tests.unit.ttl.metalium.metalium_programs import needs_compiler
from tests.unit.ttl.names.ttl_names_page import PAGE, VENDOR, outcome, page
from tests.unit.ttl.names.ttl_probes import PROBES
from tests.unit.volume import is_full

ALL = [probe for probes in PROBES.values() for probe in probes]


def test_the_page() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: python -m tests.unit.ttl.names.ttl_names_page"


def test_all_have_names_of_their_own() -> None:
    assert len({each.name for each in ALL}) == len(ALL) >= 100


def test_what_the_compiler_of_tt_lang_takes() -> None:
    """Programs that the compiler takes run here, too."""
    taken = [each for each in ALL if VENDOR["probes"].get(each.name) == "taken"]
    assert len(taken) >= 60
    refused = {each.name: outcome(each, "tensors") for each in taken}
    assert not {name: message for name, message in refused.items() if message is not None}


def test_a_scaler_of_a_reduction() -> None:
    """A reduction with a scaler is made once: nothing that is not in the kernel uses its blocks."""
    (probe,) = [each for each in ALL if each.name == "ttl.math.reduce_sum(x, y, dims=[1])"]
    assert outcome(probe, "ttkernel") is None


@needs_compiler
@pytest.mark.parametrize(("machine", "one_of"), [("ttkernel", 16), ("cpp", 47)])
def test_calls_and_cpp(machine: str, one_of: int) -> None:
    """The same outcome on the other machines: of all probes, or of some."""
    for probe in ALL if is_full() else ALL[5::one_of]:
        assert (outcome(probe, machine) is None) == (outcome(probe, "tensors") is None), probe.name


def test_names_of_classes() -> None:
    """Annotations say what they say in tt-lang."""
    assert ttl.TensorBlock is ttl.Block
    assert ttl.DataflowBuffer is ttl.CircularBuffer
    assert ttl.CopyTransferHandler is ttl.Transfer
