"""Arguments of launches on several ranks: which value each rank gets, and what is refused."""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.errors import InputError, InputTypeError
from tlx_xdsl.kernels.rows.norm_clusters import Division
from tlx_xdsl.language.core import constexpr
from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor
from tlx_xdsl.runtime.ranks.arguments import launches_of, of_ranks, parts_of, ranks_of, typed_ranks

# Kernels are read by the frontend, not run by Python.
# pyright: basic


@tlx_xdsl.jit
def kernel(x, n, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), n)


def symmetric(ranks):
    return tlx_xdsl.symmetric([np.zeros(4, np.int32) for _ in range(ranks)])


def test_the_number_of_ranks_is_that_of_symmetric_tensors():
    assert ranks_of({"x": symmetric(3), "n": 1}, 0) == 3
    assert ranks_of({"x": symmetric(3)}, 3) == 3
    assert ranks_of({"n": 1}, 0) == 0
    assert ranks_of({"n": 1}, 2) == 2
    with pytest.raises(InputError, match="'x' is symmetric over 3 ranks, and ranks=2"):
        ranks_of({"x": symmetric(3)}, 2)


def test_values_that_differ_between_launches_are_of_ranks():
    assert ranks_of({"n": tlx_xdsl.per_launch([1, 2])}, 0) == 1
    assert launches_of({"n": tlx_xdsl.per_launch([1, 2]), "m": 3}) == 2
    assert launches_of({"n": 1}) == 0
    with pytest.raises(InputTypeError, match="found 2 for 'n' and 3 for 'm'"):
        launches_of({"n": tlx_xdsl.per_launch([1, 2]), "m": tlx_xdsl.per_launch([1, 2, 3])})


def test_each_rank_gets_its_value_in_each_launch():
    x = [np.zeros(4, np.int32) for _ in range(2)]
    found = of_ranks({"x": x, "n": tlx_xdsl.per_launch([[5, 6], 7]), "BLOCK": 4}, 2, 2)
    assert [each["n"] for each in found] == [5, 6, 7, 7]
    assert [each["x"] is x[at % 2] for at, each in enumerate(found)] == [True] * 4


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([1, 2, 3], "must have a value for each of 2 ranks, found 3"),
        (np.zeros(4), "is one ndarray, and no two of 2 ranks share memory"),
        ((1, np.zeros(4)), "is one tuple, and no two of 2 ranks share memory"),
        (TensorDescriptor(np.zeros((4, 4)), [4, 4], [4, 1], [4, 4]), "is one TensorDescriptor, and no two of 2 ranks"),
        (tlx_xdsl.per_launch([1, 2]), "must have a value for each of 1 launches, found 2"),
    ],
)
def test_what_ranks_would_share_or_lack_is_refused(value, said):
    with pytest.raises(InputTypeError, match=said):
        of_ranks({"x": value}, 2, 1)


def test_ranks_share_numbers_and_configurations():
    given = {"sizes": (3, (4, None)), "form": Division(2, 8192, 6)}
    assert of_ranks(given, 2, 1) == [given, given]


def test_one_rank_may_have_an_array_as_it_is():
    x = np.zeros(4, np.int32)
    assert of_ranks({"x": x}, 1, 1) == [{"x": x}]


def test_parts_have_names_with_their_ranks():
    launches = tlx_xdsl.per_launch([[1, 2], 3])
    assert [name for name, _ in parts_of("x", symmetric(2))] == ["x of rank 0", "x of rank 1"]
    assert [*parts_of("n", launches)] == [
        ("n of launch 0 of rank 0", 1), ("n of launch 0 of rank 1", 2), ("n of launch 1", 3),
    ]  # fmt: skip


def typed(*numbers, block=(4, 4)):
    x = np.zeros(16, np.int32)
    arguments = [{"x": x, "n": n, "BLOCK": constexpr(b)} for n, b in zip(numbers, block, strict=True)]
    return typed_ranks(kernel.source, arguments, None)


def test_what_holds_for_all_launches_alone_is_promised():
    assert [each.signature["n"] for each in typed(16, 32)] == ["i32:16", "i32:16"]
    assert [each.signature["n"] for each in typed(16, 5)] == ["i32", "i32"]


def test_a_one_is_no_constant_where_others_have_another_number():
    assert all("n" in each.constexprs for each in typed(1, 1))
    assert [each.signature["n"] for each in typed(1, 2)] == ["i32", "i32"]


def test_the_kernel_is_one_for_all():
    with pytest.raises(InputTypeError, match="'BLOCK' is a part of the kernel, and differs between launches"):
        typed(2, 2, block=(4, 8))


def test_launches_are_of_ranks():
    with pytest.raises(InputError, match="launches=2 are those of each rank: add ranks=1 or more"):
        kernel.interpret(1, np.zeros(4, np.int32), 3, BLOCK=4, launches=2)
    x = np.zeros(4, np.int32)
    kernel.interpret(1, x, tlx_xdsl.per_launch([3, 4]), BLOCK=4, launches=2)
    assert x.tolist() == [4] * 4


@pytest.mark.parametrize("arrays", [[], [np.zeros(4), np.zeros(5)], [np.zeros(4), np.zeros(4, np.int32)]])
def test_a_symmetric_tensor_has_one_shape_and_type(arrays):
    with pytest.raises(InputTypeError, match="a symmetric tensor needs arrays of one shape and type"):
        tlx_xdsl.symmetric(arrays)
