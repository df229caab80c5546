"""Random plain kernels of products in loops, as text, and their launches at five sizes.

A kernel is one of five forms: blocks of K for a tile of a product; blocks of keys for rows of queries; a state that is
carried over chunks; products in an inner loop under an online reduction; a reduction without a product. How each
operand is addressed, masked and stored, what is carried beside the accumulators, and what comes after the loop is
random.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.fuzz.plain_operands import HEAD, SIZES, Array, Axis, Operands, Program, Sizes


class Writer(Operands):
    """Writes one kernel."""

    # Forms -----------------------------------------------------------------------------------------------------------

    def program(self) -> Program:
        """The program of this writer's number."""
        forms = (self._product, self._queries, self._chunks, self._nested, self._reduction)
        return self.rng.choices(forms, (42, 26, 14, 10, 8))[0]()

    def _tile(self, block_m: int, block_n: int) -> tuple[Axis, Axis, Callable[[Sizes], tuple[int, ...]]]:
        """The axes of a tile and the grid: one axis of tiles in rows, in groups, or two axes."""
        self.size("M")
        self.size("N")
        lines = self.before
        order = self.rng.choice(("rows", "groups", "grid", "grid"))
        if order == "grid":
            lines += [f"row = tl.program_id(0) * {block_m}", f"column = tl.program_id(1) * {block_n}"]
        else:
            lines += ["pid = tl.program_id(0)", f"tiles_n = tl.cdiv(N, {block_n})"]
            if order == "rows":
                lines += [f"row = pid // tiles_n * {block_m}", f"column = pid % tiles_n * {block_n}"]
            else:
                lines += [
                    "first_m = pid // (2 * tiles_n) * 2",
                    f"group_m = min(tl.cdiv(M, {block_m}) - first_m, 2)",
                    f"row = (first_m + pid % (2 * tiles_n) % group_m) * {block_m}",
                    f"column = pid % (2 * tiles_n) // group_m * {block_n}",
                ]
        lines += [f"rows = row + tl.arange(0, {block_m})", f"columns = column + tl.arange(0, {block_n})"]

        def grid(sizes: Sizes) -> tuple[int, ...]:
            m, n = -(-sizes["M"] // block_m), -(-sizes["N"] // block_n)
            return (m, n) if order == "grid" else (m * n,)

        return Axis("M", block_m, "rows", "row"), Axis("N", block_n, "columns", "column"), grid

    def _shift(self, part: float) -> None:
        """Let some loops begin at an argument's value, which may lie at their end or after it."""
        self.is_shifted = self.chance(part)
        if self.is_shifted:
            self.parameters.append(("BEGIN", "size BEGIN"))

    def _loop(self, axis: Axis, *, indent: str = "", end: str = "") -> list[str]:
        """The line of a loop along an axis, and those that name its indices."""
        end = end or axis.size
        begin = "BEGIN" if self.is_shifted else "0"
        kind = self.rng.randrange(4)
        if kind == 0 and not self.is_shifted and end == axis.size:
            head = [f"for step in range(tl.cdiv({end}, {axis.block})):", f"    {axis.start} = step * {axis.block}"]
        else:
            walker = "tl.range" if kind == 1 else "range"
            head = [f"for {axis.start} in {walker}({begin}, {end}, {axis.block}):"]
        head.append(f"    {axis.vector} = {axis.start} + {axis.lanes}")
        return [indent + line for line in head]

    def _product(self) -> Program:
        """A tile of one or two products, over blocks of K."""
        block_m, block_n, block_k = self._blocks()
        m, n, grid = self._tile(block_m, block_n)
        self.size("K")
        self._shift(0.1)
        k = Axis("K", block_k, "ks", "k", is_looped=True, lanes="depth")
        self.before.append(f"depth = tl.arange(0, {block_k})")
        self.before.append(f"acc = tl.zeros(({block_m}, {block_n}), tl.float32)")
        second = self.rng.choices(("", "right", "both"), (55, 30, 15))[0]
        self.load("a", m, k)
        self.load("b", k, n)
        left = "a"
        if self.chance(0.12):
            # The left operand is computed: registers, or a buffer that threads write.
            self.load_line("gain", k)
            self.body.append("scaled = (a * gain[None, :]).to(a.dtype)")
            left = "scaled"
        scale = self.rng.choices(("", "rows", "number"), (82, 9, 9))[0]
        if scale:
            blocks = Axis("BLOCKS", 1, "", "")
            self.arrays.append(
                Array("s", "fp32", ("M", blocks.size) if scale == "rows" else (blocks.size,), is_aligned=False)
            )
            self.parameters.append(("s_ptr", "pointer s"))
            if scale == "rows":
                self.parameters.append(("stride_s", "stride s 0"))
                mask = "" if self.has_whole_blocks else ", mask=rows < M, other=0.0"
                self.body.append(f"s = tl.load(s_ptr + rows * stride_s + k // {block_k}{mask})[:, None]")
            else:
                self.body.append(f"s = tl.load(s_ptr + k // {block_k})")
            self.body.append(f"acc += tl.dot({left}, b) * s")
        else:
            form = self.rng.choice(("acc = tl.dot({a}, b, acc)", "acc += tl.dot({a}, b)"))
            self.body.append(form.format(a=left))
        results = ["acc"]
        if second:
            self.before.append(f"other = tl.zeros(({block_m}, {block_n}), tl.float32)")
            if second == "both":
                self.load("c", m, k)
            self.load("d", k, n)
            self.body.append(f"other = tl.dot({'c' if second == 'both' else 'a'}, d, other)")
            results.append("other")
        rows_only = self._carried_rows(block_m, "a")
        if self.chance(0.08):
            self.body += [f"if k >= {2 * block_k}:", "    acc = acc * 0.5"]
        self._after_product(results, rows_only, m, n)
        return self._done("product", k, grid, {"M": block_m, "N": block_n, "K": block_k})

    def _carried_rows(self, block_m: int, tile: str) -> list[str]:
        """Draw values that a loop carries beside the accumulators: sums, maxima, counts."""
        found: list[str] = []
        if self.chance(0.2):
            self.before.append(f"total = tl.zeros(({block_m},), tl.float32)")
            self.body.append(f"total += tl.sum({tile}.to(tl.float32), 1)")
            found.append("total")
        if self.chance(0.12):
            self.before.append(f"most = tl.full(({block_m},), -1.0e30, tl.float32)")
            self.body.append(f"most = tl.maximum(most, tl.max({tile}.to(tl.float32), 1))")
            found.append("most")
        if self.chance(0.08):
            self.before.append("turns = 0")
            self.body.append("turns += 1")
            found.append("turns.to(tl.float32)")
        return found

    def _after_product(self, results: list[str], rows_only: list[str], m: Axis, n: Axis) -> None:
        after = self.after
        value = results[0]
        if len(results) == 2:
            how = self.rng.choice(("gate", "add", "apart"))
            if how == "gate":
                after.append("out = acc * tl.sigmoid(acc) * other")
            elif how == "add":
                after.append("out = acc + other * 0.5")
            else:
                after.append("out = acc")
                self.store("more", "other", m, n, after)
        else:
            after.append(f"out = {value}")
        if self.chance(0.3):
            self.load_line("bias", n, in_loop=False)
            after.append("out = out + bias[None, :]")
        if self.chance(0.15):
            self.load_line("factor", m, in_loop=False)
            after.append("out = out * factor[:, None]")
        activations = ("out * tl.sigmoid(1.702 * out)", "tl.maximum(out, 0.0)", "tl.where(out > 0, out, 0.1 * out)")
        activation = self.rng.choice((*activations, "", "", ""))
        if activation:
            after.append(f"out = {activation}")
        for at, each in enumerate(rows_only):
            if each == "turns.to(tl.float32)":
                after.append(f"out = out + {each}")
            elif self.chance(0.5):
                after.append(f"out = out + {each}[:, None]")
            else:
                self.store(f"line{at}", each, m, None, after)
        if self.chance(0.2):
            summed = (
                "out" if n.is_whole or self.has_whole_blocks else f"tl.where({n.vector}[None, :] < {n.size}, out, 0.0)"
            )
            name = "sums"
            self.arrays.append(Array(name, "fp32", ("M", "TILES_N"), "out", is_aligned=False))
            self.parameters += [(f"{name}_ptr", f"pointer {name}"), (f"stride_{name}", f"stride {name} 0")]
            mask = "" if self.has_whole_blocks else ", mask=rows < M"
            after.append(
                f"tl.store({name}_ptr + rows * stride_{name} + column // {n.block}, tl.sum({summed}, 1){mask})"
            )
        self.store("out", "out", m, n, after)

    def _queries(self) -> Program:
        """Rows of queries over blocks of keys: two products, the second of what the first gives."""
        block_m = self.rng.choice((64, 64, 128))
        block_n = self.rng.choice((32, 64, 64, 128))
        dim, width = self.rng.choice((32, 64, 64, 128)), self.rng.choice((32, 64, 64, 128))
        self.size("M")
        self.size("L")
        self._shift(0.2)
        self.before += [
            f"row = tl.program_id(0) * {block_m}", f"rows = row + tl.arange(0, {block_m})",
            f"lanes = tl.arange(0, {block_n})", f"dims = tl.arange(0, {dim})", f"wide = tl.arange(0, {width})",
        ]  # fmt: skip
        m = Axis("M", block_m, "rows", "row")
        keys = Axis("L", block_n, "columns", "start", is_looped=True, lanes="lanes")
        d, w = Axis(str(dim), dim, "dims", "0"), Axis(str(width), width, "wide", "0")
        weights = self.rng.choice(("softmax", "softmax", "linear", "sigmoid", "relu"))
        self.load("q", m, d, in_loop=False)
        self.before.append(f"acc = tl.zeros(({block_m}, {width}), tl.float32)")
        early = self.chance(0.3)
        """Whether the values are loaded before the first product."""
        self.load("k", d, keys)
        if early:
            self.load("v", keys, w)
        self.body.append(f"scores = tl.dot(q, k) * {dim**-0.5:.6f}")
        bias = self.rng.choices(("", "keys", "pairs"), (70, 15, 15))[0]
        if bias == "keys":
            self.load_line("bias", keys)
            self.body.append("scores += bias[None, :]")
        elif bias == "pairs":
            self.load("bias", m, keys)
            self.body.append("scores += bias.to(tl.float32)")
        causal = self.chance(0.4)
        mask = self._kept(causal=causal)
        if weights == "softmax":
            if mask:
                self.body.append(f"scores = tl.where({mask}, scores, -1.0e30)")
            self.before += [
                f"m_i = tl.full(({block_m},), -1.0e30, tl.float32)",
                f"l_i = tl.zeros(({block_m},), tl.float32)",
            ]
            self.body += [
                "m_new = tl.maximum(m_i, tl.max(scores, 1))", "p = tl.exp(scores - m_new[:, None])",
                "alpha = tl.exp(m_i - m_new)", "l_i = l_i * alpha + tl.sum(p, 1)",
            ]  # fmt: skip
        else:
            forms = {"linear": "scores", "sigmoid": "tl.sigmoid(scores)", "relu": "tl.maximum(scores, 0.0)"}
            self.body.append(f"p = {forms[weights]}")
            if mask:
                self.body.append(f"p = tl.where({mask}, p, 0.0)")
        if not early:
            self.load("v", keys, w)
        if weights == "softmax":
            self.body.append(
                self.rng.choice(
                    (
                        "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])",
                        "acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)",
                    )
                )
            )
            self.body.append("m_i = m_new")
            # Rows without a key have the sum 0.
            self.after.append("out = acc / tl.where(l_i > 0, l_i, 1.0)[:, None]")
            if self.chance(0.3):
                self.store("lse", "m_i + tl.log(l_i + 1.0e-30)", m, None, self.after)
        else:
            self.body.append("acc = tl.dot(p.to(v.dtype), v, acc)")
            self.after.append("out = acc")
            if self.chance(0.3):
                self.before.append(f"total = tl.zeros(({block_m},), tl.float32)")
                self.body.append("total += tl.sum(p, 1)")
                self.store("sums", "total", m, None, self.after)
        self.store("out", "out", m, w, self.after)
        end = f"tl.minimum(L, row + {block_m + 8})" if causal and self.chance(0.6) else ""
        return self._done(
            "queries", keys, lambda sizes: (-(-sizes["M"] // block_m),), {"M": block_m, "L": block_n}, end
        )

    def _kept(self, *, causal: bool) -> str:
        """The condition for a pair of a row and a column to count."""
        keep = [] if self.has_whole_blocks else ["(columns[None, :] < L)"]
        if causal:
            keep.append("(columns[None, :] <= rows[:, None] + 7)")
        if self.chance(0.15):
            keep.append("(rows[:, None] - columns[None, :] < 70)")
        return " & ".join(keep)

    def _chunks(self) -> Program:
        """A state that chunks of a sequence change, one after the other."""
        chunk, dim, width = (
            self.rng.choice((64, 64, 32, 128)),
            self.rng.choice((64, 64, 128)),
            self.rng.choice((32, 64)),
        )
        self.size("T")
        self.size("V")
        self._shift(0.12)
        self.before += [
            f"value = tl.program_id(0) * {width}", f"values = value + tl.arange(0, {width})",
            f"dims = tl.arange(0, {dim})", f"lanes = tl.arange(0, {chunk})",
            f"h = tl.zeros(({dim}, {width}), tl.float32)",
        ]  # fmt: skip
        t = Axis("T", chunk, "times", "time", is_looped=True, lanes="lanes")
        d, v = Axis(str(dim), dim, "dims", "0"), Axis("V", width, "values", "value")
        form = self.rng.choice(("delta", "delta", "outer", "output"))
        self.load("k", t, d)
        self.load("u", t, v)
        if form == "delta":
            self.load("w", t, d)
            self.body.append("new = u.to(tl.float32) - tl.dot(w, h.to(w.dtype)) * 0.1")
        elif form == "output":
            self.load("q", t, d)
            self.body.append("o = tl.dot(q, h.to(q.dtype))")
            self.store("o", "o", t, v, self.body)
            self.body.append("new = u.to(tl.float32)")
        else:
            self.body.append("new = u.to(tl.float32)")
        if form == "delta" and self.chance(0.6):
            self.store("fresh", "new", t, v, self.body)
        gate = self.rng.choice(("", "number", "line"))
        if gate == "number":
            self.arrays.append(Array("g", "fp32", ("T",), is_aligned=False))
            self.parameters.append(("g_ptr", "pointer g"))
            self.body.append("h = h * tl.exp(-tl.abs(tl.load(g_ptr + time)))")
        elif gate == "line":
            self.load_line("g", t)
            self.body.append("new = new * tl.exp(-tl.abs(g))[:, None]")
            self.body.append("h = h * 0.9")
        # What a wrapped or carried pointer reads after the sequence's end counts as nothing.
        if not self.has_whole_blocks:
            self.body.append("new = tl.where((times < T)[:, None], new, 0.0)")
        self.body.append("h = tl.dot(k.T, new.to(k.dtype), h)")
        self.store("state", "h", d, v, self.after)
        return self._done("chunks", t, lambda sizes: (-(-sizes["V"] // width),), {"T": chunk, "V": width})

    def _nested(self) -> Program:
        """A product in an inner loop, and an online reduction of its blocks in an outer one."""
        block_m, block_n, block_k = self._blocks(most_n=64)
        for each in "MNK":
            self.size(each)
        m = Axis("M", block_m, "rows", "row")
        n = Axis("N", block_n, "columns", "column")
        k = Axis("K", block_k, "ks", "k", is_looped=True, lanes="depth")
        self.style = "descriptors" if self.chance(0.4) else "pointers"
        self.load("a", m, k)
        self.load("b", k, n)
        # Pointers that the inner loop advances begin anew in each turn of the outer one.
        inner_before, self.before = self.before, []
        made = [line for line in inner_before if "_desc" in line]
        inner_before = [line for line in inner_before if "_desc" not in line]
        inner = [*self.body, "acc = tl.dot(a, b, acc)", *self.advances]
        self.advances = []
        self.before = [
            f"row = tl.program_id(0) * {block_m}", f"rows = row + tl.arange(0, {block_m})",
            f"depth = tl.arange(0, {block_k})", f"lanes = tl.arange(0, {block_n})", *made,
            f"most = tl.full(({block_m},), -1.0e30, tl.float32)", f"total = tl.zeros(({block_m},), tl.float32)",
        ]  # fmt: skip
        outer = [f"for column in range(0, N, {block_n}):", "    columns = column + lanes"]
        outer += [f"    {line}" for line in (*inner_before, f"acc = tl.zeros(({block_m}, {block_n}), tl.float32)")]
        outer += self._loop(k, indent="    ") + [f"        {line}" for line in inner]
        tail: list[str] = []
        if self.chance(0.4):
            self.store("logits", "acc", m, n, tail)
        tail.append("acc = tl.where(columns[None, :] < N, acc, -1.0e30)")
        tail += [
            "higher = tl.maximum(most, tl.max(acc, 1))",
            "total = total * tl.exp(most - higher) + tl.sum(tl.exp(acc - higher[:, None]), 1)",
            "most = higher",
        ]
        outer += [f"    {line}" for line in tail]
        self.store("lse", "most + tl.log(total)", m, None, self.after)
        return self._finish("nested", [*self.before, *outer, *self.after], lambda sizes: (-(-sizes["M"] // block_m),),
                            {"M": block_m, "N": block_n, "K": block_k}, has_product=True)  # fmt: skip

    def _reduction(self) -> Program:
        """Sums of a matrix along its rows, without a product."""
        block_m, block_k = self.rng.choice((64, 128)), self.rng.choice((32, 64, 128))
        self.size("M")
        self.size("K")
        self.before += [
            f"row = tl.program_id(0) * {block_m}", f"rows = row + tl.arange(0, {block_m})",
            f"depth = tl.arange(0, {block_k})", f"acc = tl.zeros(({block_m}, {block_k}), tl.float32)",
        ]  # fmt: skip
        m, k = Axis("M", block_m, "rows", "row"), Axis("K", block_k, "ks", "k", is_looped=True, lanes="depth")
        self.load("a", m, k)
        self.load_line("gain", k)
        self.body.append("acc += a.to(tl.float32) * gain[None, :]")
        self.store("out", "tl.sum(acc, 1)", m, None, self.after)
        return self._done(
            "reduction", k, lambda sizes: (-(-sizes["M"] // block_m),), {"M": block_m, "K": block_k}, has_product=False
        )

    def _blocks(self, most_n: int = 128) -> tuple[int, int, int]:
        n = self.rng.choice([each for each in (16, 32, 64, 64, 128) if each <= most_n])
        return self.rng.choice((64, 128)), n, self.rng.choice((16, 32, 32, 64, 64, 128))

    # The program -----------------------------------------------------------------------------------------------------

    def _done(
        self, form: str, axis: Axis, grid: Callable[[Sizes], tuple[int, ...]], blocks: dict[str, int], end: str = "",
        *, has_product: bool = True,
    ) -> Program:  # fmt: skip
        loop = self._loop(axis, end=end) + [f"    {line}" for line in (*self.body, *self.advances)]
        return self._finish(form, [*self.before, *loop, *self.after], grid, blocks, has_product=has_product)

    def _finish(
        self, form: str, lines: list[str], grid: Callable[[Sizes], tuple[int, ...]], blocks: dict[str, int],
        *, has_product: bool,
    ) -> Program:  # fmt: skip
        self.rng.shuffle(self.parameters)
        names = ", ".join(name for name, _ in self.parameters)
        text = f"{HEAD}def kernel({names}):\n" + "".join(f"    {line}\n" for line in lines)
        return Program(
            text, self.rng.choice((4, 4, 8)), self.arrays, self.parameters,
            [self._sizes(blocks, at) for at in range(SIZES)], grid, has_product, form, self.dtype,
        )  # fmt: skip

    def _sizes(self, blocks: dict[str, int], at: int) -> dict[str, int]:
        """Extents of one launch: first whole blocks, then odd ones, a tiny one among them."""
        found: dict[str, int] = {}
        for name, block in blocks.items():
            most = 5 if name in "KLT" else 2
            if self.has_whole_blocks or at == 0:
                found[name] = block * self.rng.randint(1, most)
            elif at == 1:
                found[name] = self.rng.choice((1, 3, 8, block - 1))
            else:
                found[name] = self.rng.choice(
                    (block, block + 1, 2 * block - 1, self.rng.randint(1, most * block), block + 8)
                )
        walked = next(block for name, block in blocks.items() if name in "KLT")
        found["BEGIN"] = walked * self.rng.choice((0, 1, 2, 9)) if at else walked
        if "K" in found:
            found["BLOCKS"] = -(-found["K"] // blocks["K"])
        if "N" in found:
            found["TILES_N"] = -(-found["N"] // blocks["N"])
        return found


def program(number: int) -> Program:
    """The program of a number."""
    return Writer(number).program()


def differs(found: np.ndarray, wanted: np.ndarray) -> str | None:
    """Say how two results differ by more than sums in another order do; None where they agree."""
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    if (np.isnan(a) != np.isnan(b)).any():
        return f"NaN at {int((np.isnan(a) != np.isnan(b)).sum())} other places"
    apart = np.abs(a - b)
    finite = np.isfinite(b)
    if (a[~finite & ~np.isnan(b)] != b[~finite & ~np.isnan(b)]).any():
        return "other infinities"
    if not finite.any():
        return None
    apart, scale = apart[finite], np.sqrt((b[finite] ** 2).mean())
    unit = 2.0**-8 if found.dtype.name == "bfloat16" else 2.0**-11 if found.dtype == np.float16 else 2.0**-20
    allowed = 4 * unit * (np.abs(b[finite]) + scale) + INNER * scale
    worst = int((apart - allowed).argmax())
    if apart[worst] <= allowed[worst]:
        return None
    count = int((apart > allowed).sum())
    return f"{count} of {a.size} numbers differ, by up to {apart.max():.3e}, of a size of {scale:.3e}"


INNER = 2.0**-8
"""How far sums may lie apart, as a part of their size, when a number between two products is rounded otherwise."""
