"""The plug-in point: what packages of others add, and that none of them can break the compiler.

The packages are made here: a folder with modules and the metadata that an installer writes.
"""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl import CompilationError, wings
from tlx_xdsl.dialects import registry as dialects
from tlx_xdsl.frontend import calls
from tlx_xdsl.interpreter import registry as operations
from tlx_xdsl.interpreter.ops import register_all
from tlx_xdsl.runtime.driver import fingerprint
from tlx_xdsl.runtime.driver.binaries import binary_key
from tlx_xdsl.runtime.driver.specialization import Specialization
from tlx_xdsl.tools.commands import doctor
from tlx_xdsl.tools.opt.main import main as tlx_opt
from tlx_xdsl.tools.tlx import main as tlx
from tlx_xdsl.transforms import placed, registry
from tlx_xdsl.transforms.pipelines import ttgir_pipeline

ROOT = Path(__file__).parents[2]
CACHED = (
    wings.installed, wings.import_all, wings.identity, wings.source_digest, registry._homes, registry.former_names,
    registry.pass_class, dialects.all_dialects, fingerprint.compiler_fingerprint, placed.identity,
)  # fmt: skip

PASS = '''
from dataclasses import dataclass
from xdsl.dialects.arith import AddfOp, SubfOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

@dataclass(frozen=True)
class Negate(ModulePass):
    """Sums become differences."""
    name = "negate"
    most: int = 100

    def apply(self, ctx, op):
        for each in [each for each in op.walk() if isinstance(each, AddfOp)][: self.most]:
            new = SubfOp(each.lhs, each.rhs)
            new.location = each.location
            Rewriter.replace_op(each, new)

@dataclass(frozen=True)
class Fails(ModulePass):
    name = "fails"

    def apply(self, ctx, op):
        raise KeyError("lost")

@dataclass(frozen=True)
class Breaks(ModulePass):
    name = "breaks"

    def apply(self, ctx, op):
        for each in [each for each in op.walk() if each.name == "tt.return"]:
            each.detach()
'''
WING = "from tlx_xdsl.wings import Wing\nWING = Wing({})\n"


@tlx_xdsl.jit
def add(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) + tl.load(y + at))


SIGNATURE = {"x": "*fp32", "y": "*fp32", "out": "*fp32"}
TEXT = """
tt.func public @k(%x: f32, %y: f32) -> f32 {
  %z = arith.addf %x, %y : f32
  tt.return %z : f32
}
"""


