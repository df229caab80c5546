"""Philox4x32 in numpy, and what Triton makes of its numbers (Salmon et al., "Parallel Random Numbers", SC 2011)."""

import numpy as np

_U64 = np.uint64
_MULTIPLIERS = (_U64(0xD2511F53), _U64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)


def philox(seed: int, counters: tuple[np.ndarray, ...], rounds: int = 10) -> tuple[np.ndarray, ...]:
    """Four arrays of random 32-bit numbers for four arrays of counters."""
    c = [np.asarray(counter).astype(np.uint32).astype(_U64) for counter in counters]
    c0, c1, c2, c3 = np.broadcast_arrays(*c)
    keys = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    low, shift = _U64(0xFFFFFFFF), _U64(32)
    for _ in range(rounds):
        first, second = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            (second >> shift) ^ c1 ^ _U64(keys[0]), second & low,
            (first >> shift) ^ c3 ^ _U64(keys[1]), first & low,
        )  # fmt: skip
        keys = [(key + step) & 0xFFFFFFFF for key, step in zip(keys, _WEYL, strict=True)]
    return tuple(number.astype(np.uint32) for number in (c0, c1, c2, c3))


def random_bits(seed: int, offsets: np.ndarray, rounds: int = 10) -> tuple[np.ndarray, ...]:
    """The four streams of `tl.randint4x`."""
    zero = np.zeros_like(offsets)
    return philox(seed, (offsets, zero, zero, zero), rounds)


def uniform(bits: np.ndarray) -> np.ndarray:
    """Numbers from 0 up to 1, as `tl.rand` makes them: the magnitude of the bits as a signed number, scaled."""
    signed = bits.view(np.int32)
    return np.where(signed < 0, -signed - 1, signed).astype(np.float32) * np.float32(4.6566127342e-10)
