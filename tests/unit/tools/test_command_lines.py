"""Common parts of all command lines: help without the compiler, what was meant, colours, completion."""

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tlx_xdsl.errors import CompilationError, SourceLocation
from tlx_xdsl.terminal import coloured
from tlx_xdsl.tools import tlx_gui, watch
from tlx_xdsl.tools.commands import faces
from tlx_xdsl.tools.commands.check_formats import FORMATS
from tlx_xdsl.tools.entry import exit_status
from tlx_xdsl.tools.opt.main import main as tlx_opt
from tlx_xdsl.tools.tlx import COMMANDS, main

KERNEL = "import tlx_xdsl\n\n\n@tlx_xdsl.jit\ndef kernel(x):\n    y = z\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_loads_nothing_of_the_compiler(command):
    # A second of imports else.
    program = (
        "import sys\nfrom tlx_xdsl.tools.tlx import main\n"
        "try:\n    main(sys.argv[1:])\nfinally:\n"
        "    print([name for name in ('xdsl', 'numpy', 'triton', 'tqdm', 'shtab') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, command, "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"usage: tlx {command}")
    assert done.stdout.endswith("\n[]\n")


def test_the_names_in_the_help_are_those_that_there_are(capsys):
    assert sorted(FORMATS) == sorted(faces.FORMATS)
    from tlx_xdsl.ttl.cpp import MAIN_PROFILE, PROFILES
    from tlx_xdsl.ttl.runtime import MACHINES

    with pytest.raises(SystemExit):
        main(["ttl", "--help"])
    help_ = capsys.readouterr().out
    assert all(re.search(rf"\b{re.escape(name)}\b", help_) for name in (*MACHINES, *PROFILES))
    assert f"{MAIN_PROFILE} (the default)" in help_


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compil"], "tlx: error: there is no command 'compil', did you mean 'compile'?\nnote: tlx --help"),
        (["frobnicate"], "tlx: error: there is no command 'frobnicate', expected one of compile, run, "),
        (
            ["compile", "k.py:k", "--signatur", "x=i32", "--emitt", "ptx"],
            "tlx compile: error: unknown argument '--emitt'",
        ),
        (["compile", "k.py:k", "--emitt", "ptx"], "did you mean '--emit'?"),
        (["run", "k.py:k", "--grid", "1", "--schedule", "randon"], "there is no 'randon', did you mean 'random'?"),
        (
            ["compile"],
            "tlx compile: error: the following arguments are required: FILE.py:KERNEL\nnote: tlx compile --help",
        ),
    ],
)
def test_what_was_meant_is_said(capsys, arguments, said):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert said in error
    assert "usage:" not in error