def forget():
    for each in CACHED:
        each.cache_clear()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Make a package with a wing, and have it installed until the test ends."""
    made = []

    def make(wing, name="theirs", **modules):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        files = {"wing": WING.format(wing) if "WING" not in wing else wing, "passes": PASS, **modules}
        for module, text in files.items():
            (folder / f"{module}.py").write_text(text)
        metadata = tmp_path / f"{name}-1.2.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (metadata / "entry_points.txt").write_text(f"[tlx_xdsl.wings]\n{name}-wing = {name}.wing:WING\n")
        made.append(name)
        forget()
        return folder

    register_all()
    known = (calls.HANDLERS, operations.BUILDERS)
    before = [dict(each) for each in known]
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), str(ROOT))))
    # Set, so that it is as before when the test has ended.
    monkeypatch.setenv(wings.DISABLED, "")
    forget()
    yield make
    for name in [each for each in sys.modules if each.partition(".")[0] in made]:
        del sys.modules[name]
    for each, kept in zip(known, before, strict=True):
        each.clear()
        each.update(kept)
    forget()


NEGATE = 'passes={"negate": "theirs.passes", "fails": "theirs.passes", "breaks": "theirs.passes:Breaks"}'
AT_START = "after:frontend=negate"


def run_add(kernel=add, **options):
    x, y, out = np.float32([8, 9]), np.float32([1, 3]), np.zeros(2, np.float32)
    kernel.interpret(1, x, y, out, BLOCK=2, **options)
    return out.tolist()


def ttgir(*passes):
    return add.compile(SIGNATURE, {"BLOCK": 2}, passes=passes).ttgir


def test_ours_come_first(package):
    package("", name="a_package")
    assert [each.name for each in wings.installed()] == ["cpu", "ttl", "a_package-wing"]
    assert [each.is_ours for each in wings.installed()] == [True, True, False]


def test_a_tree_that_is_not_installed_has_its_wings(monkeypatch):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: ())
    assert [(point.name, name) for point, name, _ in wings._entry_points()] == [
        ("cpu", "tlx-xdsl"),
        ("ttl", "tlx-xdsl"),
    ]


# --- passes ----------------------------------------------------------------------------------------------------------


def test_a_pass_in_tlx_opt(package, tmp_path, capsys):
    package(NEGATE)
    (tmp_path / "in.mlir").write_text(TEXT)
    for spelled in (["-p", "negate"], ["--negate"], ["--negate=most=1"]):
        assert tlx_opt([str(tmp_path / "in.mlir"), *spelled]) == 0
        assert "arith.subf" in capsys.readouterr().out
    assert tlx_opt([str(tmp_path / "in.mlir"), "-p", "negate{least=1}"]) == 1
    assert "the pass 'negate' has no option 'least'; its options are most" in capsys.readouterr().err


def test_a_pass_in_a_compile(package):
    package(NEGATE)
    assert "arith.addf" in ttgir()
    assert "arith.subf" in ttgir(AT_START)
    assert "arith.addf" in ttgir("after:frontend=negate{most=0}")
    assert "arith.subf" in ttgir("before:end=theirs.passes:Negate")


def test_a_pass_of_a_kernel(package):
    package(NEGATE)
    kernel = tlx_xdsl.jit(add.source.fn, passes=[AT_START])
    assert "arith.subf" in kernel.compile(SIGNATURE, {"BLOCK": 2}).ttgir
    x, y, out = np.float32([8, 9]), np.float32([1, 3]), np.zeros(2, np.float32)
    kernel[(1,)](x, y, out, BLOCK=2)
    assert out.tolist() == [7, 6]
    add[(1,)](x, y, out, BLOCK=2)
    assert out.tolist() == [9, 12]


def test_a_pass_of_every_compile(package):
    package(f'{NEGATE}, placed=("after:frontend=negate",)')
    assert "arith.subf" in ttgir()


def test_the_order_at_one_place(package):
    package(f'{NEGATE}, placed=("after:frontend=negate{{most=1}}", "before:tlx-dump-layout=negate{{most=2}}")')
    given = ("before:tlx-dump-layout=negate{most=3}", "after:frontend=negate{most=4}", "after:frontend=negate{most=5}")
    passes = placed.with_placed(ttgir_pipeline(), given)
    where = [(at, each.inner.most) for at, each in enumerate(passes) if isinstance(each, placed.ForeignPass)]
    assert where == [(0, 1), (1, 4), (2, 5), (len(passes) - 3, 2), (len(passes) - 2, 3)]
    assert [each for each in passes if not isinstance(each, placed.ForeignPass)] == list(ttgir_pipeline())


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("negate", "expected after:NAME=PASS or before:NAME=PASS, found 'negate'"),
        ("beside:end=negate", "expected after:NAME=PASS or before:NAME=PASS, found 'beside:end=negate'"),
        ("after:end=negat", "there is no pass 'negat', did you mean 'negate'?"),
        ("after:end=negate{most}", "the options of the pass 'negate' do not fit"),
        ("after:end=negate{most=1", "expected PASS or PASS{option=value}, found 'negate{most=1'"),
        ("after:end=nowhere.passes:P", "the pass 'nowhere.passes:P' can't be imported: ModuleNotFoundError"),
        ("after:end=math:sin", "'math:sin' is no pass: expected a class derived from xdsl.passes.ModulePass"),
        (
            "after:tlx-dump-layout=negate",
            "at 'tlx-dump-layout', which this kernel does not go through: expected one of",
        ),
        ("after:end=fails", "the pass 'fails' (asked for) failed: KeyError: 'lost'"),
        ("after:frontend=breaks", "in the pass 'breaks' (asked for)"),
    ],
)
def test_what_is_wrong_with_a_pass(package, asked, message):
    package(NEGATE)
    with pytest.raises(CompilationError) as caught:
        ttgir(asked)
    assert message in str(caught.value)


def test_a_list_of_passes_is_of_texts():
    with pytest.raises(TypeError, match="passes: expected texts such as"):
        tlx_xdsl.jit(add.source.fn, passes=[3])


def test_a_pass_that_a_wing_misplaces_is_left_out(package):
    package(f'{NEGATE}, placed=("negate", "after:frontend=unknown", "after:tlx-dump-layout=negate")')
    with pytest.warns(RuntimeWarning, match="'theirs-wing' of theirs 1.2 is left out") as caught:
        assert "arith.addf" in ttgir()
    assert len(caught) == 2


# --- keys of caches --------------------------------------------------------------------------------------------------


def test_caches_know_packages_and_passes(package):
    wanted = Specialization(SIGNATURE, {"BLOCK": 2})
    asked = Specialization(SIGNATURE, {"BLOCK": 2}, passes=("after:frontend=theirs.passes:Negate",))
    without = binary_key(add.source, wanted, "3.9.0")
    folder = package(NEGATE)
    keys = [without, binary_key(add.source, wanted, "3.9.0"), binary_key(add.source, asked, "3.9.0")]
    kernel = tlx_xdsl.jit(add.source.fn, passes=[AT_START])
    keys.append(binary_key(kernel.source, wanted, "3.9.0"))
    assert wings.identity().startswith("theirs-wing theirs 1.2 ")
    (folder / "passes.py").write_text(PASS + "# changed\n")
    forget()
    keys.extend(binary_key(source, each, "3.9.0") for source in (add.source, kernel.source) for each in (wanted, asked))
    assert len(set(keys)) == len(keys)


def test_a_pass_without_a_file_has_no_key(package, monkeypatch):
    package(NEGATE)
    monkeypatch.setattr(sys.modules["builtins"], "Negate", __import__("theirs.passes").passes.Negate, raising=False)
    monkeypatch.setattr(__import__("theirs.passes").passes.Negate, "__module__", "builtins")
    with pytest.raises(CompilationError, match="the module 'builtins' has no file"):
        placed.identity(("after:frontend=builtins:Negate",))


# --- packages that are broken ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wing", "reason"),
    [
        ("import nowhere\nWING = 1", "ModuleNotFoundError: No module named 'nowhere'"),
        ("raise SystemExit(3)\nWING = 1", "SystemExit: 3"),
        ("THEIRS = 'WING'", "AttributeError: module 'theirs.wing' has no attribute 'WING'"),
        ("WING = {}", "theirs.wing:WING is no tlx_xdsl.wings.Wing, but of dict"),
        (WING.format("flight=1"), "TypeError: "),
    ],
)
def test_a_broken_package_is_one_warning(package, wing, reason):
    package(wing)
    with pytest.warns(RuntimeWarning, match="plug-in 'theirs-wing' of theirs 1.2 is left out") as caught:
        assert ("arith.addf" in ttgir(), run_add()) == (True, [9, 12])
    assert [reason in str(each.message) for each in caught] == [True]


def test_broken_parts_of_a_package(package):
    package(
        'passes={"lost": "theirs.nowhere", "none": "theirs.passes:None_"}, lowerings=("theirs.lost",), '
        'operations=("theirs.lost",), findings=("theirs.passes:lost",), dialects={"lost": "theirs.lost:LOST"}'
    )
    for kind in ("lowerings", "operations"):
        with pytest.warns(RuntimeWarning, match="plug-in 'theirs-wing' of theirs 1.2 is left out: ModuleNotFound"):
            wings.import_all(kind)
    assert run_add() == [9, 12]
    for name in ("lost", "none"):
        with pytest.raises(
            CompilationError, match=f"the pass '{name}' of the plug-in 'theirs-wing' of theirs 1.2 can't"
        ):
            ttgir(f"after:end={name}")
    with pytest.warns(RuntimeWarning, match="plug-in 'theirs-wing'"):
        assert "theirs-wing of theirs 1.2" in doctor.report(list(doctor.of_wings()))


def test_command_lines_with_a_broken_package(package, tmp_path):
    package("import nowhere\nWING = 1")
    (tmp_path / "in.mlir").write_text(TEXT)
    for module, arguments in (("tlx", ["doctor"]), ("opt.main", ["in.mlir", "-p", "canonicalize"])):
        for flags, lines in (([], 1), (["--no-plugins"], 0)):
            command = [sys.executable, "-m", f"tlx_xdsl.tools.{module}", *arguments, *flags]
            done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
            assert done.returncode == 0, done.stderr
            assert done.stderr.count("theirs-wing") == len(done.stderr.splitlines()) == lines, done.stderr


def test_names_that_are_taken(package):
    taken = 'passes={"tlx-dump-layout": "theirs.passes", "ttl-bufferize": "theirs.passes"}'
    package(f'{taken}, dialects={{"tt": "theirs:TT"}}')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = registry.pass_class("ttl-bufferize").__module__, "arith.addf" in ttgir()
    assert found == ("tlx_xdsl.ttl.transforms.bufferize", True)
    said = {str(each.message).partition(": ")[2] for each in caught}
    end = " (--no-plugins does without)"
    assert said == {
        f"'tlx-dump-layout' of its passes is one of tlx_xdsl itself{end}",
        f"'ttl-bufferize' of its passes is one of the plug-in 'ttl' of tlx-xdsl {wings.installed()[1].version}{end}",
        f"'tt' of its dialects is one of tlx_xdsl itself{end}",
    }


# --- more than passes ------------------------------------------------------------------------------------------------

LANGUAGE = '''
"""A function of the language, its operation, and what that does."""
from xdsl.dialects.builtin import f32
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure
from tlx_xdsl.frontend.calls import Call, lowers
from tlx_xdsl.frontend.values import Tensor
from tlx_xdsl.interpreter.registry import pure
from tlx_xdsl.language.core import builtin, float32


@irdl_op_definition
class TwiceOp(IRDLOperation):
    name = "theirs.twice"
    value = operand_def()
    result = result_def()
    traits = traits_def(Pure())


THEIRS = Dialect("theirs", [TwiceOp])


@builtin("theirs")
def twice(value):
    """Two times a block."""


@lowers("theirs.twice")
def _twice(call: Call):
    value = call.of("value", Tensor, "a block")
    return call.emit_tensor(TwiceOp, value.dtype, value.shape, value)


@builtin("theirs")
def lost():
    """Fail."""


@lowers("theirs.lost")
def _lost(call: Call):
    raise KeyError("lost")


@pure(TwiceOp)
def _run(op):
    return lambda value: value + value
'''


def test_a_function_of_the_language(package, tmp_path, monkeypatch):
    places = 'lowerings=("theirs.language",), operations=("theirs.language",)'
    package(f'{places}, dialects={{"theirs": "theirs.language:THEIRS"}}', language=LANGUAGE)
    (tmp_path / "user.py").write_text(
        "import tlx_xdsl\nimport tlx_xdsl.language as tl\nfrom theirs.language import lost, twice\n\n\n@tlx_xdsl.jit\n"
        "def kernel(x, B: tl.constexpr):\n    at = tl.arange(0, B)\n    tl.store(x + at, twice(tl.load(x + at)))\n\n\n"
        "@tlx_xdsl.jit\ndef fails(x):\n    lost()\n"
    )
    wings.import_all("operations")
    user = __import__("user")
    kernel = user.kernel
    try:
        with pytest.raises(
            CompilationError, match=r"theirs\.lost: its lowering in the plug-in 'theirs-wing' of theirs"
        ):
            user.fails.compile({"x": "*fp32"})
        assert '"theirs.twice"' in kernel.compile({"x": "*fp32"}, {"B": 4}, options={}).ttir
        x = np.float32([1, 2, 3, 4])
        kernel.interpret(1, x, B=4)
        assert x.tolist() == [2, 4, 6, 8]
    finally:
        del sys.modules["user"]


def test_a_namespace_is_asked_for():
    with pytest.raises(TypeError, match="builtin takes the namespace of the function"):
        tl.core.builtin(forget)


COMMAND = """
def add_arguments(parser):
    parser.add_argument("--name", default="you")

