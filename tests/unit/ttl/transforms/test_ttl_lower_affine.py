"""Affine indices as arithmetic: the same numbers, also where they are negative; and what is known of them is true."""

from __future__ import annotations

import random
from itertools import product

from xdsl.dialects import affine, arith, func, scf
from xdsl.dialects.builtin import AffineMapAttr, IndexType, ModuleOp
from xdsl.dialects.test import TestOp as Use
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from tlx_xdsl.transforms.rewriting import ops_of
from tlx_xdsl.ttl.analysis.core_values import CoreValues
from tlx_xdsl.ttl.analysis.multiples import is_multiple_of
from tlx_xdsl.ttl.analysis.signs import is_non_negative
from tlx_xdsl.ttl.transforms.affine.lower_affine import LowerAffinePass

EXPRESSIONS = 120
VALUES = (-9, -4, -1, 0, 1, 3, 4, 10)


def random_expression(rng: random.Random, depth: int) -> AffineExpr:
    if depth == 0 or rng.random() < 0.2:
        leaves = [AffineExpr.dimension(0), AffineExpr.dimension(1), AffineExpr.constant(rng.randint(-5, 5))]
        return rng.choice(leaves)
    left = random_expression(rng, depth - 1)
    number = rng.choice([1, 2, 3, 4, 8])
    match rng.randrange(5):
        case 0:
            return left + random_expression(rng, depth - 1)
        case 1:
            return left * rng.randint(-3, 3)
        case 2:
            return left % number
        case 3:
            return left // number
        case _:
            return left.ceil_div(number)


def test_expressions_have_the_same_values():
    rng = random.Random(1)
    for _ in range(EXPRESSIONS):
        expression = random_expression(rng, 3)
        block = Block(arg_types=[IndexType(), IndexType()])
        apply = affine.ApplyOp(block.args, AffineMapAttr(AffineMap(2, 0, (expression,))))
        use = Use([apply.result])
        block.add_ops([apply, use, func.ReturnOp()])
        LowerAffinePass().run(ModuleOp([func.FuncOp("f", ((IndexType(), IndexType()), ()), Region(block))]))
        for numbers in product(VALUES, repeat=2):
            values = CoreValues(None)
            values.known.update(dict(zip(block.args, numbers, strict=True)))
            assert values.of(use.operands[0]) == expression.eval(list(numbers), []), str(expression)


def in_loop(expression: AffineExpr, lower: int, step: int) -> tuple[ModuleOp, Use]:
    """A function that uses an expression of the index of a loop from `lower` on."""
    body = Block(arg_types=[IndexType()])
    apply = affine.ApplyOp([body.args[0], body.args[0]], AffineMapAttr(AffineMap(2, 0, (expression,))))
    use = Use([apply.result])
    body.add_ops([apply, use, affine.YieldOp.get()])
    loop = affine.ForOp.from_region([], [], [], [], lower, lower + 6 * step, Region(body), step)
    function = func.FuncOp("f", ((), ()), Region(Block([loop, func.ReturnOp()])))
    return ModuleOp([function]), use


def numbers_of(expression: AffineExpr, lower: int, step: int) -> list[int]:
    return [expression.eval([index, index], []) for index in range(lower, lower + 6 * step, step)]


def claims(value: SSAValue) -> tuple[bool, list[int]]:
    """Return the claims: whether the value is never negative, and of which numbers it is a multiple."""
    return is_non_negative(value), [number for number in range(1, 9) if is_multiple_of(value, number)]


def test_claims_about_indices_are_true_before_and_after():
    rng = random.Random(2)
    non_negative = multiples = 0
    for _ in range(EXPRESSIONS):
        expression = random_expression(rng, 3)
        lower, step = rng.choice([-2, 0, 0, 4]), rng.choice([1, 2, 4])
        module, use = in_loop(expression, lower, step)
        numbers = numbers_of(expression, lower, step)
        for _ in range(2):
            sign, divisors = claims(use.operands[0])
            assert not sign or min(numbers) >= 0, str(expression)
            assert all(number % divisor == 0 for number in numbers for divisor in divisors), str(expression)
            non_negative += sign
            multiples += len(divisors) > 1
            LowerAffinePass().run(module)
        assert ops_of(module, scf.ForOp)
        assert not any(op.name.startswith("affine.") for op in module.walk())
    # Analyses that claim nothing would be right, too.
    assert non_negative > EXPRESSIONS // 5
    assert multiples > EXPRESSIONS // 5


def test_signs_of_arithmetic():
    """The larger one of a negative index and 3 is not negative; a difference may be, whatever its sides."""
    block = Block(arg_types=[IndexType()])
    three = arith.ConstantOp.from_int_and_width(3, IndexType())
    largest = arith.MaxSIOp(block.args[0], three.result)
    smallest = arith.MinSIOp(block.args[0], three.result)
    difference = arith.SubiOp(three.result, largest.result)
    block.add_ops([three, largest, smallest, difference])
    claimed = [is_non_negative(op.results[0]) for op in (three, largest, smallest, difference)]
    assert claimed == [True, True, False, False]
