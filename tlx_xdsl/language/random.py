"""Random numbers from a counter: the Philox generator.

J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011. A number
depends on a key and a counter only, so programs draw from one stream without sharing anything. The key is the seed,
the counter is the offset, low word first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from .compile_time import constexpr_function
from .core import static_range, to_tensor
from .creation import zeros_like
from .dtypes import dtype, get_int_dtype, int32, int64, uint32, uint64
from .marks import library
from .math import cos, log, maximum, sin, sqrt, umulhi, where

if TYPE_CHECKING:
    from .arguments import Value
    from .objects import tensor

    # In the language, this annotation says that a value is known at compile time; its type can be any.
    constexpr: TypeAlias = Any
else:
    from .compile_time import constexpr

__all__ = [
    "pair_uniform_to_normal",
    "philox",
    "philox_impl",
    "rand",
    "rand4x",
    "randint",
    "randint4x",
    "randn",
    "randn4x",
    "uint_to_uniform_float",
]

_ROUNDS = 10
"""The rounds of Philox that pass all statistical tests with a margin (section 4.3)."""

_MULTIPLIERS = {32: (0xD2511F53, 0xCD9E8D57), 64: (0xD2E7470EE14C6C93, 0xCA5A826395121157)}
_KEY_STEPS = {32: (0x9E3779B9, 0xBB67AE85), 64: (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)}
"""The constants of Philox4x32 and Philox4x64, by the bits of a word; the steps are of the golden ratio and sqrt(3)."""


@constexpr_function
def _word_of(element: dtype) -> dtype:
    """The type of the generator's words for a counter of type `element`."""
    return get_int_dtype(64 if element.primitive_bitwidth == 64 else 32, False)


@library()
def philox_impl(
    c0: Value, c1: Value, c2: Value, c3: Value, k0: Value, k1: Value, n_rounds: constexpr = _ROUNDS
) -> tuple[tensor, tensor, tensor, tensor]:
    """The four words of Philox4x32 for the counter (`c0`, `c1`, `c2`, `c3`) and the key (`k0`, `k1`), low words first.

    Words are unsigned integers of 32 bits, or of 64 bits (Philox4x64) when `c0` has 64.
    """
    word: constexpr = _word_of(to_tensor(c0).dtype)
    multipliers: constexpr = _MULTIPLIERS[word.primitive_bitwidth]
    steps: constexpr = _KEY_STEPS[word.primitive_bitwidth]
    c0, c1, c2, c3 = to_tensor(c0).to(word), to_tensor(c1).to(word), to_tensor(c2).to(word), to_tensor(c3).to(word)
    k0, k1 = to_tensor(k0).to(word), to_tensor(k1).to(word)
    for _ in static_range(n_rounds):
        high0, low0 = umulhi(c0, multipliers[0]), c0 * multipliers[0]
        high2, low2 = umulhi(c2, multipliers[1]), c2 * multipliers[1]
        c0, c1, c2, c3 = high2 ^ c1 ^ k0, low2, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + steps[0], k1 + steps[1]
    return c0, c1, c2, c3  # pyright: ignore[reportReturnType]


@library()
def philox(
    seed: Value, c0: Value, c1: Value, c2: Value, c3: Value, n_rounds: constexpr = _ROUNDS
) -> tuple[tensor, tensor, tensor, tensor]:
    """The four words of `philox_impl` for the key `seed`, an integer of up to 64 bits: its low and its high half.

    With 64-bit counters, the key's first word is the seed and the second is 0.
    """
    assert to_tensor(seed).dtype.is_int(), f"the seed must be an integer, found {to_tensor(seed).dtype}"
    key = to_tensor(seed).to(uint64)
    if to_tensor(c0).dtype.primitive_bitwidth == 64:
        return philox_impl(c0, c1, c2, c3, key, 0, n_rounds)
    return philox_impl(c0, c1, c2, c3, key.to(uint32), (key >> 32).to(uint32), n_rounds)


