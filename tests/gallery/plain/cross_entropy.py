"""The cross entropy of softmax(x @ w^T) and a target for each row, without the matrix of logits in memory.

A program has a block of rows: an outer loop goes over the vocabulary with an online log-sum-exp, an inner one over the
depth of the product.
"""

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.gallery.plain.family import Arrays, Config, Family, Problem, Shape, ceil, tiles


@tlx_xdsl.jit
def cross_entropy(
    x_ptr, w_ptr, target_ptr, loss_ptr, ROWS, VOCABULARY, DEPTH, stride_x, stride_w,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    depth = tl.arange(0, BLOCK_K)
    target = tl.load(target_ptr + rows, mask=rows < ROWS, other=0)
    most = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    chosen = tl.zeros((BLOCK_M,), tl.float32)
    for first in range(0, VOCABULARY, BLOCK_N):
        words = first + tl.arange(0, BLOCK_N)
        logits = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, DEPTH, BLOCK_K):
            k = start + depth
            x = tl.load(
                x_ptr + rows[:, None] * stride_x + k[None, :],
                mask=(rows[:, None] < ROWS) & (k[None, :] < DEPTH),
                other=0.0,
            )
            w = tl.load(
                w_ptr + words[:, None] * stride_w + k[None, :],
                mask=(words[:, None] < VOCABULARY) & (k[None, :] < DEPTH),
                other=0.0,
            )
            logits = tl.dot(x, w.T, logits)
        logits = tl.where(words[None, :] < VOCABULARY, logits, float("-inf"))
        chosen += tl.sum(tl.where(words[None, :] == target[:, None], logits, 0.0), 1)
        higher = tl.maximum(most, tl.max(logits, 1))
        total = total * tl.exp(most - higher) + tl.sum(tl.exp(logits - higher[:, None]), 1)
        most = higher
    loss = most + tl.log(total) - chosen
    tl.store(loss_ptr + rows, loss, mask=rows < ROWS)


CONFIG = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8, "num_stages": 3}
TLX_COMPILE = {
    "cross_entropy": {
        "signature": {
            **dict.fromkeys(("x_ptr", "w_ptr"), "*bf16:16"),
            "target_ptr": "*i32:16",
            "loss_ptr": "*fp32:16",
            "ROWS": "i32",
            "VOCABULARY": "i32",
            **dict.fromkeys(("DEPTH", "stride_x", "stride_w"), "i32:16"),
        },
        "constexprs": {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
        "num_warps": 8,
    }
}


def _make(shape: Shape, new: Arrays, config: Config) -> Problem:
    rows, vocabulary, depth = (shape[each] for each in ("rows", "vocabulary", "depth"))
    x, w = new.normal(rows, depth, dtype="bf16"), new.normal(vocabulary, depth, dtype="bf16", scale=depth**-0.5)
    target, loss = new.below(vocabulary, rows), new.poisoned(rows, dtype="fp32")

    def reference(xp, x):
        logits = x["x"] @ xp.swapaxes(x["w"], 0, 1)
        most = xp.amax(logits, -1)
        chosen = logits[xp.arange(rows), x["target"]]
        return {"loss": xp.log(xp.sum(xp.exp(logits - most[:, None]), -1)) + most - chosen}

    return Problem(
        (ceil(rows, config["BLOCK_M"]),),
        {
            "x_ptr": x, "w_ptr": w, "target_ptr": target, "loss_ptr": loss,
            "ROWS": rows, "VOCABULARY": vocabulary, "DEPTH": depth, "stride_x": depth, "stride_w": depth,
        },
        {"x": x, "w": w, "target": target, "loss": loss},
        ("loss",),
        reference,
        2.0 * rows * vocabulary * depth,
    )  # fmt: skip


def _shapes(*sizes: tuple[int, int, int]) -> tuple[Shape, ...]:
    names = ("rows", "vocabulary", "depth")
    return tuple(dict(zip(names, each, strict=True)) for each in sizes)


FAMILY = Family(
    cross_entropy,
    _make,
    CONFIG,
    _shapes(
        (128, 384, 128), (200, 500, 72), (1, 1000, 64), (129, 130, 200), (64, 128, 320), (300, 127, 64), (17, 33, 51),
        (256, 256, 256), (1, 1, 1), (128, 2000, 8), (77, 640, 136), (513, 128, 64), (128, 129, 1000), (16, 4096, 64),
        (255, 255, 255), (130, 300, 192), (384, 384, 96), (2, 5000, 32), (1024, 100, 16), (33, 1025, 104),
    ),
    _shapes((16896, 32000, 1024), (16896, 32000, 2048), (8448, 50304, 768), (33792, 16384, 512)),
    tiles((64, 128), (128, 256), (64,)) + tiles((256,), (128,), (64,)) + tiles((128,), (128,), (32, 128)),
)  # fmt: skip
