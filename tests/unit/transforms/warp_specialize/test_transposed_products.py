"""Products of a state that is kept transposed: a delta rule by chunks, against the plain kernel."""

# covers: tlx-ws-transpose-products

import numpy as np
import pytest
from xdsl.context import Context

from tests.unit.transforms.warp_specialize.plain_kernels import Numbers, chunk_states
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.frontend.compile import build_module
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.runtime.simulate.interpret import interpret_module
from tlx_xdsl.runtime.simulate.options import Options
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.registry import pass_class

TYPES = {
    **dict.fromkeys(("k_ptr", "v_ptr", "w_ptr"), "*fp16:16"),
    "gate_ptr": "*fp32:16",
    **dict.fromkeys(("h_ptr", "out_ptr"), "*fp16:16"),
    "length": "i32",
}
TASKS = ("tlx-ws-form-descriptors", "tlx-ws-form-tasks")


def arguments(length, width):
    numbers = Numbers(length)
    chunks = -(-length // 64)
    shapes = [(2 * length, width), (2 * length, 64), (2 * length, width)]
    inputs = [numbers.half(*shape) / np.float16(4) for shape in shapes]
    gates = numbers.single(2, chunks) / 8
    return [*inputs, gates, numbers.result(2, chunks, width, 64), numbers.result(2 * length, 64), length]


@pytest.mark.parametrize("width", [64, 128])
def test_the_state_is_kept_transposed(width):
    """No product's operand is stored to shared memory, and a length that is no multiple of a chunk is right, too."""
    module, transposed = (
        build_module(source_of(chunk_states), TYPES, {"D": width, "E": 64, "C": 64, "DELTA": True}) for _ in range(2)
    )
    for name in (*TASKS, "tlx-ws-transpose-products", "tlx-ws-async-dots"):
        pass_class(name)().apply(make_context(), transposed)
    verify_module(transposed)
    text = print_module(transposed)
    assert text.count("ttng.warp_group_dot ") == 2
    # The producer stores the gates; the consumer nothing.
    assert "ttg.local_store" not in text[text.index("partition0") :]
    expected, found = arguments(200, width), arguments(200, width)
    for each, given in ((module, expected), (transposed, found)):
        interpret_module(each, (2, 1, 1), dict(zip(TYPES, given, strict=True)), Options(jobs=1))
    for one, other in zip(found[4:6], expected[4:6], strict=True):
        np.testing.assert_allclose(one, other, rtol=0.02, atol=2e-3)


def test_a_state_that_no_product_reads_in_registers_stays():
    module = build_module(source_of(chunk_states), TYPES, {"D": 64, "E": 64, "C": 64, "DELTA": False})
    for name in TASKS:
        pass_class(name)().apply(make_context(), module)
    before = print_module(module)
    pass_class("tlx-ws-transpose-products")().apply(Context(), module)
    assert print_module(module) == before
