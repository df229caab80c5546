"""The states of a gated delta rule by chunks: a program for each head walks over the chunks of its sequence.

Before each chunk its state h is stored; the chunk's new values are u - w h, and the state after it is the state before,
decayed, plus k^T times the new values, each decayed from its row to the chunk's end.
"""

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.plain.family import Arrays, Config, Family, Problem, Shape, ceil


@tlx_xdsl.jit
def delta_state(
    k_ptr, w_ptr, u_ptr, g_ptr, h_ptr, v_new_ptr, LENGTH, HEADS: tl.constexpr,
    K: tl.constexpr, V: tl.constexpr, BLOCK_V: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Arrays are [batch, length, heads, K or V]; g has the sums of the gates' logarithms from the chunk's begin."""
    i_v = tl.program_id(0)
    batch = tl.program_id(1) // HEADS
    head = tl.program_id(1) % HEADS
    chunks = tl.cdiv(LENGTH, CHUNK)
    rows = tl.arange(0, CHUNK)
    keys = tl.arange(0, K)
    values = i_v * BLOCK_V + tl.arange(0, BLOCK_V)
    of_keys = (batch * LENGTH * HEADS + head) * K
    of_values = (batch * LENGTH * HEADS + head) * V
    h_ptr += (batch * chunks * HEADS + head) * K * V

    h = tl.zeros((K, BLOCK_V), tl.float32)
    for chunk in range(chunks):
        tl.store(
            h_ptr + chunk * HEADS * K * V + keys[:, None] * V + values[None, :],
            h.to(h_ptr.dtype.element_ty),
            mask=(values < V)[None, :],
        )
        t = chunk * CHUNK + rows
        w = tl.load(w_ptr + of_keys + t[:, None] * HEADS * K + keys[None, :], mask=t[:, None] < LENGTH, other=0.0)
        u_mask = (t[:, None] < LENGTH) & (values[None, :] < V)
        u = tl.load(u_ptr + of_values + t[:, None] * HEADS * V + values[None, :], mask=u_mask, other=0.0)
        v_new = u.to(tl.float32) - tl.dot(w, h.to(w.dtype))
        tl.store(
            v_new_ptr + of_values + t[:, None] * HEADS * V + values[None, :],
            v_new.to(v_new_ptr.dtype.element_ty),
            mask=u_mask,
        )
        last = tl.minimum((chunk + 1) * CHUNK, LENGTH) - 1
        g_last = tl.load(g_ptr + (batch * LENGTH + last) * HEADS + head)
        g = tl.load(g_ptr + (batch * LENGTH + t) * HEADS + head, mask=t < LENGTH, other=0.0)
        v_new = tl.where((t < LENGTH)[:, None], v_new * tl.exp(g_last - g)[:, None], 0.0)
        h *= tl.exp(g_last)
        k = tl.load(k_ptr + of_keys + t[:, None] * HEADS * K + keys[None, :], mask=t[:, None] < LENGTH, other=0.0)
        h = tl.dot(k.T, v_new.to(k.dtype), h)


CONFIG = {"BLOCK_V": 64, "CHUNK": 64, "num_warps": 4, "num_stages": 2}
TLX_COMPILE = {
    "delta_state": {
        "signature": {
            **dict.fromkeys(("k_ptr", "w_ptr", "u_ptr", "h_ptr", "v_new_ptr"), "*bf16:16"),
            "g_ptr": "*fp32:16",
            "LENGTH": "i32",
        },
        "constexprs": {"HEADS": 16, "K": 128, "V": 128, "BLOCK_V": 64, "CHUNK": 64},
        "num_warps": 4,
    }
}


def sizes_of(shape: Shape) -> tuple[int, int, int, int, int]:
    """Batches, length, heads, and the widths of keys and values."""
    batch, length, heads, keys, values = (shape[each] for each in ("batch", "length", "heads", "K", "V"))
    return batch, length, heads, keys, values


def gates(new: Arrays, shape: Shape, chunk: int):
    """The sums of negative logarithms of gates, from the begin of a chunk."""
    batch, length, heads, _, _ = sizes_of(shape)

    def summed(g):
        for first in range(0, length, chunk):
            g[:, first : first + chunk] = g[:, first : first + chunk].cumsum(1)
        return g

    return new.uniform(batch, length, heads, low=-0.1, high=0.0, then=summed)


def _make(shape: Shape, new: Arrays, config: Config) -> Problem:
    batch, length, heads, keys, values = sizes_of(shape)
    chunk = config["CHUNK"]
    chunks = ceil(length, chunk)
    k, w = (new.normal(batch, length, heads, keys, dtype="bf16", scale=keys**-0.5) for _ in range(2))
    u = new.normal(batch, length, heads, values, dtype="bf16")
    g = gates(new, shape, chunk)
    h = new.poisoned(batch, chunks, heads, keys, values, dtype="bf16")
    v_new = new.poisoned(batch, length, heads, values, dtype="bf16")

    def reference(xp, x):
        state = xp.einsum("bthk,bthv->bhkv", x["k"][:, :1], x["u"][:, :1]) * 0
        states, all_new = [], []
        for first in range(0, length, chunk):
            here = slice(first, min(first + chunk, length))
            states.append(state)
            fresh = x["u"][:, here] - xp.einsum("bthk,bhkv->bthv", x["w"][:, here], state)
            all_new.append(fresh)
            gate = x["g"][:, here]
            decayed = fresh * xp.exp(gate[:, -1:] - gate)[..., None]
            state = state * xp.exp(gate[:, -1])[..., None, None]
            state = state + xp.einsum("bthk,bthv->bhkv", x["k"][:, here], decayed)
        return {"h": xp.stack(states, 1), "v_new": xp.concatenate(all_new, 1)}

    return Problem(
        (ceil(values, config["BLOCK_V"]), batch * heads),
        {"k_ptr": k, "w_ptr": w, "u_ptr": u, "g_ptr": g, "h_ptr": h, "v_new_ptr": v_new, "LENGTH": length},
        {"k": k, "w": w, "u": u, "g": g, "h": h, "v_new": v_new},
        ("h", "v_new"),
        reference,
        4.0 * batch * length * heads * keys * values,
    )


def shapes(*sizes: tuple[int, int, int, int, int]) -> tuple[Shape, ...]:
    """Shapes of batches, length, heads, and the widths of keys and values."""
    names = ("batch", "length", "heads", "K", "V")
    return tuple(dict(zip(names, each, strict=True)) for each in sizes)


SIZES = (
    (1, 256, 2, 64, 64), (1, 200, 1, 128, 128), (2, 64, 1, 64, 128), (1, 1, 1, 64, 64), (1, 65, 2, 128, 64),
    (1, 300, 1, 64, 96), (2, 130, 3, 64, 64), (1, 512, 1, 128, 256), (1, 17, 4, 64, 64), (3, 63, 1, 128, 128),
    (1, 1000, 1, 64, 64), (1, 127, 2, 64, 200), (1, 128, 1, 128, 32), (2, 192, 2, 64, 64), (1, 320, 1, 128, 128),
    (1, 66, 1, 64, 8), (1, 449, 1, 64, 64), (1, 640, 1, 64, 128), (4, 33, 1, 64, 64), (1, 384, 3, 128, 64),
)  # fmt: skip
LARGE = ((1, 32768, 16, 128, 128), (4, 8192, 16, 64, 64), (4, 8192, 16, 128, 128), (1, 16384, 32, 128, 128))

FAMILY = Family(
    delta_state,
    _make,
    CONFIG,
    shapes(*SIZES),
    shapes(*LARGE),
    tuple(
        {"BLOCK_V": v, "CHUNK": 64, "num_warps": warps, "num_stages": stages}
        for v in (32, 64, 128)
        for warps in (4, 8)
        for stages in (1, 2, 3, 4)
    ),
    # The states are rounded to bf16 for the products of every chunk.
    tolerance=2e-3,
    constants=lambda shape: {"HEADS": shape["heads"], "K": shape["K"], "V": shape["V"]},
)
