"""Division by a number that only the launch knows, in a kernel: a product and a shift instead of some 25 instructions.

    by = divisor(tiles)                       # on the host, once for a launch
    quotient = divided(tile, by)              # in the kernel

Granlund and Montgomery, "Division by Invariant Integers using Multiplication" (PLDI 1994), section 4, for dividends of
31 bits: with l = ceil(log2 d) and m = ceil(2^(31 + l) / d), which has 32 bits, n // d = n * m // 2^(31 + l).
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic

import tlx_xdsl
import tlx_xdsl.language as tl


def divisor(number: int) -> tuple[int, int]:
    """The factor (its 32 bits as a signed number) and the shift (bits) with which `divided` divides by `number`.

    Raises ValueError for a number outside of 1 to 2^31 - 1.
    """
    if not 1 <= number < 1 << 31:
        raise ValueError(f"expected a divisor of 1 to 2^31 - 1, got {number}")
    if number == 1:
        return 0, 0
    bits = (number - 1).bit_length()
    return -(-(1 << (31 + bits)) // number) - (1 << 32), bits - 1


def order_of_tiles(tiles_m: int, tiles_n: int, group_m: int) -> dict[str, int]:
    """The arguments with which a kernel finds its tiles, `group_m` of them along M (`gemm_device.tile_offsets`)."""
    group, rest = divisor(group_m * tiles_n), divisor(tiles_m % group_m or 1)
    return {"GROUP_FACTOR": group[0], "GROUP_SHIFT": group[1], "REST_FACTOR": rest[0], "REST_SHIFT": rest[1]}


@tlx_xdsl.jit
def divided(n, by):
    """Return n // d for 0 <= n < 2^31, where `by` is what `divisor` found for d."""
    factor, shift = by
    quotient = tl.umulhi(n.to(tl.uint32, bitcast=True), factor.to(tl.uint32, bitcast=True)) >> shift
    # No factor of 32 bits divides by 1.
    return tl.where(factor == 0, n, quotient.to(tl.int32, bitcast=True))