@library()
def randint4x(seed: Value, offset: Value, n_rounds: constexpr = _ROUNDS) -> tuple[tensor, tensor, tensor, tensor]:
    """Four blocks of random uint32 in the shape of `offset`, which says where in the stream of `seed` they stand."""
    offset = to_tensor(offset)
    assert offset.dtype.is_int(), f"offsets must be integers, found {offset.dtype}"
    low = offset.to(uint32)
    zero = zeros_like(low)
    if offset.dtype.primitive_bitwidth == 64:
        return philox(seed, low, (offset >> 32).to(uint32), zero, zero, n_rounds)
    return philox(seed, low, zero, zero, zero, n_rounds)


@library()
def randint(seed: Value, offset: Value, n_rounds: constexpr = _ROUNDS) -> tensor:
    """A block of random uint32 in the shape of `offset`: the first of `randint4x`."""
    return randint4x(seed, offset, n_rounds)[0]


# --- uniform floats -------------------------------------------------------------------------------------------------


@constexpr_function
def _unit(bits: int) -> float:
    """Factor by which the largest signed integer of `bits` bits, rounded to float32, stays below 1.

    The float32 below 2**-31, and for 64 bits the second one below 2**-63: Triton's numbers, bit for bit.
    """
    return (1 - 2.0**-24) * 2.0**-31 if bits == 32 else (1 - 2.0**-23) * 2.0**-63


@library()
def uint_to_uniform_float(x: tensor) -> tensor:
    """Random integers of 32 or 64 bits as float32, uniform in [0, 1).

    The sign bit folds the negative half over the other: every result has two integers, and 0 is one of them.
    """
    bits: constexpr = x.dtype.primitive_bitwidth
    assert x.dtype.is_int() and bits >= 32, f"'x' must be integers of 32 or 64 bits, found {x.dtype}"
    signed = x.to(int32 if bits == 32 else int64, bitcast=True)
    return where(signed < 0, ~signed, signed) * _unit(bits)


@library()
def rand4x(seed: Value, offsets: Value, n_rounds: constexpr = _ROUNDS) -> tuple[tensor, tensor, tensor, tensor]:
    """Four blocks of random float32, uniform in [0, 1), from the words of `randint4x`."""
    a, b, c, d = randint4x(seed, offsets, n_rounds)
    return uint_to_uniform_float(a), uint_to_uniform_float(b), uint_to_uniform_float(c), uint_to_uniform_float(d)


@library()
def rand(seed: Value, offset: Value, n_rounds: constexpr = _ROUNDS) -> tensor:
    """A block of random float32, uniform in [0, 1), in the shape of `offset`: the first of `rand4x`."""
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


# --- normal floats --------------------------------------------------------------------------------------------------


@library()
def pair_uniform_to_normal(u1: Value, u2: Value) -> tuple[tensor, tensor]:
    """Two independent standard normal numbers from two uniform ones in [0, 1): the Box-Muller transform (1958).

    `u1` counts as 1e-7 at least, since the logarithm of 0 has no value.
    """
    radius = sqrt(-2.0 * log(maximum(u1, 1.0e-7)))
    angle = 6.283185307179586 * u2
    return radius * cos(angle), radius * sin(angle)


@library()
def randn4x(seed: Value, offset: Value, n_rounds: constexpr = _ROUNDS) -> tuple[tensor, tensor, tensor, tensor]:
    """Four blocks of random float32 of the standard normal distribution, made of the pairs of `rand4x`."""
    u1, u2, u3, u4 = rand4x(seed, offset, n_rounds)
    a, b = pair_uniform_to_normal(u1, u2)
    c, d = pair_uniform_to_normal(u3, u4)
    return a, b, c, d


@library()
def randn(seed: Value, offset: Value, n_rounds: constexpr = _ROUNDS) -> tensor:
    """A block of random float32 of the standard normal distribution: the first of `randn4x`."""
    words = randint4x(seed, offset, n_rounds)
    return pair_uniform_to_normal(uint_to_uniform_float(words[0]), uint_to_uniform_float(words[1]))[0]