@pytest.fixture
def wrong(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "wrong.py"
    path.write_text(KERNEL)
    return path


COMPILE = ["compile", "wrong.py:kernel", "--arg", "x=zeros[4]", "--emit", "ttir", "-o", "-"]


def test_paths_are_relative_to_the_current_folder(wrong, monkeypatch, capsys):
    for kernel in ("wrong.py:kernel", f"{wrong}:kernel"):
        assert main([COMPILE[0], kernel, *COMPILE[2:]]) == 1
        assert capsys.readouterr().err.startswith("wrong.py:6:9: error: name 'z' is not defined")
    (wrong.parent / "elsewhere").mkdir()
    monkeypatch.chdir(wrong.parent / "elsewhere")
    assert main([COMPILE[0], f"{wrong}:kernel", *COMPILE[2:]]) == 1
    assert capsys.readouterr().err.startswith(f"{wrong}:6:9: error: ")
    # An error that a program sees has the whole path.
    assert str(CompilationError("no", SourceLocation(str(wrong), 6, 9))).startswith(f"{wrong}:6:9: error: no")


def test_colours_are_for_terminals(wrong, capsys, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert main(COMPILE) == 1
    plain = capsys.readouterr().err
    assert "\033" not in plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(COMPILE) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("\033[1mwrong.py:6:9: \033[0m\033[1;31merror:\033[0m \033[1mname 'z' is not defined")
    assert re.sub(r"\033\[[\d;]*m", "", shown) == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(COMPILE) == 1
    assert capsys.readouterr().err == plain


def test_a_dumb_terminal_has_no_colours(monkeypatch):
    class Terminal:
        def isatty(self):
            return True

    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert coloured("a.py:1: warning: x", Terminal()) != "a.py:1: warning: x"
    monkeypatch.setenv("TERM", "dumb")
    assert coloured("a.py:1: warning: x", Terminal()) == "a.py:1: warning: x"


def test_warnings_of_python_look_like_all_others(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def command():
        warnings.warn_explicit("from the package", UserWarning, str(Path(tlx_gui.__file__)), 7)
        warnings.warn_explicit("from  the\nuser", UserWarning, str(tmp_path / "mine.py"), 7)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert exit_status(lambda: command) == 0
    assert capsys.readouterr().err == "warning: from the package\nmine.py:7: warning: from the user\n"


def test_an_unknown_triton_is_a_warning_without_a_line_of_ours(wrong, capsys):
    wrong.write_text(KERNEL.replace("y = z", "pass"))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main([*COMPILE[:-3], "ttgir", "-o", "-", "--triton-version", "3.10.0"]) == 0
    said = capsys.readouterr().err
    assert said == "warning: Triton 3.10.0 is not known, its text is written as for 3.9\n"


def test_the_explorer_says_what_it_lacks(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert tlx_gui.main(["nofile.mlir"]) == 1
    assert capsys.readouterr().err == "nofile.mlir: error: no such file\n"
    monkeypatch.setitem(sys.modules, "xdsl.interactive.app", None)
    assert tlx_gui.main([]) == 1
    assert "error: tlx-gui is not installed here (no module 'xdsl.interactive.app'): pip install 'tlx-xdsl[gui]'" in (
        capsys.readouterr().err
    )


def completions(script: str, function: str, *words: str) -> list[str]:
    """Return the words that a shell offers for the last of these."""
    quoted = " ".join(f"'{word}'" for word in words)
    program = f'{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; {function}; echo "${{COMPREPLY[@]}}"'
    return subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.skipif(os.name != "posix", reason="bash")
def test_a_shell_completes_commands_options_and_passes(capsys):
    pytest.importorskip("shtab")
    with pytest.raises(SystemExit) as ended:
        main(["--print-completion", "bash"])
    assert ended.value.code == 0
    script = capsys.readouterr().out
    assert completions(script, "_shtab_tlx", "tlx", "comp") == ["compile"]
    assert completions(script, "_shtab_tlx", "tlx", "compile", "--sig") == ["--signature"]
    assert completions(script, "_shtab_tlx", "tlx", "run", "k.py:k", "--schedule", "a") == ["adversarial"]
    with pytest.raises(SystemExit):
        tlx_opt(["--print-completion", "bash"])
    script = capsys.readouterr().out
    assert "--tlx-storage-budget" in completions(script, "_shtab_tlx_opt", "tlx-opt", "--tlx-storage")


def test_completion_without_shtab_is_an_error(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["--print-completion", "bash"]) == 1
    assert capsys.readouterr().err == "error: completion needs shtab: pip install 'tlx-xdsl[cli]'\n"


def test_a_run_is_repeated_when_the_file_changes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "kernel.py"
    texts = iter(["    tl.store(x, 2)\n", "    tl.store(x, y)\n", "    tl.store(x, 3)\n"])

    def write():
        head = "import tlx_xdsl\nimport tlx_xdsl.language as tl\n\n\n@tlx_xdsl.jit\ndef kernel(x):\n"
        try:
            path.write_text(head + next(texts))
        except StopIteration:
            raise KeyboardInterrupt from None
        changed.append(None)
        os.utime(path, (len(changed), len(changed)))

    changed = []
    write()
    # An editor saves while it waits, and at last comes Ctrl-C.
    monkeypatch.setattr(watch.time, "sleep", lambda seconds: write())
    assert main(["run", "kernel.py:kernel", "--grid", "1", "--arg", "x=zeros:i32[1]", "--watch"]) == 130
    said = capsys.readouterr()
    assert re.findall(r"x: int32\[1\], (\d)", said.out) == ["2", "3"]
    assert "kernel.py:7:17: error: name 'y' is not defined" in said.err
    assert said.err.count("watching kernel.py: Ctrl-C ends") == 3
