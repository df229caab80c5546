"""Changes that `tlx_xdsl.compat` makes in stock Triton, and that nothing of them remains."""

import importlib
import subprocess
import sys
import types

import pytest

import tlx_xdsl.compat as compat
import tlx_xdsl.language.tlx as our_tlx

pytestmark = [pytest.mark.backend, pytest.mark.quick]

TLX = "triton.language.extra.tlx"


def every_name() -> dict[str, object]:
    """Return all that Triton's modules and their classes hold, and what Python imports by."""
    # What the drop-in imports of Triton and of ours is there from the first time on.
    found: dict[str, object] = {"sys.meta_path": tuple(sys.meta_path)}
    for module_name, module in sorted(sys.modules.items()):
        if module_name.split(".")[0] != "triton":
            continue
        found[module_name] = module
        for name, value in vars(module).items():
            found[f"{module_name}:{name}"] = value
            if isinstance(value, type) and value.__module__ == module_name:
                found |= {f"{module_name}:{name}.{member}": each for member, each in vars(value).items()}
    driver = importlib.import_module("triton.runtime.driver").driver
    return found | {f"driver.{name}": value for name, value in vars(driver).items()}


@pytest.fixture(autouse=True)
def nothing_remains():
    compat.install()
    compat.uninstall()
    before = every_name()
    yield
    assert not compat.is_installed()
    after = every_name()
    assert before.keys() == after.keys()
    assert [name for name, value in before.items() if after[name] is not value and after[name] != value] == []


@pytest.mark.parametrize("mode", ["launch", "interpret", "compile"])
def test_all_is_taken_back(mode: str):
    before = every_name()
    compat.install(mode=mode)
    changed = {name for name, value in every_name().items() if before.get(name) is not value}
    assert {"triton:jit", "triton.runtime.jit:jit", "triton:Config", "triton.runtime.autotuner:Config"} <= changed
    assert ("driver._active" in changed) == (mode != "launch")
    compat.uninstall()


def test_twice_is_once():
    compat.install()
    names = every_name()
    compat.install()
    assert every_name() == names
    compat.uninstall()
    compat.uninstall()


def test_within_a_with_statement_that_fails():
    def fails():
        with compat.installed():
            importlib.import_module(TLX)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert TLX not in sys.modules


def test_a_with_statement_leaves_what_was_installed():
    compat.install()
    with compat.installed():
        pass
    assert compat.is_installed()
    compat.uninstall()


def test_a_failing_installation_is_taken_back(monkeypatch: pytest.MonkeyPatch):
    import tlx_xdsl.compat.replacements as home

    def fails(mode: str, target: str, warp_specialize: object):
        yield sys.modules["triton"], "jit", None
        raise ZeroDivisionError

    monkeypatch.setattr(home, "replacements", fails)
    with pytest.raises(ZeroDivisionError):
        compat.install()


def test_another_mode_is_refused():
    with compat.installed(), pytest.raises(RuntimeError, match="installed with mode='launch', target='sm_90a'"):
        compat.install(mode="interpret")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "run"}, "unknown mode 'run', expected one of launch, cpu, interpret, check, ptx, record, compile"),
        ({"target": "sm_1"}, "sm_1"),
    ],
)
def test_a_wrong_argument_changes_nothing(arguments: dict[str, str], message: str):
    with pytest.raises(ValueError, match=message):
        compat.install(**arguments)


# --- modules --------------------------------------------------------------------------------------------------------


def test_tlx_is_found_by_every_way():
    with compat.installed():
        import triton.language.extra.tlx as by_name
        import triton.language.extra.tlx.warp_spec
        from triton.language.extra import tlx as by_package
        from triton.language.extra.tlx.mem_ops import local_alloc
        from triton.language.extra.tlx.warp_spec import get_bufidx_phase

        assert by_name is by_package is triton.language.extra.tlx
        assert {name for name in our_tlx.__all__ if getattr(by_name, name) is not getattr(our_tlx, name)} == set()
        assert local_alloc is our_tlx.local_alloc
        assert get_bufidx_phase is our_tlx.get_bufidx_phase is triton.language.extra.tlx.warp_spec.get_bufidx_phase
        # Names of AMD GPUs exist, for an error that says so.
        assert by_name.buffer_load is not None
        with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
            _ = by_name.nonsense


def test_a_star_import():
    names: dict[str, object] = {}
    with compat.installed():
        exec(f"from {TLX} import *", names)
    assert set(our_tlx.__all__) <= names.keys()


def test_our_own_modules_are_not_touched():
    before = dict(vars(our_tlx))
    with compat.installed():
        importlib.import_module(f"{TLX}.types")
        importlib.import_module(f"{TLX}.utility")
    assert dict(vars(our_tlx)) == before
    assert our_tlx.__spec__ is not None
    assert our_tlx.__spec__.name == "tlx_xdsl.language.tlx"


def test_what_is_not_there_is_not_found():
    with compat.installed(), pytest.raises(ModuleNotFoundError, match=r"triton\.language\.extra\.tlx\.tutorials"):
        importlib.import_module(f"{TLX}.tutorials.hopper_gemm_ws")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(TLX)


@pytest.mark.parametrize("name", ["triton.language.extra.subtile_ops", "triton.language.extra.cuda.inline_ptx_lib"])
def test_other_modules_of_meta_s_triton(name: str):
    with compat.installed():
        module = importlib.import_module(name)
        assert all(callable(getattr(module, each)) for each in module.__all__)


def test_a_tlx_that_was_there_comes_back(monkeypatch: pytest.MonkeyPatch):
    import triton.language.extra

    theirs = types.ModuleType(TLX)
    monkeypatch.setitem(sys.modules, TLX, theirs)
    monkeypatch.setattr(triton.language.extra, "tlx", theirs, raising=False)
    with compat.installed():
        assert importlib.import_module(TLX) is not theirs
    assert importlib.import_module(TLX) is theirs is triton.language.extra.tlx
    monkeypatch.undo()


# --- reading --------------------------------------------------------------------------------------------------------


def test_reading_waits_for_an_import_of_tlx():
    import triton.testing

    stock = triton.jit, triton.Config
    with compat.reading():
        assert (triton.jit, triton.Config) == stock
        importlib.import_module(TLX)
        assert triton.jit is stock[0]
        assert triton.Config({}, ctas_per_cga=(2, 1, 1)).ctas_per_cga == (2, 1, 1)
        assert triton.runtime.driver.active.get_current_target().arch == 90


def test_importing_and_reading_load_no_triton():
    code = (
        "import sys, tlx_xdsl.compat as compat\n"
        "with compat.reading():\n    pass\n"
        "sys.exit(int('triton' in sys.modules or 'torch' in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
