"""The outputs of a gated delta rule by chunks: from the state before a chunk, and from the rows before in the chunk.

o = scale * (exp(g) * (q h) + (q k^T, masked and decayed) v_new), for each chunk by itself.
"""

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.plain.delta_state import LARGE, SIZES, gates, shapes, sizes_of
from tests.gallery.plain.family import Arrays, Config, Family, Problem, Shape, ceil


@tlx_xdsl.jit
def delta_output(
    q_ptr, k_ptr, v_new_ptr, h_ptr, g_ptr, o_ptr, scale, LENGTH, HEADS: tl.constexpr,
    K: tl.constexpr, V: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_V: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    i_v = tl.program_id(0)
    chunk = tl.program_id(1)
    batch = tl.program_id(2) // HEADS
    head = tl.program_id(2) % HEADS
    t = chunk * CHUNK + tl.arange(0, CHUNK)
    values = i_v * BLOCK_V + tl.arange(0, BLOCK_V)
    of_keys = (batch * LENGTH * HEADS + head) * K
    of_values = (batch * LENGTH * HEADS + head) * V
    h_ptr += ((batch * tl.cdiv(LENGTH, CHUNK) + chunk) * HEADS + head) * K * V

    o = tl.zeros((CHUNK, BLOCK_V), tl.float32)
    scores = tl.zeros((CHUNK, CHUNK), tl.float32)
    for first in range(0, K, BLOCK_K):
        keys = first + tl.arange(0, BLOCK_K)
        rows_mask = (t[:, None] < LENGTH) & (keys[None, :] < K)
        q = tl.load(q_ptr + of_keys + t[:, None] * HEADS * K + keys[None, :], mask=rows_mask, other=0.0)
        k = tl.load(k_ptr + of_keys + t[:, None] * HEADS * K + keys[None, :], mask=rows_mask, other=0.0)
        h_mask = (keys[:, None] < K) & (values[None, :] < V)
        h = tl.load(h_ptr + keys[:, None] * V + values[None, :], mask=h_mask, other=0.0)
        o = tl.dot(q, h, o)
        scores = tl.dot(q, k.T, scores)

    g = tl.load(g_ptr + (batch * LENGTH + t) * HEADS + head, mask=t < LENGTH, other=0.0)
    o = o * tl.exp(g)[:, None]
    keep = (t[:, None] >= t[None, :]) & (t[:, None] < LENGTH)
    scores = tl.where(keep, scores * tl.exp(g[:, None] - g[None, :]), 0.0)
    v_mask = (t[:, None] < LENGTH) & (values[None, :] < V)
    v = tl.load(v_new_ptr + of_values + t[:, None] * HEADS * V + values[None, :], mask=v_mask, other=0.0)
    o = (o + tl.dot(scores.to(v.dtype), v)) * scale
    tl.store(o_ptr + of_values + t[:, None] * HEADS * V + values[None, :], o.to(o_ptr.dtype.element_ty), mask=v_mask)


CONFIG = {"BLOCK_K": 64, "BLOCK_V": 64, "CHUNK": 64, "num_warps": 4, "num_stages": 2}
TLX_COMPILE = {
    "delta_output": {
        "signature": {
            **dict.fromkeys(("q_ptr", "k_ptr", "v_new_ptr", "h_ptr"), "*bf16:16"),
            "g_ptr": "*fp32:16",
            "o_ptr": "*bf16:16",
            "scale": "fp32",
            "LENGTH": "i32",
        },
        "constexprs": {"HEADS": 16, "K": 128, "V": 128, "BLOCK_K": 64, "BLOCK_V": 64, "CHUNK": 64},
        "num_warps": 4,
    }
}


def _make(shape: Shape, new: Arrays, config: Config) -> Problem:
    batch, length, heads, keys, values = sizes_of(shape)
    chunk = config["CHUNK"]
    chunks = ceil(length, chunk)
    q, k = (new.normal(batch, length, heads, keys, dtype="bf16") for _ in range(2))
    v_new = new.normal(batch, length, heads, values, dtype="bf16")
    h = new.normal(batch, chunks, heads, keys, values, dtype="bf16")
    g = gates(new, shape, chunk)
    o = new.poisoned(batch, length, heads, values, dtype="bf16")

    def reference(xp, x):
        parts = []
        for at, first in enumerate(range(0, length, chunk)):
            here = slice(first, min(first + chunk, length))
            rows = here.stop - here.start
            gate = xp.swapaxes(x["g"][:, here], 1, 2)
            out = xp.einsum("bthk,bhkv->bhtv", x["q"][:, here], x["h"][:, at]) * xp.exp(gate)[..., None]
            scores = xp.einsum("bthk,bshk->bhts", x["q"][:, here], x["k"][:, here])
            keep = xp.arange(rows)[:, None] >= xp.arange(rows)[None, :]
            decay = xp.exp(xp.where(keep, gate[..., :, None] - gate[..., None, :], scores * 0))
            scores = xp.where(keep, scores * decay, scores * 0)
            out = out + xp.einsum("bhts,bshv->bhtv", scores, x["v_new"][:, here])
            parts.append(xp.swapaxes(out, 1, 2) * keys**-0.5)
        return {"o": xp.concatenate(parts, 1)}

    return Problem(
        (ceil(values, config["BLOCK_V"]), chunks, batch * heads),
        {
            "q_ptr": q, "k_ptr": k, "v_new_ptr": v_new, "h_ptr": h, "g_ptr": g, "o_ptr": o,
            "scale": keys**-0.5, "LENGTH": length,
        },
        {"q": q, "k": k, "v_new": v_new, "h": h, "g": g, "o": o},
        ("o",),
        reference,
        2.0 * batch * length * heads * (keys * values + chunk * (keys + values)),
    )  # fmt: skip


FAMILY = Family(
    delta_output,
    _make,
    CONFIG,
    shapes(*SIZES),
    shapes(*LARGE),
    tuple(
        {"BLOCK_K": k, "BLOCK_V": v, "CHUNK": 64, "num_warps": warps, "num_stages": stages}
        for k in (64, 128)
        for v in (64, 128)
        for warps in (4, 8)
        for stages in (2, 3)
    ),
    # The scores are rounded to bf16 for the second product.
    tolerance=1e-3,
    constants=lambda shape: {"HEADS": shape["heads"], "K": shape["K"], "V": shape["V"]},
)
