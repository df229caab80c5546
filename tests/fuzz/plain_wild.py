"""Random plain kernels whose accesses, loops and ends are unusual, as text, and their launches at five sizes.

A tile of products over blocks of K, or rows of queries over pages of keys. Operands are gathered by lists, have strides
of any number of bytes, masks that memory holds, other values outside, or types of a byte; threads compute some of them.
Loops begin, step and end anywhere, follow each other, or stand in each other; tiles may lie beyond the matrix.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.plain_operands import HEAD, SIZES, Array, Axis, Operands, Program, Sizes, row_of

LOOPS = ("for", "for", "cdiv", "while", "step", "limit", "down", "nested", "begin")
MOST = {"M": 2, "N": 2, "K": 5, "L": 4}
WIDE = dict.fromkeys(("fp16", "bf16", "fp32", "fp8e4nv", "fp8e5"), "tl.float32") | {"i8": "tl.int32"}
"""Types of sums by those of operands."""


class Wild(Operands):
    """Writes one kernel."""

    def program(self) -> Program:
        """The program of this writer's number."""
        # Numbers of the other generator are small, too.
        self.rng.seed(self.number * 31 + 5)
        self.dtype = self.rng.choices(tuple(WIDE), (32, 24, 12, 14, 6, 12))[0]
        self.style = self.rng.choice(("pointers", "pointers", "descriptors", "mixed"))
        self.has_whole_blocks = self.chance(0.08)
        self.loop = self.rng.choice(LOOPS)
        self.batch = ""
        self.wide = WIDE[self.dtype]
        return self._pages() if self.chance(0.14) and self.dtype in ("fp16", "bf16") else self._product()

    # Operands --------------------------------------------------------------------------------------------------------

    def _form(self, outer: Axis, inner: Axis, array: Array) -> str:
        form = super()._form(outer, inner, array)
        return "masked" if form == "carried" and self.loop not in ("for", "cdiv") else form

    def _list(self, name: str, axis: Axis, bound: str, lines: list[str]) -> str:
        """Load a block of a list of places along an axis."""
        self.arrays.append(Array(f"{name}_list", "i32", (axis.size,), "index", bound))
        self.parameters.append((f"{name}_list_ptr", f"pointer {name}_list"))
        mask = "" if self.has_whole_blocks else f", mask={axis.vector} < {axis.size}, other=0"
        lines.append(f"{name}_at = tl.load({name}_list_ptr + {axis.vector}{mask})")
        return f"{name}_at"

    def _flags(self, name: str, axis: Axis, lines: list[str]) -> str:
        """Load what says which rows count."""
        dtype = self.rng.choice(("i8", "i32"))
        self.arrays.append(Array(f"{name}_kept", dtype, (axis.size,), "flags"))
        self.parameters.append((f"{name}_kept_ptr", f"pointer {name}_kept"))
        mask = "" if self.has_whole_blocks else f", mask={axis.vector} < {axis.size}, other=0"
        lines.append(f"{name}_kept = tl.load({name}_kept_ptr + {axis.vector}{mask})")
        return f"{name}_kept != 0"

    def operand(self, name: str, rows: Axis, columns: Axis, *, dtype: str = "", in_loop: bool = True) -> None:
        """Lines that give `name` a block of a matrix, in an unusual way or a usual one."""
        dtype = dtype or self.dtype
        if not self.batch and self.chance(0.3):
            self.load(name, rows, columns, dtype=dtype, in_loop=in_loop)
            return
        lines = self.body if in_loop else self.before
        is_turned = self.chance(0.3)
        outer, inner = (columns, rows) if is_turned else (rows, columns)
        by_transpose = is_turned and self.chance(0.5)
        stride = self.rng.choices(("literal", "argument", "double", "spread"), (35, 35, 20, 10))[0]
        listed = self.rng.choices(("", "outer", "inner"), (58, 38, 4))[0]
        spread = 2 if stride == "spread" else 1
        outer_size = outer.size
        if listed == "outer":
            outer_size = "TABLE"
        inner_extent = inner.size if listed != "inner" else "TABLE"
        width = ""
        if stride in ("literal", "spread"):
            widest = 656 if listed == "inner" else max(MOST.get(inner.size, 1) * inner.block, 256) + 16
            width = str(spread * widest + self.rng.choice((0, 0, 2, 4, 8, 1)))
            axes = (outer_size, width)
        else:
            axes = (outer_size, inner_extent)
        kind = "small" if dtype == "i8" else "normal"
        gap = self.rng.choice((0, 0, 1, 2))
        aligned = self.chance(0.6) or stride == "double"
        axes = ("BATCH", *axes) if self.batch else axes
        self.arrays.append(
            Array(
                name, dtype, axes, kind, is_aligned=aligned, gap=gap, filled=(inner_extent, spread) if width else None
            )
        )
        self.parameters.append((f"{name}_ptr", f"pointer {name}"))
        at = len(axes) - 2
        if width:
            # The array's own rows may have a gap: the literal is what they are.
            apart = str(row_of(self.arrays[-1], int(width)))
        elif stride == "double":
            self.parameters.append((f"half_{name}", f"half {name} {at}"))
            apart = f"(2 * half_{name})"
        else:
            self.parameters.append((f"stride_{name}", f"stride {name} {at}"))
            apart = f"stride_{name}"
        place = {id(rows): "[:, None]", id(columns): "[None, :]"}
        if by_transpose:
            place = {id(outer): "[:, None]", id(inner): "[None, :]"}
        masks: list[str] = []
        index = {id(outer): outer.vector, id(inner): inner.vector}
        for axis, is_listed in ((outer, listed == "outer"), (inner, listed == "inner")):
            if is_listed:
                index[id(axis)] = self._list(name, axis, "TABLE", lines if axis.is_looped else self.before)
            if not axis.is_whole and not self.has_whole_blocks:
                masks.append(f"({axis.vector} < {axis.size}){place[id(axis)]}")
        masks += self._odd_mask(name, outer, inner, place, lines)
        others = ("0.0", "0.0", "0.0", "", "1.0", "0.5") if dtype != "i8" else ("0", "0", "0", "", "1", "-2")
        other = self.rng.choice(others)
        options = f", mask={' & '.join(masks)}" + (f", other={other}" if other else "") if masks else ""
        along = "" if spread == 1 else " * 2"
        base = f"{name}_ptr"
        if self.batch:
            self.parameters.append((f"stride_{name}_batch", f"stride {name} 0"))
            base += f" + {self.batch} * stride_{name}_batch"
        address = (
            f"{base} + {index[id(outer)]}{place[id(outer)]} * {apart} + {index[id(inner)]}{place[id(inner)]}{along}"
        )
        turned = self.rng.choice((".T", "tl.trans")) if by_transpose else ""
        value = f"tl.load({address}{options})"
        value = f"tl.trans({value})" if turned == "tl.trans" else value + turned
        lines.append(f"{name} = {value}")

    def _odd_mask(self, name: str, outer: Axis, inner: Axis, place: dict[int, str], lines: list[str]) -> list[str]:
        """Draw a mask that is not made of bounds."""
        match self.rng.choices(("", "flags", "third", "edge"), (70, 14, 8, 8))[0]:
            case "flags":
                axis = self.rng.choice((outer, inner) if not inner.is_looped else (outer,))
                return [f"({self._flags(name, axis, lines if axis.is_looped else self.before)}){place[id(axis)]}"]
            case "third":
                return [f"({outer.vector} % 3 != 1){place[id(outer)]}"]
            case "edge":
                return [f"({outer.vector}{place[id(outer)]} + {inner.vector}{place[id(inner)]} > 5)"]
            case _:
                return []

    # Forms -----------------------------------------------------------------------------------------------------------

    def _grid(self, block_m: int, block_n: int, block_k: int) -> tuple[Axis, Axis, Callable[[Sizes], tuple[int, ...]]]:
        lines = self.before
        self.tile_loop = ""
        order = self.rng.choice(("grid", "grid", "rows", "groups", "batch", "split", "persistent", "beyond"))
        if order == "beyond" and self.has_whole_blocks:
            order = "grid"
        self.order = order
        self.size("M")
        self.size("N")
        if order in ("grid", "batch", "split", "beyond"):
            lines += ["pid_m = tl.program_id(0)", "pid_n = tl.program_id(1)"]
            if order == "batch":
                self.batch = "batch"
                lines.append("batch = tl.program_id(2)" + self.rng.choice(("", ".to(tl.int64)")))
        else:
            tile = "tile" if order == "persistent" else "tl.program_id(0)"
            if order == "persistent":
                tiles = f"tl.cdiv(M, {block_m}) * tl.cdiv(N, {block_n})"
                self.tile_loop = f"for tile in range(tl.program_id(0), {tiles}, tl.num_programs(0)):"
            if order == "groups":
                lines += [
                    f"pid, tiles_n = {tile}, tl.cdiv(N, {block_n})", "first_m = pid // (2 * tiles_n) * 2",
                    f"group_m = min(tl.cdiv(M, {block_m}) - first_m, 2)",
                    "pid_m = first_m + pid % (2 * tiles_n) % group_m", "pid_n = pid % (2 * tiles_n) // group_m",
                ]  # fmt: skip
            else:
                lines += [f"tiles_n = tl.cdiv(N, {block_n})", f"pid_m = {tile} // tiles_n", f"pid_n = {tile} % tiles_n"]
        lines += [
            f"row = pid_m * {block_m}", f"column = pid_n * {block_n}",
            f"rows = row + tl.arange(0, {block_m})", f"columns = column + tl.arange(0, {block_n})",
        ]  # fmt: skip

        def grid(sizes: Sizes) -> tuple[int, ...]:
            m, n = -(-sizes["M"] // block_m), -(-sizes["N"] // block_n)
            match order:
                case "grid":
                    return m, n
                case "batch":
                    return m, n, sizes["BATCH"]
                case "split":
                    return m, n, 2
                case "beyond":
                    return m + 1, n + 1
                case "persistent":
                    return (min(2, m * n),)
                case _:
                    return (m * n,)

        return Axis("M", block_m, "rows", "row"), Axis("N", block_n, "columns", "column"), grid

    def _heads(self, k: Axis) -> tuple[list[str], list[str], str]:
        """Lines of the loop's head, of its end, and its indent."""
        block, depth = k.block, "ks = k + depth"
        first, step = "0", block
        if self.order == "split":
            first, step = f"tl.program_id(2) * {block}", 2 * block
            if self.loop in ("nested", "cdiv", "down"):
                self.loop = "for"
        match self.loop:
            case "cdiv":
                return (
                    [f"for turn in range(tl.cdiv(K, {block})):", f"    k = turn * {block}", f"    {depth}"],
                    [],
                    "    ",
                )
            case "down":
                head = [
                    f"for turn in range(tl.cdiv(K, {block}) - 1, -1, -1):",
                    f"    k = turn * {block}",
                    f"    {depth}",
                ]
                return head, [], "    "
            case "while":
                return [f"k = {first}", "while k < K:", f"    {depth}"], [f"    k += {step}"], "    "
            case "step":
                self.parameters.append(("STEP", "size STEP"))
                return [f"for k in range({first}, K, {step} * STEP):", f"    {depth}"], [], "    "
            case "limit":
                self.arrays.append(Array("ends", "i32", ("TILES_M",), "end", "K"))
                self.parameters.append(("ends_ptr", "pointer ends"))
                where = "ends_ptr" if self.order == "beyond" else "ends_ptr + pid_m"
                return [f"end = tl.load({where})", f"for k in range({first}, end, {step}):", f"    {depth}"], [], "    "
            case "nested":
                head = [
                    "for part in range(2):",
                    f"    for k in range(part * {block}, K, {2 * block}):",
                    f"        {depth}",
                ]
                return head, [], "        "
            case "begin":
                self.parameters.append(("BEGIN", "size BEGIN"))
                return [f"for k in range(BEGIN, K, {step}):", f"    {depth}"], [], "    "
            case _:
                return [f"for k in range({first}, K, {step}):", f"    {depth}"], [], "    "

    def _product(self) -> Program:
        """A tile of products over blocks of K."""
        block_m = self.rng.choice((64, 64, 128, 128, 256))
        block_n = self.rng.choice((16, 32, 64, 64, 128))
        block_k = self.rng.choice((32, 32, 64, 64, 128)) if self.dtype != "fp32" else self.rng.choice((16, 32))
        m, n, grid = self._grid(block_m, block_n, block_k)
        self.size("K")
        k = Axis("K", block_k, "ks", "k", is_looped=True)
        k = Axis("K", block_k, "ks", "k", is_looped=True, lanes="depth")
        self.before.append(f"depth = tl.arange(0, {block_k})")
        self.before.append(f"acc = tl.zeros(({block_m}, {block_n}), {self.wide})")
        head, tail, indent = self._heads(k)
        is_int = self.dtype == "i8"
        self.operand("a", m, k)
        quantised = self.chance(0.1) and self.dtype in ("fp16", "bf16")
        if quantised:
            self.operand("b8", k, n, dtype=self.rng.choice(("i8", "fp8e4nv")))
            self.body.append("b = b8.to(tl.float32).to(a.dtype)" if self.chance(0.5) else "b = b8.to(a.dtype)")
        else:
            self.operand("b", k, n)
        left, right = self._computed(m, k)
        self._multiply(left, right, m, n, k)
        results = ["acc"]
        if self.chance(0.25):
            self.before.append(f"second = tl.zeros(({block_m}, {block_n}), {self.wide})")
            self.operand("d", k, n)
            condition = self.chance(0.15)
            line = f"second = tl.dot(a, d, second{self._precision()})"
            self.body += [f"if k % {2 * block_k} == 0:", f"    {line}"] if condition else [line]
            results.append("second")
        vectors: list[str] = []
        wide = "tl.int32" if is_int else "tl.float32"
        if self.chance(0.25):
            self.before.append(f"total = tl.zeros(({block_m},), {wide})")
            self.body.append(f"total += tl.sum(a.to({wide}), 1)")
            vectors.append("total")
        if self.chance(0.12) and not quantised:
            self.before.append(f"tops = tl.zeros(({block_n},), {wide})")
            self.body.append(f"tops = tl.maximum(tops, tl.max(b.to({wide}), 0))")
            self.store_line("tops", "tops", n)
        if self.chance(0.08) and not is_int:
            self.body += [f"if k >= {2 * block_k}:", "    acc = acc * 0.5"]
        if self.chance(0.08) and self.loop != "while" and not self.batch:
            # A block of each turn is stored: turns of a tile that others have, too, store the same.
            self.arrays.append(Array("trace", "fp32", ("M", "KPAD"), "out", is_aligned=False))
            self.parameters += [("trace_ptr", "pointer trace"), ("stride_trace", "stride trace 0")]
            self.body.append(
                "tl.store(trace_ptr + rows[:, None] * stride_trace + ks[None, :], a.to(tl.float32), "
                "mask=(rows < M)[:, None] & (ks < K)[None, :] & (pid_n == 0))"
            )
        loops = [*head, *(indent + line for line in (*self.body, *self.advances)), *tail]
        if self.chance(0.18):
            loops += self._loop_after(m, n, block_k, is_int)
        self._end(results, vectors, m, n)
        lines = [*self.before, *loops, *self.after]
        if self.tile_loop:
            made = [line for line in lines if "make_tensor_descriptor" in line]
            lines = [*made, self.tile_loop, *(f"    {line}" for line in lines if line not in made)]
        return self._finished("wild", lines, grid, {"M": block_m, "N": block_n, "K": block_k})

    def _computed(self, m: Axis, k: Axis) -> tuple[str, str]:
        """Draw operands that threads compute; return the names of both."""
        computed = self.rng.choices(("", "gain", "sum", "relu", "both"), (66, 10, 8, 8, 8))[0]
        if not computed or self.dtype not in ("fp16", "bf16", "fp32"):
            return "a", "b"
        if computed == "gain":
            self.load_line("gain", k)
            self.body.append("a_scaled = (a.to(tl.float32) * gain[None, :]).to(a.dtype)")
        elif computed == "sum":
            self.operand("a2", m, k)
            self.body.append("a_scaled = a + a2")
        elif computed == "relu":
            self.body.append("a_scaled = tl.where(a > 0, a, a * 0.5)")
        else:
            self.body += ["b_scaled = (b.to(tl.float32) * 0.5).to(b.dtype)", "a_scaled = a"]
        return "a_scaled", "b_scaled" if computed == "both" else "b"

    def _precision(self) -> str:
        if self.dtype == "i8":
            return ", out_dtype=tl.int32"
        if self.dtype == "fp32" and self.number % 5 == 0:
            return ', input_precision="ieee"'
        if self.dtype.startswith("fp8") and self.number % 3 == 0:
            return ", max_num_imprecise_acc=32"
        return ""

    def _multiply(self, left: str, right: str, m: Axis, n: Axis, k: Axis) -> None:
        more = self._precision()
        kinds = ("into", "into", "added", "rows", "columns", "block", "decay")
        kind = self.rng.choice(kinds[:2] if self.dtype == "i8" else kinds)
        if kind == "into":
            self.body.append(f"acc = tl.dot({left}, {right}, acc{more})")
        elif kind == "added":
            self.body.append(f"acc += tl.dot({left}, {right}{more})")
        elif kind == "decay":
            self.body.append(f"acc = tl.dot({left}, {right}, acc * 0.75{more})")
        elif kind == "block":
            self.arrays.append(Array("s", "fp32", ("BLOCKS",), is_aligned=False))
            self.parameters.append(("s_ptr", "pointer s"))
            self.body.append(f"acc += tl.dot({left}, {right}{more}) * tl.load(s_ptr + k // {k.block})")
        else:
            axis, place = (m, "[:, None]") if kind == "rows" else (n, "[None, :]")
            turned = self.chance(0.5)
            axes = ("BLOCKS", axis.size) if turned else (axis.size, "BLOCKS")
            self.arrays.append(Array("s", "fp32", axes, is_aligned=False))
            self.parameters += [("s_ptr", "pointer s"), ("stride_s", "stride s 0")]
            at = f"k // {k.block}"
            where = f"{at} * stride_s + {axis.vector}" if turned else f"{axis.vector} * stride_s + {at}"
            mask = "" if self.has_whole_blocks else f", mask={axis.vector} < {axis.size}, other=0.0"
            self.body.append(f"s = tl.load(s_ptr + {where}{mask})")
            self.body.append(f"acc += tl.dot({left}, {right}{more}) * s{place}")

    def _loop_after(self, m: Axis, n: Axis, block_k: int, is_int: bool) -> list[str]:
        """A second loop that adds to the same sums, over other arrays."""
        self.size("K2")
        saved, self.body, self.advances = self.body, [], []
        loop, self.loop = self.loop, "step"
        k = Axis("K2", block_k, "ks2", "k2", is_looped=True, lanes="depth")
        self.operand("e", m, k)
        self.operand("f", k, n)
        self.body.append(f"acc = tl.dot(e, f, acc{self._precision()})")
        found = [f"for k2 in range(0, K2, {block_k}):", "    ks2 = k2 + depth", *(f"    {line}" for line in self.body)]
        self.body, self.loop = saved, loop
        return found

    def store_line(self, name: str, value: str, axis: Axis) -> None:
        """Store a vector along an axis: each tile has its own."""
        self.arrays.append(Array(name, "fp32", ("SLOTS", axis.size), "out", is_aligned=False))
        self.parameters += [(f"{name}_ptr", f"pointer {name}"), (f"stride_{name}", f"stride {name} 0")]
        third = "batch" if self.batch else "tl.program_id(2)" if self.order == "split" else "0"
        slot = f"({'pid_n' if axis.size == 'M' else 'pid_m'} * 3 + {third})"
        mask = "" if self.has_whole_blocks else f", mask={axis.vector} < {axis.size}"
        self.after.append(
            f"tl.store({name}_ptr + {slot} * stride_{name} + {axis.vector}, ({value}).to(tl.float32){mask})"
        )

    def _end(self, results: list[str], vectors: list[str], m: Axis, n: Axis) -> None:
        after = self.after
        is_int = self.dtype == "i8"
        for each in results:
            if is_int:
                after.append(f"{each} = {each}.to(tl.float32)")
        after.append("out = acc")
        if len(results) == 2:
            how = self.rng.choice(("out = acc * tl.sigmoid(second)", "out = acc + second * 0.5", "apart"))
            after.append(how if how != "apart" else "out = acc - 0.25 * second")
        masked = "(rows < M)[:, None] & (columns < N)[None, :]"
        for each in vectors:
            self.store_line(each, each, m)
        if self.chance(0.2):
            self.load_line("bias", n, in_loop=False)
            after.append("out = out + bias[None, :]")
        if self.chance(0.2) and not self.batch:
            self.arrays.append(Array("residual", self.rng.choice(("fp16", "fp32")), ("M", "N")))
            self.parameters += [("residual_ptr", "pointer residual"), ("stride_residual", "stride residual 0")]
            after.append(
                "out += tl.load(residual_ptr + rows[:, None] * stride_residual + columns[None, :], "
                f"mask={masked}, other=0.0).to(tl.float32)"
            )
        if self.chance(0.2):
            after.append("out = tl.maximum(out, 0.0)")
        if self.chance(0.25) and self.order != "split" and not self.batch:
            self.arrays.append(Array("sums", "fp32", ("M", "TILES_N"), "out", is_aligned=False))
            self.parameters += [("sums_ptr", "pointer sums"), ("stride_sums", "stride sums 0")]
            value = self.rng.choice(
                (
                    "tl.sum(tl.where((columns < N)[None, :], out, 0.0), 1)",
                    "tl.max(tl.where((columns < N)[None, :], out, -1.0e30), 1)",
                )
            )
            inside = f"(rows < M) & (pid_n < tl.cdiv(N, {n.block}))"
            after.append(f"tl.store(sums_ptr + rows * stride_sums + pid_n, {value}, mask={inside})")
        self._results(m, n, masked)

    def _results(self, m: Axis, n: Axis, masked: str) -> None:
        """Store or add up the tile, once or twice."""
        after = self.after
        if self.order == "split" or (not self.batch and self.chance(0.12)):
            self.arrays.append(Array("out", "fp32", ("M", "N"), "sum", is_aligned=False))
            self.parameters += [("out_ptr", "pointer out"), ("stride_out", "stride out 0")]
            where = "out_ptr + rows[:, None] * stride_out + columns[None, :]"
            after.append(f"tl.atomic_add({where}, out, mask={masked})")
            if self.chance(0.3):
                self.arrays.append(Array("count", "i32", ("1",), "sum"))
                self.parameters.append(("count_ptr", "pointer count"))
                after.append("tl.atomic_add(count_ptr, 1)")
            return
        dtype = self.rng.choice(("fp16", "bf16", "fp32", "fp8e4nv") if self.number % 4 == 0 else ("fp16", "fp32"))
        self._store_tile("out", "out", m, n, dtype)
        if self.chance(0.15):
            self._store_tile("twin", "out * 2.0", m, n, "fp32", turned=self.chance(0.5))
        if self.chance(0.06):
            after[-1:] = ["if pid_m % 2 == 0:", f"    {after[-1]}"]

    def _store_tile(self, name: str, value: str, m: Axis, n: Axis, dtype: str, *, turned: bool = False) -> None:
        outer, inner = (n, m) if turned else (m, n)
        axes = (*(("BATCH",) if self.batch else ()), outer.size, inner.size)
        self.arrays.append(Array(name, dtype, axes, "out", is_aligned=self.chance(0.7)))
        self.parameters += [(f"{name}_ptr", f"pointer {name}"), (f"stride_{name}", f"stride {name} {len(axes) - 2}")]
        base = f"{name}_ptr"
        if self.batch:
            self.parameters.append((f"stride_{name}_batch", f"stride {name} 0"))
            base += f" + {self.batch} * stride_{name}_batch"
        place = {"M": "[:, None]", "N": "[None, :]"}
        where = f"{base} + {outer.vector}{place[outer.size]} * stride_{name} + {inner.vector}{place[inner.size]}"
        mask = "(rows < M)[:, None] & (columns < N)[None, :]"
        if self.chance(0.1):
            mask += " & (rows[:, None] % 5 != 4)"
        self.after.append(f"tl.store({where}, ({value}).to({name}_ptr.dtype.element_ty), mask={mask})")

    def _pages(self) -> Program:
        """Rows of queries over pages of keys, which a table places."""
        self.order = ""
        self.loop = "for"
        block_m, block_n = self.rng.choice((64, 64, 128)), self.rng.choice((32, 64, 128))
        dim = self.rng.choice((32, 64, 128))
        for each in "ML":
            self.size(each)
        m, d = Axis("M", block_m, "rows", "row"), Axis(str(dim), dim, "dims", "0")
        self.before += [
            f"row = tl.program_id(0) * {block_m}", f"rows = row + tl.arange(0, {block_m})",
            f"lanes = tl.arange(0, {block_n})", f"dims = tl.arange(0, {dim})",
            f"acc = tl.zeros(({block_m}, {dim}), tl.float32)", f"m_i = tl.full(({block_m},), -1.0e30, tl.float32)",
            f"l_i = tl.zeros(({block_m},), tl.float32)",
        ]  # fmt: skip
        self.load("q", m, d, in_loop=False)
        cell = self.rng.choice(("page", "page", "key"))
        bytes_of = self.rng.choice((self.dtype, self.dtype, "fp8e4nv"))
        for each in "kv":
            self.arrays.append(Array(each, bytes_of, ("CELLS", str(dim)), gap=self.rng.choice((0, 1))))
            self.parameters += [(f"{each}_ptr", f"pointer {each}"), (f"stride_{each}", f"stride {each} 0")]
        bound, size = ("PAGES", "TURNS") if cell == "page" else ("CELLS", "L")
        self.arrays.append(Array("table", "i32", (size,), "index", bound))
        self.parameters.append(("table_ptr", "pointer table"))
        if cell == "page":
            self.body += [f"page = tl.load(table_ptr + start // {block_n})", f"cells = page * {block_n} + lanes"]
        else:
            self.body.append("cells = tl.load(table_ptr + columns, mask=columns < L, other=0)")
        mask = (
            self.rng.choice((", mask=(columns < L)[:, None], other=0.0", ""))
            if cell == "page"
            else (", mask=(columns < L)[:, None], other=0.0")
        )
        where = "cells[:, None] * stride_{0} + dims[None, :]"
        cast = f".to({'tl.float16' if self.dtype == 'fp16' else 'tl.bfloat16'})" if bytes_of != self.dtype else ""
        self.body += [
            f"k = tl.load(k_ptr + {where.format('k')}{mask}){cast}",
            f"scores = tl.dot(q, k.T) * {dim**-0.5:.6f}", "scores = tl.where((columns < L)[None, :], scores, -1.0e30)",
            "m_new = tl.maximum(m_i, tl.max(scores, 1))", "p = tl.exp(scores - m_new[:, None])",
            "alpha = tl.exp(m_i - m_new)", "l_i = l_i * alpha + tl.sum(p, 1)",
            f"v = tl.load(v_ptr + {where.format('v')}{mask}){cast}",
            "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])", "m_i = m_new",
        ]  # fmt: skip
        self.after.append("out = acc / tl.where(l_i > 0, l_i, 1.0)[:, None]")
        self.store("out", "out", m, d, self.after)
        head = [f"for start in range(0, L, {block_n}):", "    columns = start + lanes"]
        lines = [*self.before, *head, *(f"    {line}" for line in (*self.body, *self.advances)), *self.after]
        return self._finished("pages", lines, lambda sizes: (-(-sizes["M"] // block_m),), {"M": block_m, "L": block_n})

    # The program -----------------------------------------------------------------------------------------------------

    def _finished(
        self, form: str, lines: list[str], grid: Callable[[Sizes], tuple[int, ...]], blocks: dict[str, int]
    ) -> Program:
        self.rng.shuffle(self.parameters)
        names = ", ".join(dict.fromkeys(name for name, _ in self.parameters))
        text = f"{HEAD}def kernel({names}):\n" + "".join(f"    {line}\n" for line in lines)
        sizes = [self._sizes(blocks, at) for at in range(SIZES)]
        warps = self.rng.choice((4, 4, 8))
        return Program(text, warps, self.arrays, self.parameters, sizes, grid, True, form, self.dtype)

    def _sizes(self, blocks: dict[str, int], at: int) -> dict[str, int]:
        """Extents of one launch: whole blocks, a tiny one, none of K at times, and odd ones."""
        found: dict[str, int] = {}
        sixteens = self.number % 3 == 0
        for name, block in blocks.items():
            most = MOST[name]
            if self.has_whole_blocks or at == 0:
                found[name] = block * self.rng.randint(1, most)
            elif at == 1:
                found[name] = self.rng.choice((1, 3, 8, block - 1))
            else:
                found[name] = self.rng.choice(
                    (block, block + 1, 2 * block - 1, self.rng.randint(1, most * block), block + 8, most * block - 4)
                )
            if sixteens:
                found[name] = max(16, found[name] // 16 * 16)
        walked = blocks.get("K", blocks.get("L", 1))
        has_descriptors = any(what.startswith("descriptor") for _, what in self.parameters)
        if at == 2 and "K" in found and not has_descriptors and self.chance(0.5):
            found["K"] = 0
        found["BEGIN"] = walked * self.rng.choice((0, 1, 2, 9)) if at else walked
        found["STEP"] = self.rng.choice((1, 2, 3))
        found["K2"] = self.rng.choice(
            (
                walked,
                2 * walked + (0 if self.has_whole_blocks or sixteens else 3),
                16 if not self.has_whole_blocks else walked,
            )
        )
        found["BATCH"] = self.rng.choice((1, 2, 3))
        found["TABLE"] = max(found.get("N", 1), found.get("M", 1), found.get("K", 1), 3) + self.rng.choice((0, 5))
        found["PAGES"] = self.rng.choice((3, 5))
        if "L" in found:
            found["TURNS"] = -(-found["L"] // blocks["L"])
            found["CELLS"] = found["PAGES"] * blocks["L"]
        if "K" in found:
            found["BLOCKS"] = max(1, -(-found["K"] // blocks["K"]) + 1)
            found["KPAD"] = max(1, found["K"])
            found["TILES_N"] = -(-found["N"] // blocks["N"])
            found["SLOTS"] = 3 * max(-(-found["N"] // blocks["N"]) + 1, -(-found["M"] // blocks["M"]) + 1)
            found["TILES_M"] = -(-found["M"] // blocks["M"])
        return found
