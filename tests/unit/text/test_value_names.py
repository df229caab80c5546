"""Names of values: those of the user, where MLIR can have them."""

# covers: tt.func

import re

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module


@tlx_xdsl.jit
def numbered(_0, _1_2, p):
    tl.store(p, _0 + _1_2)


def test_a_name_of_a_number_alone_is_a_number():
    text = numbered.compile({"_0": "i32", "_1_2": "i32", "p": "*i32"}, {}).ttgir
    assert re.search(r"@numbered\(%0: i32 loc\(#loc\d*\), %(\w+): i32 .*, %p: ", text)
    assert print_module(parse_module(text)) == text
