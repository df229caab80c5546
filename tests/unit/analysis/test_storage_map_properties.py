"""The storage map of random programs against what the lowered program does, and advice on all of them."""

from hypothesis import assume, given
from xdsl.context import Context

from tests.unit.transforms.storage_alias.storage_programs import text_of
from tests.unit.transforms.storage_alias.storage_trees import Program
from tests.unit.transforms.storage_alias.test_storage_properties import any_program, examples, lower
from tlx_xdsl.analysis.storage_map_reader import storage_maps
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.diagnostics import collected_diagnostics
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.transforms.storage_alias.advice import StorageAdvicePass


@examples(full=1000, ci=40)
@given(any_program)
def test_the_map_states_the_addresses_of_the_lowered_program(program: Program):
    try:
        lowered = lower(program)
    except CompilationError:
        assume(False)
        raise
    addresses = lowered.addresses
    module = parse_module(text_of(program))
    map_ = next(each for each in storage_maps(module, 100) if each.kernel == "main")
    region = next(each for each in map_.regions if each.is_shared)
    stated = [[span.start for span in array.buffers] for array in region.arrays]
    assert stated == [addresses[leaf.number] for leaf in program.leaves]
    assert region.size == lowered.total
    taken = bytearray(region.size)
    for array in region.arrays:
        for span in array.buffers:
            taken[span.start : span.end] = b"\1" * span.size
    assert sum(gap.size for gap in region.padding) == taken.count(0)
    assert not any(any(taken[gap.start : gap.end]) for gap in region.padding)
    for array in region.arrays:
        for span in array.buffers:
            shared = {(other.name, index) for other, found in region.sharers(array, span) for index in found}
            assert shared == {
                (other.name, index)
                for other in region.arrays
                if other is not array
                for index, at in enumerate(other.buffers)
                if max(at.start, span.start) < min(at.end, span.end)
            }


@examples(full=1000, ci=40)
@given(any_program)
def test_advice_changes_nothing_and_every_program_can_be_advised(program: Program):
    module = parse_module(text_of(program, accesses=False))
    before = print_module(module)
    with collected_diagnostics():
        StorageAdvicePass().apply(Context(), module)
    assert print_module(module) == before
