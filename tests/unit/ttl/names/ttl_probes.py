"""Kernels with one construct of tt-lang 1.1 each, from its documentation, with what they compute."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import indent

_KERNEL = """\
import ttl
{header}

@ttl.operation({decorator})
def kernel(a, b, out):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=(1, 1), block_count=2)
    o_dfb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)
{setup}
    @ttl.datamovement()
    def read():
{read}

    @ttl.compute()
    def compute():
{compute}

    @ttl.datamovement()
    def write():
{write}
"""

_READ = """\
with a_dfb.reserve() as x, b_dfb.reserve() as y:
    ttl.copy(a[0, 0], x).wait()
    ttl.copy(b[0, 0], y).wait()
"""
_WRITE = """\
with o_dfb.wait() as o:
    ttl.copy(o, out[0, 0]).wait()
"""


@dataclass(frozen=True)
class Probe:
    """A kernel of two tensors of one tile of f32, with elements of `a` from 0.1 to 0.9, and of `b` around 0."""

    name: str
    """The construct, as the page shows it."""
    body: str = "o.store(x)"
    """Statements with the blocks `x` and `y` of `a` and `b`, and the reserved block `o` of `out`."""
    expected: str = "a"
    """The elements of `out`, in numpy."""
    setup: str = ""
    read: str = _READ
    compute: str = ""
    """The compute thread, where it is more than `body`."""
    write: str = _WRITE
    decorator: str = "grid=(1, 1)"
    header: str = ""

    @property
    def source(self) -> str:
        """The file."""
        with_blocks = "with a_dfb.wait() as x, b_dfb.wait() as y, o_dfb.reserve() as o:\n" + indent(self.body, "    ")
        parts = {"read": self.read, "compute": self.compute or with_blocks, "write": self.write}
        threads = {name: indent(text.rstrip(), "        ") for name, text in parts.items()}
        setup = indent(self.setup, "    ") + "\n" if self.setup else ""
        return _KERNEL.format(header=self.header, decorator=self.decorator, setup=setup, **threads)


def _function(name: str, expected: str, operand: str = "x", more: str = "", space: str = "math") -> Probe:
    text = f"ttl.{space}.{name}({operand}{more})"
    return Probe(text, f"o.store({text})", expected)


_UNARY = {
    "abs": "np.abs(b)", "neg": "-b", "exp": "np.exp(b)", "exp2": "np.exp2(b)", "expm1": "np.expm1(b)",
    "sqrt": "np.sqrt(a)",
    "log": "np.log(a)", "logp1": "np.log1p(a)", "square": "b * b", "rsqrt": "1 / np.sqrt(a)", "recip": "1 / a",
    "tan": "np.tan(b)", "tanh": "np.tanh(b)", "atan": "np.arctan(b)", "atanh": "np.arctanh(a)", "sin": "np.sin(b)",
    "asin": "np.arcsin(a)", "asinh": "np.arcsinh(b)", "cos": "np.cos(b)", "acos": "np.arccos(a)",
    "relu": "np.maximum(b, 0)", "sigmoid": "1 / (1 + np.exp(-b))", "silu": "b / (1 + np.exp(-b))",
    "gelu": "b * (1 + erf(b / np.sqrt(2))) / 2", "softsign": "b / (1 + np.abs(b))",
    "hardsigmoid": "np.clip(b / 6 + 0.5, 0, 1)", "frac": "b - np.trunc(b)", "trunc": "np.trunc(b)",
    "floor": "np.floor(b)", "ceil": "np.ceil(b)", "sign": "np.sign(b)", "signbit": "np.signbit(b)",
    "selu": "1.0507010 * np.where(b > 0, b, 1.6732632 * np.expm1(b))",
}  # fmt: skip
_OF_A = ("sqrt", "log", "logp1", "rsqrt", "recip", "atanh", "asin", "acos")

FUNCTIONS = [
    *(_function(name, text, "x" if name in _OF_A else "y") for name, text in _UNARY.items()),
    _function("acosh", "np.arccosh(a + 1)", "x + 1.0"),
    _function("pow", "b ** 3", "y", ", 3"),
    _function("rsub", "2 - b", "y", ", 2"),
    _function("relu_max", "np.maximum(np.minimum(b, 1), 0)", "y", ", 1"),
    _function("relu_min", "np.maximum(b, 1)", "y", ", 1"),
    _function("leaky_relu", "np.where(b > 0, b, 2 * b)", "y", ", 2"),
    _function("prelu", "np.where(b > 0, b, 2 * b)", "y", ", 2"),
    _function("elu", "np.where(b > 0, b, 2 * np.expm1(b))", "y", ", 2"),
    _function("celu", "np.where(b > 0, b, 2 * np.expm1(b / 2))", "y", ", 2, 0.5"),
    _function("softplus", "np.log1p(np.exp(b))", "y", ", 1, 1, 20"),
    _function("hardtanh", "np.clip(b, -1, 1)", "y", ", -1, 1"),
    _function("round", "np.round(b, 1)", "y", ", 1"),
    _function("clamp", "np.clip(b, 0, 1)", "y", ", 0, 1"),
    _function("threshold", "np.where(b > 1, 7, b)", "y", ", 1, 7"),
    _function("exp", "np.exp(b / 2)", "y", ", scale=0.5"),
    _function("max", "np.maximum(a, b)", "x, y"),
    _function("min", "np.minimum(a, b)", "x, y"),
    Probe("ttl.exp(y)", "o.store(ttl.exp(y))", "np.exp(b)"),
    Probe("ttl.mul(x, y)", "o.store(ttl.mul(x, y))", "a * b"),
]
OPERATORS = [
    *(Probe(f"x {sign} y", f"o.store(x {sign} y)", f"a {sign} b") for sign in ("+", "-", "*", "/", "@", "%", "//")),
    Probe("y ** 2", "o.store(y ** 2)", "b ** 2"),
    Probe("y ** 3", "o.store(y ** 3)", "b ** 3"),
    Probe("-y", "o.store(-y)", "-b"),
    Probe("abs(y)", "o.store(abs(y))", "np.abs(b)"),
    Probe("x * 2.0", "o.store(x * 2.0)", "a * 2"),
    Probe("1.0 - x", "o.store(1.0 - x)", "1 - a"),
    Probe("x ** y", "o.store(x ** y)"),
    Probe("x > y", "o.store(x > y)"),
]
BLOCKS = [
    Probe("ttl.block.fill(1.5, shape=(1, 1))", "o.store(ttl.block.fill(1.5, shape=(1, 1)))", "a * 0 + 1.5"),
    Probe("ttl.block.fill(0, shape=o.shape)", "o.store(x + ttl.block.fill(2, shape=o.shape))", "a + 2"),
    Probe("ttl.math.fill(o, 1.5)", "o.store(ttl.math.fill(o, 1.5))", "a * 0 + 1.5"),
    Probe("ttl.math.fill(1.5, shape=(1, 1))", "o.store(ttl.math.fill(1.5, shape=(1, 1)))", "a * 0 + 1.5"),
    Probe("ttl.block.where(c, x, y)", "o.store(ttl.block.where(ttl.math.signbit(y), x, y))", "np.where(b < 0, a, b)"),
    Probe("ttl.block.mask(x, m)", "o.store(ttl.block.mask(x, ttl.math.signbit(y)))", "np.where(b < 0, 0, a)"),
    Probe(
        "ttl.block.mask_posinf(x, m)",
        "o.store(ttl.block.mask_posinf(x, ttl.math.signbit(y)))",
        "np.where(b < 0, np.inf, a)",
    ),
    *(
        Probe(f"ttl.{space}.broadcast({arguments})", f"o.store(ttl.{space}.broadcast({arguments}))", expected)
        for space, arguments, expected in (
            ("block", "x, dims=[1], shape=(1, 1)", "a[:, :1] + 0 * a"),
            ("block", "x, dims=[-2], shape=(1, 1)", "a[:1] + 0 * a"),
            ("block", "x, dims=[0, 1], shape=(1, 1)", "a[:1, :1] + 0 * a"),
            ("math", "x, o, dims=[1]", "a[:, :1] + 0 * a"),
            ("math", "x, dims=[0]", "a[:1] + 0 * a"),
        )
    ),
    Probe("y + ttl.math.broadcast(x, dims=[1])", "o.store(y + ttl.math.broadcast(x, dims=[1]))", "b + a[:, :1]"),
    Probe("ttl.math.reduce_sum(x, dims=[1])", "o.store(ttl.math.reduce_sum(x, dims=[1]))", "first(1, a.sum(1))"),
    Probe(
        "ttl.math.reduce_sum(x, dims=[0], shape=(1, 1))",
        "o.store(ttl.math.reduce_sum(x, dims=[0], shape=(1, 1)))",
        "first(0, a.sum(0))",
    ),
    Probe("ttl.math.reduce_max(y, dims=[-1])", "o.store(ttl.math.reduce_max(y, dims=[-1]))", "first(1, b.max(1))"),
    Probe(
        "ttl.math.reduce_sum(x, y, dims=[1])",
        "o.store(ttl.math.reduce_sum(x, y, dims=[1]))",
        "first(1, a.sum(1) * b[0, 0])",
    ),
    Probe("ttl.block.transpose(x)", "o.store(ttl.block.transpose(x))", "a.T"),
    Probe("ttl.math.transpose(x)", "o.store(ttl.math.transpose(x))", "a.T"),
    Probe("ttl.math.typecast(x, 'float32')", "o.store(ttl.math.typecast(x, 'float32'))"),
    Probe("ttl.block.squeeze(x, dims=[0])", "o.store(ttl.block.squeeze(x, dims=[0]))"),
    Probe("ttl.block.unsqueeze(x, dims=[0])", "o.store(ttl.block.unsqueeze(x, dims=[0]))"),
]

_LOOP_READ = """\
for _ in range(3):
    with a_dfb.reserve() as x, b_dfb.reserve() as y:
        ttl.copy(a[0, 0], x).wait()
        ttl.copy(b[0, 0], y).wait()
