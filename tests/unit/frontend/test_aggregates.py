"""Aggregates: fields of base classes, defaults, copies with other fields, and what they refuse; ours and Triton's."""

# covers: tl.compile_time

import dataclasses

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.versions import NEWEST, only_on
from tlx_xdsl.errors import CompilationError


@tl.core._aggregate
class Base:
    factor: tl.constexpr
    pointer: tl.tensor

    @tlx_xdsl.jit
    def load(self, i):
        return tl.load(self.pointer + i) * self.factor


@tl.core._aggregate
class Child(Base):
    more: tl.constexpr = 3

    @tl.core.constexpr_function
    def both(self):
        return self.factor + self.twice()

    @tl.core.constexpr_function
    def twice(self):
        return 2 * self.more

    @tl.core.constexpr_function
    def address(self):
        return self.pointer

    @tlx_xdsl.jit
    def sum(self, i):
        return self.load(i) + self.more


@tl.core._aggregate
class Nested:
    child: Child
    size: tl.constexpr = 8


def kernel_of(Child, Nested, jit):
    @jit
    def kernel(p, out, n):
        i = tl.arange(0, 8)
        c = Child(2, p)
        tl.store(out + i, c.sum(i) + c.both())
        d = tl.aggregate_replace(c, more=10, pointer=p + 1)
        tl.store(out + 8 + i, d.sum(i))
        e = tl.aggregate_replace(c, pointer=p + 2)
        if n > 3:
            e = Child(factor=2, pointer=p)
        e = Nested(e)
        tl.store(out + 16 + i, e.child.load(i) + e.size)

    return kernel


def run(kernel):
    p, out = np.arange(16, dtype=np.int32), np.zeros(24, np.int32)
    tlx_xdsl.interpret(kernel, 1, p, out, 1, jobs=1)
    i = np.arange(8)
    np.testing.assert_array_equal(out, np.concatenate((2 * i + 3 + 8, 2 * (i + 1) + 10, 2 * (i + 2) + 8)))


def test_an_aggregate_has_the_fields_methods_and_defaults_of_its_base() -> None:
    run(kernel_of(Child, Nested, tlx_xdsl.jit))


@only_on(NEWEST, "aggregates that inherit")
def test_aggregates_of_triton_are_the_same() -> None:
    import triton
    from triton.language.core import _aggregate as aggregate

    @aggregate
    class TritonBase:
        factor: triton.language.constexpr
        pointer: triton.language.tensor

        @triton.jit
        def load(self, i):
            return tl.load(self.pointer + i) * self.factor

    @aggregate
    class TritonChild(TritonBase):
        more: triton.language.constexpr = 3

        @triton.constexpr_function
        def both(self):
            return self.factor + 2 * self.more

        @triton.jit
        def sum(self, i):
            return self.load(i) + self.more

    @aggregate
    class TritonNested:
        child: TritonChild
        size: triton.language.constexpr = 8

    run(kernel_of(TritonChild, TritonNested, tlx_xdsl.jit))


def test_an_aggregate_inherits_from_aggregates() -> None:
    class Plain:
        pass

    class Mixed(Base, Plain):
        pass

    with pytest.raises(TypeError, match="the aggregate 'Mixed' inherits from 'Plain', which is no aggregate"):
        tl.core._aggregate(Mixed)


# Refusals -----------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def unknown_field(p):
    c = Child(2, p)
    c = tl.aggregate_replace(c, less=10)


@tlx_xdsl.jit
def no_aggregate(p):
    p = tl.aggregate_replace(p, more=10)


@tlx_xdsl.jit
def missing(p):
    Child(2)


@tlx_xdsl.jit
def of_dataclasses(p):
    dataclasses.replace(Child(2, p), pointer=p)


@tlx_xdsl.jit
def run_time(p):
    c = Child(2, p)
    tl.store(c.address(), 1)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (unknown_field, "'Child' has no field 'less', its fields are factor, pointer, more"),
        (
            no_aggregate,
            "tl.aggregate_replace takes an aggregate and values of its fields by name, found a runtime value",
        ),
        (missing, "Child: missing a required argument: 'pointer', expected Child\\(factor, pointer, more=3\\)"),
        (of_dataclasses, "found a runtime value of type .*; use tl.aggregate_replace"),
        (run_time, "address: AttributeError: the field 'pointer' of 'Child' is known at run time only"),
    ],
)
def test_refusals(kernel, message) -> None:
    with pytest.raises(CompilationError, match=message) as found:
        tlx_xdsl.interpret(kernel, 1, np.zeros(1, np.int32), jobs=1)
    assert found.value.location is not None


def test_outside_of_kernels() -> None:
    class Made:
        __tlx_aggregate__ = ("x", "y")

        def __init__(self, x, y):
            self.x, self.y = x, y

    made = tl.aggregate_replace(Made(1, 2), y=5)
    assert (made.x, made.y) == (1, 5)
    with pytest.raises(TypeError, match="Made has no field 'z', its fields are x, y"):
        tl.aggregate_replace(made, z=1)
    with pytest.raises(TypeError, match="expects an aggregate instance, got int"):
        tl.aggregate_replace(3, z=1)