def run(args):
    print(f"hello {args.name}")
"""


def test_a_command(package, capsys):
    package('commands={"greet": ("theirs.command", "greet a name")}', command=COMMAND)
    assert tlx(["greet", "--name", "me"]) == 0
    assert capsys.readouterr().out == "hello me\n"
    with pytest.raises(SystemExit):
        tlx(["--help"])
    assert "greet a name" in capsys.readouterr().out
    forget()
    with pytest.raises(SystemExit):
        tlx(["greet", "--no-plugins"])
    assert "there is no command 'greet'" in capsys.readouterr().err


def test_findings(package):
    package(
        'findings=("theirs.findings:found",), passes={"negate": "theirs.passes"}',
        findings="from tlx_xdsl.tools.commands.doctor import Finding\n\n\n"
        'def found():\n    yield Finding("wind", "from the west", "fly east")\n',
    )
    text = doctor.report(list(doctor.of_wings()))
    assert "theirs-wing of theirs 1.2: passes 1, findings 1" in text
    assert "from the west" in text
    assert "-> fly east" in text


def test_no_launcher(monkeypatch):
    monkeypatch.setattr(wings, "names", lambda kind: {})
    with pytest.raises(ValueError, match="no installed package of tlx_xdsl launches on 'cpu'"):
        tlx_xdsl.jit(add.source.fn)[(1,)](np.zeros(2, np.float32), np.zeros(2, np.float32), np.zeros(2, np.float32), 2)


def test_without_plug_ins_nothing_is_said():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        forget()
        assert wings.identity() == ""


# --- the package of the documentation --------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def example(tmp_path_factory):
    """The folder that the package of `docs/plug-ins.md` was installed into."""
    folder = tmp_path_factory.mktemp("installed")
    install = "pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index --target"
    subprocess.run(
        [sys.executable, "-m", *install.split(), str(folder), str(ROOT / "examples" / "plug_in")],
        check=True,
        timeout=300,
    )
    return folder


def test_the_example_and_its_test(example):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(example), str(ROOT)))}
    test = ROOT / "examples" / "plug_in" / "tests" / "exact_division.mlir"
    opt = [sys.executable, "-m", "tlx_xdsl.tools.opt.main", str(test), "-p", "exact-division"]
    text = subprocess.run(opt, capture_output=True, text=True, env=environment, check=True).stdout
    checked = subprocess.run(
        [sys.executable, "-m", "filecheck.main", str(test)], input=text, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    compile_ = [sys.executable, "-m", "tlx_xdsl.tools.tlx", "compile", "examples/plug_in/kernel.py:quarter", "-o", "-"]
    arguments = ["--emit", "ttgir", "--pass", "after:frontend=exact-division"]
    for more, has in (([], "arith.divf"), (arguments, "arith.mulf")):
        command = [*compile_, *(more or arguments[:2])]
        text = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=True).stdout
        assert has in text