"""


def _loop(name: str, before: str, inside: str, after: str, expected: str) -> Probe:
    text = f"{before}\nfor _ in range(3):\n    with a_dfb.wait() as x, b_dfb.wait() as y:\n        {inside}\n{after}\n"
    return Probe(name, expected=expected, read=_LOOP_READ, compute=text)


_STORED = "with o_dfb.reserve() as o:\n    o.store(z)"
LOOPS = [
    _loop(
        "z += x @ y, z = ttl.block.fill(0, ...)",
        "z = ttl.block.fill(0, shape=(1, 1))",
        "z += x @ y",
        _STORED,
        "3 * (a @ b)",
    ),
    _loop("z = z + x", "z = ttl.block.fill(1, shape=(1, 1))", "z = z + x", _STORED, "3 * a + 1"),
    _loop(
        "z = ttl.math.max(z, y)",
        "z = ttl.block.fill(-1, shape=(1, 1))",
        "z = ttl.math.max(z, y)",
        _STORED,
        "np.maximum(b, -1)",
    ),
    _loop("o += x, o reserved", "o = o_dfb.reserve()", "o += x", "o.push()", "3 * a"),
    _loop("o.store(x, acc=True)", "o = o_dfb.reserve()", "o.store(x, acc=True)", "o.push()", "3 * a"),
    Probe(
        "for i in range(2, 8, 2)",
        expected="a",
        compute="for i in range(2, 4, 2):\n"
        "    with a_dfb.wait() as x, b_dfb.wait() as y, o_dfb.reserve() as o:\n        o.store(x)",
    ),
    Probe(
        "if i == 0: ... else: ...",
        expected="a",
        compute="for i in range(1):\n"
        "    with a_dfb.wait() as x, b_dfb.wait() as y, o_dfb.reserve() as o:\n"
        "        if i == 0:\n            o.store(x)\n        else:\n            o.store(y)",
    ),
    Probe("return under if", read="node_n, node_m = ttl.node(dims=2)\nif node_n > 0:\n    return\n" + _READ),
    Probe("while", compute="while True:\n    pass"),
]
BUFFERS = [
    Probe(
        "ttl.make_dataflow_buffer_like(a, shape=(1, 1))",
        setup="c_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1))",
        body="with c_dfb.reserve() as c:\n    c.store(y)\nwith c_dfb.wait() as c:\n    o.store(x + c)",
        expected="a + b",
    ),
    Probe(
        "ttl.make_dfb('float32', shape=(1, 1))",
        setup="c_dfb = ttl.make_dfb('float32', shape=(1, 1), block_count=1)",
        body="with c_dfb.reserve() as c:\n    c.store(y)\nwith c_dfb.wait() as c:\n    o.store(x + c)",
        expected="a + b",
    ),
    Probe(
        "x = dfb.wait(); x.pop()",
        compute="x = a_dfb.wait()\ny = b_dfb.wait()\no = o_dfb.reserve()\no.store(x)\nx.pop()\ny.pop()\no.push()",
    ),
    Probe(
        "dfb.push(), dfb.pop()",
        compute="x = a_dfb.wait()\ny = b_dfb.wait()\no = o_dfb.reserve()\no.store(x)\n"
        "a_dfb.pop()\nb_dfb.pop()\no_dfb.push()",
    ),
    Probe("x.shape", "assert x.shape == (1, 1)\no.store(x)"),
    Probe("a.shape, a.dtype", setup="rows = a.shape[0]\nassert rows == 32\nkind = a.dtype"),
    Probe("x.store(x + y), x waited for", "x.store(x + y)\no.store(x)"),
    Probe("ttl.make_tensor_backed_dfb(a, shape=(1, 1))", setup="c = ttl.make_tensor_backed_dfb(a, shape=(1, 1))"),
    Probe("ttl.make_dfb_allocation_group()", setup="c = ttl.make_dfb_allocation_group()"),
]
MOVEMENT = [
    Probe("ttl.copy(a[0:1, 0:1], x).wait()", read=_READ.replace("a[0, 0]", "a[0:1, 0:1]")),
    Probe(
        "tx = ttl.copy(...); tx.wait()",
        read="with a_dfb.reserve() as x, b_dfb.reserve() as y:\n"
        "    tx = ttl.copy(a[0, 0], x)\n    ty = ttl.copy(b[0, 0], y)\n    tx.wait()\n    ty.wait()",
    ),
    Probe("ttl.copy(...) without a wait", read=_READ.replace(".wait()", "")),
    Probe(
        "ttl.GroupTransfer()",
        read="g = ttl.GroupTransfer()\nwith a_dfb.reserve() as x, b_dfb.reserve() as y:\n"
        "    g.add(ttl.copy(a[0, 0], x))\n    g.add(ttl.copy(b[0, 0], y))\n    g.wait_all()",
    ),
    Probe(
        "ttl.raw_element_read(x, 0, 0)",
        write="with o_dfb.wait() as o:\n    value = ttl.raw_element_read(o, 0, 0)\n    ttl.copy(o, out[0, 0]).wait()",
    ),
    Probe("ttl.raw_element_write(x, 0, 0, 1.0)", read=_READ + "    ttl.raw_element_write(x, 0, 0, 1.0)\n"),
    Probe("ttl.read_index(x, 0, 0)", read=_READ + "    at = ttl.read_index(x, 0, 0)\n"),
]
GRID = [
    Probe(
        "ttl.node(dims=2)", read="node_n, node_m = ttl.node(dims=2)\n" + _READ.replace("a[0, 0]", "a[node_m, node_n]")
    ),
    Probe("ttl.node(dims=1)", read="node = ttl.node(dims=1)\n" + _READ.replace("a[0, 0]", "a[node, node]")),
    Probe("ttl.grid_size(dims=2)", setup="grid_n, grid_m = ttl.grid_size(dims=2)\nassert grid_n == 1"),
    Probe("ttl.grid_size(dims=1)", setup="assert ttl.grid_size(dims=1) == 1"),
    Probe("ttl.core(dims=2), its older name", read="x_core, y_core = ttl.core(dims=2)\n" + _READ),
    Probe(
        '@ttl.operation(grid="full")',
        decorator='grid="full"',
        write="node_n, node_m = ttl.node(dims=2)\n"
        "with o_dfb.wait() as o:\n    if node_n + node_m == 0:\n        ttl.copy(o, out[0, 0]).wait()",
    ),
    Probe("@ttl.operation(fp32_dest_acc_en=True)", decorator="grid=(1, 1), fp32_dest_acc_en=True"),
    Probe("@ttl.operation(dst_full_sync_en=True)", decorator="grid=(1, 1), dst_full_sync_en=True"),
    Probe('@ttl.operation(memory_space="DRAM")', decorator='grid=(1, 1), memory_space="DRAM"'),
    Probe('@ttl.operation(options="--no-ttl-maximize-dst")', decorator='grid=(1, 1), options="--no-ttl-maximize-dst"'),
    Probe('@ttl.operation(options="--ttl-nothing")', decorator='grid=(1, 1), options="--ttl-nothing"'),
    Probe('@ttl.operation(math_fidelity="HiFi2")', decorator='grid=(1, 1), math_fidelity="HiFi2"'),
    Probe("@ttl.kernel(grid=(1, 1)), its older name", decorator="grid=(1, 1)", header="ttl.operation = ttl.kernel"),
    Probe("ttl.DeviceDomain", setup="domain = ttl.DeviceDomain()"),
]
PIPES = [
    Probe(
        "ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(1, 0))])",
        decorator="grid=(2, 1)",
        setup="net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(1, 0))])",
        read="with b_dfb.reserve() as y:\n    ttl.copy(b[0, 0], y).wait()\nwith a_dfb.reserve() as x:\n"
        "    def send(pipe):\n        ttl.copy(a[0, 0], x).wait()\n        ttl.copy(x, pipe).wait()\n"
        "    def receive(pipe):\n        ttl.copy(pipe, x).wait()\n    net.if_src(send)\n    net.if_dst(receive)",
        write="node_n, node_m = ttl.node(dims=2)\nwith o_dfb.wait() as o:\n"
        "    if node_n == 1:\n        ttl.copy(o, out[0, 0]).wait()",
    ),
    Probe(
        "net.is_active()",
        decorator="grid=(1, 1)",
        setup="net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(0, 0))])",
        read="if net.is_active():\n" + indent(_READ, "    "),
    ),
    Probe(
        "ttl.Semaphore()",
        setup="ready = ttl.Semaphore()",
        read=_READ + "ready.set(1)\n",
        write="ready.wait_eq(1)\n" + _WRITE,
    ),
    Probe("ttl.wait_any([...])", read="ttl.wait_any([])\n" + _READ),
]
OTHERS = [
    Probe("from ttl import ttl", header="from ttl import ttl"),
    Probe('with ttl.signpost("load"):', read='with ttl.signpost("load"):\n' + indent(_READ, "    ")),
    Probe('print(f"i = {i}")', read="for i in range(1):\n    print(f'i = {i}')\n" + indent(_READ, "    ")),
    Probe('print("here")', read='print("here")\n' + _READ),
    Probe("print(i)", read="for i in range(1):\n    print('i =', i)\n" + indent(_READ, "    ")),
    Probe("print(dfb)", read="print(a_dfb)\n" + _READ),
    Probe("print(x)", "print(x)\no.store(x)"),
    Probe(
        "a function of the kernel's",
        setup="def twice(block):\n    return block + block",
        body="o.store(twice(x))",
        expected="2 * a",
    ),
    Probe("a constant of the module", header="SCALE = 3.0", body="o.store(x * SCALE)", expected="3 * a"),
    Probe("ttl.call_extern_func(...)", read="ttl.call_extern_func('f.h', 'f')\n" + _READ),
]

PROBES = {
    "Functions": FUNCTIONS, "Operators": OPERATORS, "Blocks": BLOCKS, "Loops and branches": LOOPS,
    "Dataflow buffers": BUFFERS, "Movement of data": MOVEMENT, "Grid and options": GRID, "Pipes and semaphores": PIPES,
    "Other constructs": OTHERS,
}  # fmt: skip
