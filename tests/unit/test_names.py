"""The script that lists names and parameters that ours lacks, on a package that is made up here."""

from textwrap import dedent

import pytest

from tests.conformance.names import EXCEPTIONS, exported, main, missing, reason

pytestmark = pytest.mark.quick

PACKAGE = {
    "__init__.py": """
        from . import private
        from .memory import local_alloc as local_alloc, local_view, made_up, storage_kind, _hidden
        from .elsewhere import barrier_wait, unknown
        __all__ = ["local_alloc", "made_up", "barrier_arrive", "vanished"]
    """,
    "memory.py": """
        import a_module_that_is_not_there

        def local_alloc(shape, dtype, num, colour=None, _semantic=None): ...
        def local_view(local_allocated_buffers, buffer_idx, *, speed: int = 1): ...
        def made_up(x): ...
        def _hidden(): ...

        class storage_kind:
            smem = "smem"
            gmem = "gmem"
            _private = 1

            def __init__(self, value): ...
            def __repr__(self): ...
            def moved(self, far): ...
    """,
}


@pytest.fixture
def package(tmp_path):
    for name, source in PACKAGE.items():
        (tmp_path / name).write_text(dedent(source), encoding="utf-8")
    return tmp_path


def test_what_a_package_exports(package):
    found = exported(package)
    assert found.parameters == {
        "local_alloc": ("shape", "dtype", "num", "colour"),
        "local_view": ("local_allocated_buffers", "buffer_idx", "speed"),
        "made_up": ("x",),
        "storage_kind": ("value",),
        "storage_kind.moved": ("far",),
    }
    # The files of the others are not there.
    elsewhere = {"barrier_wait", "barrier_arrive", "unknown", "vanished"}
    assert found.members == {"storage_kind.smem", "storage_kind.gmem", *elsewhere}


def test_what_ours_lacks(package, capsys):
    lacking = [
        "local_alloc(colour=)", "local_view(speed=)", "made_up", "storage_kind.gmem", "storage_kind.moved", "unknown",
        "vanished",
    ]  # fmt: skip
    assert list(missing(exported(package))) == lacking
    assert main([str(package)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{package}: 11 names with 10 parameters, 7 missing",
        *(f"  {name}" for name in lacking),
    ]


def test_nothing_is_missing(package, capsys):
    (package / "__init__.py").write_text(
        "from .memory import local_alloc, async_load_wait_group, CLCPipeliner\n", encoding="utf-8"
    )
    (package / "memory.py").write_text("def local_alloc(shape, dtype, num): ...\n", encoding="utf-8")
    assert main([str(package)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{package}: 3 names with 3 parameters, 0 missing",
        f"  1 left out: {dict(EXCEPTIONS)['CLCPipeliner']}",
    ]


def test_other_spellings_of_parameters_count(package):
    (package / "__init__.py").write_text("from .memory import require_layout\n", encoding="utf-8")
    (package / "memory.py").write_text("def require_layout(src, layout): ...\n", encoding="utf-8")
    assert list(missing(exported(package))) == []


def test_an_exception_is_for_a_whole_name():
    assert reason("CLCPipeliner")
    assert not reason("CLCPipeliner.run")


def test_a_folder_that_is_no_package(tmp_path):
    with pytest.raises(FileNotFoundError, match="__init__"):
        main([str(tmp_path)])
