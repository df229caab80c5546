"""The launches of normalised rows: `layer_norm` and `rms_norm`, and their gradients (`norm_backward`)."""

from __future__ import annotations

from typing import Any

from ..calls.launching import Launch, Launches, multiprocessors
from ..calls.operands import UNIT, Rows, check_types, empty, operand
from ..calls.planned_function import PlannedFunction
from ..calls.plans import WORKSPACE, Prepared
from ..operators import Operator, rows as operators
from . import norm_clusters
from .edges import THREADS, tile_of
from .norm_long_rows import norm_backward_long_rows, norm_long_rows, norm_weight_parts
from .norm_rows import add_parts, norm_rows
from .norm_unaligned_rows import Form, norm_backward_rows, norm_unaligned_rows
from .tables import DTYPES, Tables, prepared

MAX_COLUMNS = 1 << 20
"""Elements of a row."""

HELD_COLUMNS = 32768
"""The longest row that a program's registers hold: 32 values for each of 1024 threads."""

HELD_BACKWARD_COLUMNS = 8192
"""The same backward, where the next row and the sums of the weight's gradient are held, too: 16 for each of 512."""

_LONG_BLOCK, _LONG_WARPS = 8192, 16
"""Elements of a longer row that a program has at a time, and its warps."""

_SUM_COLUMNS, _SUM_ROWS, _SUM_PROGRAMS = 256, 16, 4
"""The block that a program adds up at a time for the gradient of the weight, and programs of a multiprocessor."""

_ELEMENTS = 2048
"""Elements of a program at least: rows that are shorter are taken together."""

_WARP_ELEMENTS, _FEW_WARPS = 512, 8
"""Elements of a warp, up to so many warps; a program of more has twice as many of each warp (32 for a thread)."""

_BACKWARD_ELEMENTS = 16
"""Elements of a thread backward."""

_HELD_UNALIGNED, _UNALIGNED_REGISTERS = 32768, 128
"""The longest row that begins anywhere of which registers hold all; those of a thread."""

_HELD_BACKWARD_UNALIGNED, _HELD_BACKWARD_UNCENTRED = 8192, 16384
"""The longest row that begins anywhere of which registers hold all backward: of `layer_norm` and with a gradient of the
sum, and of `rms_norm` alone.

Of a copy's rate, held and not: 8492 columns 0.11 and 0.24, with a sum 0.24 and 0.38, `rms_norm` alone 0.33 and 0.30, of
24057 0.20 and 0.38 (H200, 2026-12-01).
"""

_SHARED_BYTES = 200 << 10
"""Bytes of shared memory for rows of a multiprocessor that are under way."""

_HELD_FACTORS = 16384
"""The longest row in parts of which registers hold weights and biases, too."""

_VECTORS = 4
"""Vectors of 16 bytes that a thread has of each tensor there, at most."""

_FEW_COLUMNS = 256
"""Those of a row forward up to which a program has one block less under way or at work.

Of a copy's rate, with 3 and 4 blocks: 201 columns 0.85 and 0.79, 811 0.95 and 0.98, 11485 0.83 and 0.89 (layer norm,
H200, 2026-12-01). `rms_norm_residual` in 16 bits has two there, and no edges ahead: 81, 119 and 201 columns 0.71, 0.83
and 0.90, with 3 blocks and edges ahead 0.47, 0.64 and 0.72.
"""

_STAGES = 3
"""Tiles of rows that a program has backward, under way or at work."""

_REGISTERS = 1 << 16
"""Those of a multiprocessor."""

_PART_COLUMNS, _PART_ELEMENTS = 32, 4096
"""Columns of the block of sums that a program adds up at a time, and its elements."""

_SHORT, _SHORT_PART_COLUMNS = 1024, 8
"""Elements of a row up to which there are fewer on a GPU, so that more programs share the work."""


