"""Growth of integers with another one, beside the values that they have."""

import itertools

import pytest

from tlx_xdsl.dialects import tt
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.transforms.rewriting import ops_of
from tlx_xdsl.transforms.warp_specialize.growth import growth

CASES = {
    "itself": ("%r = arith.addi %x, %none : i32", lambda x, n: x, 1),
    "another one": ("%r = arith.muli %n, %two : i32", lambda x, n: 2 * n, 0),
    "the end of a causal block": (
        "%a = arith.addi %x, %two : i32\n%b = arith.muli %a, %two : i32\n%r = arith.minsi %b, %n : i32",
        lambda x, n: min(2 * (x + 2), n),
        1,
    ),
    "what is left": ("%a = arith.subi %n, %x : i32\n%r = arith.maxsi %a, %none : i32", lambda x, n: max(n - x, 0), -1),
    "blocks": ("%r = arith.divsi %x, %two : i32", lambda x, n: x // 2, 1),
    "less of less": ("%a = arith.muli %x, %back : i32\n%r = arith.subi %n, %a : i32", lambda x, n: n + 2 * x, 1),
    "wide and narrow": (
        "%a = arith.extsi %x : i32 to i64\n%r = arith.trunci %a : i64 to i32", lambda x, n: x, 1,
    ),
    "against each other": (
        "%a = arith.divsi %x, %two : i32\n%r = arith.subi %x, %a : i32", lambda x, n: x - x // 2, None,
    ),
    "a rest": ("%r = arith.remsi %x, %two : i32", lambda x, n: x % 2, None),
    "times a number of any sign": ("%r = arith.muli %x, %n : i32", lambda x, n: x * n, None),
    "parts of a number of any sign": ("%r = arith.divsi %x, %n : i32", lambda x, n: x // n, None),
}  # fmt: skip


@pytest.mark.quick
def test_growth_is_that_of_the_values():
    found = {name: _growth(lines) for name, (lines, _, _) in CASES.items()}
    assert found == {name: known for name, (_, _, known) in CASES.items()}
    for name, (_, meaning, known) in CASES.items():
        for n in (-3, 1, 5):
            for before, after in itertools.pairwise(meaning(x, n) for x in range(9)):
                assert known is None or (after - before) * known > 0 or after == before, name


def _growth(lines):
    module = parse_module(f"""builtin.module {{
        tt.func public @f(%n: i32) {{
            %x = tt.get_program_id x : i32
            %none = arith.constant 0 : i32
            %two = arith.constant 2 : i32
            %back = arith.constant -2 : i32
            {lines}
            tt.return
        }}
    }}""")
    end = ops_of(module, tt.ReturnOp)[0].prev_op
    return growth(end.results[0], lambda value: isinstance(value.owner, tt.GetProgramIdOp))