def norm_function(name: str, names: str, centred: bool, operator: Operator) -> PlannedFunction:
    """The function called `name` of tensors with these names, of which `norm_launch` has the rest; its option is eps.

    Its results, `out` and `h` where there is a residual, come last.
    """
    order = names.split()
    alike, results = ("x residual", "out h") if "residual" in order else ("x", "out")
    count = len(order) - len(results.split())

    def prepare(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
        def launch(**named: Any) -> Launch:
            return norm_launch(name, **{"bias": None, **named}, eps=options[0], centred=centred)

        return prepared(name, dict(zip(order, tensors, strict=True)), alike, results, launch)

    return PlannedFunction(
        name, prepare, results=slice(count, len(order)) if "h" in order else count, operator=operator
    )


def norm_launch(
    name: str,
    x: Any,
    weight: Any,
    bias: Any,
    out: Any,
    eps: float,
    *,
    centred: bool,
    residual: Any = None,
    h: Any = None,
) -> Launch:
    """The launch of `layer_norm`, or without `centred` of `rms_norm`, called `name`; no extent may be 0.

    With a `residual`, what is normalised is its sum with `x`, which `h` gets. Raises as those do.
    """
    of = _tables(name, {"x": x, "residual": residual, "h": h, "out": out}, weight=weight, bias=bias)
    rows, loaded = of.rows, 1 if residual is None else 2
    values = {**of.arguments, "eps": float(eps)}
    constants = {"UNIT": of.unit, "CENTRED": centred}
    aligned = tuple(of.pointers) if of.unit > 1 else ()
    width, with_width = _width(of), ("x_ptr", "residual_ptr", "h_ptr", "out_ptr")
    if of.unit > 1 and centred and loaded == 1 and 3 * rows.columns <= 2 * min(rows.block, _HELD_FACTORS):
        width, with_width = 16 // of.first.element_bytes, aligned
    if width > 1 and rows.columns <= _HELD_UNALIGNED:
        ahead = loaded == 1 or centred or of.first.element_bytes > 2 or rows.columns > _FEW_COLUMNS
        constants |= {
            "STAGES": _STAGES - 1 + ahead + (rows.columns > _FEW_COLUMNS),
            "HELD": rows.columns <= _HELD_FACTORS,
            "AHEAD": ahead,
        }
        return _unaligned(norm_unaligned_rows, of, loaded, values, constants, with_width, _VECTORS, width)
    if width > 1 or rows.columns > HELD_COLUMNS:
        divided = norm_clusters.division(of.first, rows, of.unit, (loaded, of.vectors), backward=False)
        if divided is not None:
            return norm_clusters.launch(of.first, rows, divided, values, constants, aligned, backward=False)
        return Launch.of(
            norm_long_rows,
            (rows.count,),
            values,
            {**constants, "BLOCK": _LONG_BLOCK, "WIDTH": width},
            of.first.device,
            aligned=with_width if width > 1 else aligned,
            num_warps=_LONG_WARPS,
        )
    block = rows.block
    together = _together(_ELEMENTS // block, rows)
    warps = max(min(together * block // _WARP_ELEMENTS, _FEW_WARPS), together * block // (2 * _WARP_ELEMENTS), 1)
    return Launch.of(
        norm_rows,
        (-(-rows.count // together),),
        {**values, "ROW_COUNT": rows.count},
        {**constants, "BLOCK": block, "ROWS": together, "EVEN": rows.columns == block},
        of.first.device,
        aligned=aligned,
        num_warps=warps,
    )


def _tables(name: str, tables: dict[str, Any], **vectors: Any) -> Tables:
    """The operands. Raises ValueError for rows that are too long, and as `Tables` does."""
    of = Tables(name, tables, **vectors)
    if of.rows.columns > MAX_COLUMNS:
        raise ValueError(f"{of.first.what}: expected rows of at most {MAX_COLUMNS} elements, got {of.rows.columns}")
    return of


def _width(of: Tables) -> int:
    """The elements of a vector of 16 bytes where rows that begin anywhere do so equally in all operands, else 1."""
    return of.width if len({each.distance for each in of.all_rows}) == 1 else 1


def _unaligned(
    kernel: Any, of: Tables, loaded: int, values: dict[str, Any], constants: dict[str, Any],
    aligned: tuple[str, ...], vectors: int, width: int,
) -> Launch:  # fmt: skip
    """The launch for rows that begin anywhere: as many programs as are resident, alike for each of `width` places.

    They load so many tensors, `vectors` of 16 bytes of each for a thread.
    """
    rows, tile = of.rows, tile_of(of.rows.columns, width, vectors)
    threads = max(THREADS, tile["LANES"])
    together = threads // tile["LANES"]
    registers = min(_UNALIGNED_REGISTERS, _REGISTERS // threads)
    resident = _REGISTERS // (threads * registers)
    classes = width if of.unit == 1 else 1
    of_stage = resident * loaded * threads * tile["PIECES"] * width * of.first.element_bytes
    constants["STAGES"] = max(1, min(constants["STAGES"], _SHARED_BYTES // of_stage))
    most = multiprocessors(of.first) * resident // classes
    programs = max(min(-(-rows.count // (together * classes)), most), 1) * classes
    if "LENGTH" in constants:
        values = {**values, "parts_ptr": empty(of.first, (programs * 2 * constants["LENGTH"],), "fp32")}
    return Launch.of(
        kernel,
        (programs,),
        {**values, "ROW_COUNT": rows.count},
        {"FORM": Form(together, tile["LANES"], tile["PIECES"], width, classes), **constants},
        of.first.device,
        aligned=aligned,
        maxnreg=registers,
        num_warps=threads // 32,
    )


def _together(most: int, rows: Rows) -> int:
    """The rows of a program, a power of two: up to `most`, and no more than there are."""
    return 1 << (max(1, min(most, rows.count)).bit_length() - 1)


def norm_backward(
    x: Any, weight: Any, dout: Any, *, eps: float, centred: bool, with_bias: bool = False, dh: Any = None
) -> tuple[Any, Any, Any]:
    """Return the gradients (dx, dweight, dbias) of `layer_norm`, or without `centred` of `rms_norm`.

    `dout` is the gradient of the result; dweight is None without `weight`, dbias unless it is asked for. `dh`, of x's
    shape, is added to dx before that is rounded: the gradient that x has from elsewhere, as the sum with a residual.

    Raises TypeError for other types, ValueError for other shapes and strides, and rows of more than 1048576 elements.
    """
    return NORM_BACKWARD((x, weight, dout, dh, None, None, None), (eps, centred, with_bias))


_NAME = "norm_backward"


def norm_backward_launch(
    x: Any, weight: Any, dout: Any, dx: Any, dweight: Any, dbias: Any, *, eps: float, centred: bool, dh: Any = None
) -> Launches:
    """The launches of `norm_backward`; no extent may be 0. Raises as it does."""
    of = _tables(_NAME, {"x": x, "dout": dout, "dh": dh, "dx": dx}, weight=weight)
    rows, loaded = of.rows, 2 if dh is None else 3
    values = {**of.arguments, "eps": float(eps)}
    constants = {"UNIT": of.unit, "CENTRED": centred}
    wanted = (("dweight", dweight), ("dbias", dbias))
    outs = {f"{name}_ptr": None if value is None else operand(_NAME, name, value) for name, value in wanted}
    aligned = ("x_ptr", "weight_ptr", "dout_ptr", "dh_ptr", "dx_ptr") if of.unit > 1 else ()
    width, bodies = _width(of), ("x_ptr", "dout_ptr", "dh_ptr", "dx_ptr", "parts_ptr")
    if width == 1:
        most = HELD_BACKWARD_COLUMNS
    else:
        most = _HELD_BACKWARD_UNALIGNED if centred or loaded == 3 else _HELD_BACKWARD_UNCENTRED
    if rows.columns > most:
        divided = norm_clusters.division(of.first, rows, of.unit, (loaded, of.vectors), backward=True)
        if divided is not None:
            return _cluster_backward(of, divided, values, constants, outs, aligned)
        return _long_backward(of, values, constants, outs, bodies if width > 1 else aligned, width)
    length = -(-rows.columns // UNIT) * UNIT
    constants |= {"WITH_BIAS": dbias is not None, "LENGTH": length, "STAGES": _STAGES}
    if of.unit > 1:
        width, bodies = 16 // of.first.element_bytes, (*aligned, "parts_ptr")
    vectors = _BACKWARD_ELEMENTS // max(width, 2)
    main = _unaligned(norm_backward_rows, of, loaded, values, constants, bodies, vectors, width)
    parts = main.arguments["parts_ptr"]
    return Launches((main, *_sums(of, parts, main.grid[0], length, outs)), parts)


def _cluster_backward(
    of: Tables, divided: norm_clusters.Division, values: dict[str, Any], constants: dict[str, Any],
    outs: dict[str, Any], aligned: tuple[str, ...],
) -> Launches:  # fmt: skip
    """The launches for rows that clusters hold: dx with sums of each cluster, and the sums of those."""
    length = divided.ranks * divided.block
    clusters = divided.clusters(of.first, of.rows)
    parts = empty(of.first, (clusters * 2 * length,), "fp32")
    values, constants = {**values, "parts_ptr": parts}, {**constants, "WITH_BIAS": outs["dbias_ptr"] is not None}
    main = norm_clusters.launch(
        of.first, of.rows, divided, values, constants, (*aligned, "parts_ptr"), backward=True
    )  # fmt: skip
    return Launches((main, *_sums(of, parts, clusters, length, outs)), parts)


def _long_backward(
    of: Tables, values: dict[str, Any], constants: dict[str, Any], outs: dict[str, Any], aligned: tuple[str, ...],
    width: int,
) -> Launches:  # fmt: skip
    """The launches for rows that are not held: dx, sums of parts of the rows, and the sums of those."""
    given, rows = of.first, of.rows
    blocks = -(-rows.columns // _SUM_COLUMNS)
    length = blocks * _SUM_COLUMNS
    programs = max(1, min(-(-rows.count // _SUM_ROWS), _SUM_PROGRAMS * multiprocessors(given) // blocks))
    workspace = empty(given, (programs * 2 * length + 2 * rows.count,), "fp32")
    parts, stats = workspace[: programs * 2 * length], workspace[programs * 2 * length :]
    main = Launch.of(
        norm_backward_long_rows,
        (rows.count,),
        {**values, "stats_ptr": stats},
        {**constants, "BLOCK": _LONG_BLOCK, "WIDTH": width},
        given.device,
        aligned=aligned,
        maxnreg=_REGISTERS // (_LONG_WARPS * 64) if width > 1 else None,  # so that two programs are resident
        num_warps=_LONG_WARPS,
    )
    if all(each is None for each in outs.values()):
        return Launches((main,), workspace)
    names = ("x_ptr", "dout_ptr", "x_stride", "dout_stride", "COLUMNS")
    of_weight = Launch.of(
        norm_weight_parts,
        (blocks, programs),
        {**{name: values[name] for name in names}, "stats_ptr": stats, "parts_ptr": parts, "ROW_COUNT": rows.count},
        {"LENGTH": length, "BLOCK": _SUM_COLUMNS, "ROWS": _SUM_ROWS, "UNIT": of.unit},
        given.device,
        aligned=tuple(name for name in aligned if name in names),
    )
    return Launches((main, of_weight, *_sums(of, parts, programs, length, outs)), workspace)


def _sums(of: Tables, parts: Any, count: int, length: int, outs: dict[str, Any]) -> list[Launch]:
    """The launch that adds up `count` sums, `length` apart, if one is wanted."""
    wanted = sum(each is not None for each in outs.values())
    if not wanted:
        return []
    given, length_of_row = of.first, of.rows.columns
    columns = _SHORT_PART_COLUMNS if given.device is not None and length_of_row <= _SHORT else _PART_COLUMNS
    sums = Launch.of(
        add_parts,
        (-(-length_of_row // columns), wanted),
        {"parts_ptr": parts, **outs, "PARTS": count, "COLUMNS": length_of_row},
        {"LENGTH": length, "BLOCK": columns, "ROWS": _PART_ELEMENTS // columns},
        given.device,
        aligned=("parts_ptr",),
        num_warps=8,
        launch_pdl=True,
    )
    return [sums]


def _prepare(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    x, weight, dout, dh, *_ = tensors
    eps, centred, with_bias = options
    given = operand(_NAME, "x", x)
    check_types((given,), DTYPES)
    columns = given.shape[-1:]
    dx = empty(given, given.shape)
    dweight = None if weight is None else empty(given, columns)
    dbias = empty(given, columns) if with_bias else None
    named = {"x": x, "weight": weight, "dout": dout, "dh": dh, "dx": dx, "dweight": dweight, "dbias": dbias}
    if 0 in given.shape:
        for each in (dweight, dbias):
            if each is not None:
                each[...] = 0
        return Prepared(named)
    launches = norm_backward_launch(x, weight, dout, dx, dweight, dbias, eps=eps, centred=centred, dh=dh)
    return Prepared({**named, WORKSPACE: launches.workspace}, launches.parts)


NORM_BACKWARD = PlannedFunction(_NAME, _prepare, results=slice(4, 7), operator=operators.NORM_BACKWARD)
