"""Run torch's own tests of inductor through `tlx_xdsl.torch.enable_inductor`, and count what comes out.

    python -m tests.conformance.cpu.inductor_suite test_torchinductor.py --draw 200 --seed 52 --json drawn.json
    python -m tests.conformance.cpu.inductor_suite test_torchinductor.py --json drawn.json --run

The first command writes down which tests are to be run, without running one; `opinfo` in the place of a file draws
from the installed torch's operators and types with their own inputs. The second runs each in a process of its own, and
again with inductor's C++ backend where it fails: a test that fails there, too, does not apply to this torch.
Tests are drawn from those that compare a function with eager torch (`self.common`) on a CPU. A name that a file of
another version imports and the installed torch lacks is a decorator that changes nothing.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.util
import json
import os
import random
import re
import sys
import types
import unittest
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.conformance.isolated import run_isolated

OPINFO = Path("opinfo")
_NOT_HERE = re.compile(r"requires_\w*(gpu|cuda)|skipCPU|skip_if_cpu|largeTensor|slowTest|expectedFailure")
_KINDS = ("float32", "float16", "bfloat16", "int64", "int32", "bool", "float64", "uint8")
_SAMPLES = 2
"""The number of a test's inputs that an operator is run on."""


def main(argv: Sequence[str] | None = None) -> int:
    """Draw, or run; the exit status of a run is 1 where a result is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="test_torchinductor.py, or 'opinfo'")
    parser.add_argument("--json", type=Path, required=True, help="the draw, and what its tests gave")
    parser.add_argument("--draw", type=int, metavar="N", help="draw N tests and write them down")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", action="store_true", help="run the tests that have no result yet")
    parser.add_argument("--only", default="", help="run the tests whose names contain this, again")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=300, help="for each test (300)")
    options = parser.parse_args(argv)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    tests = _operators() if options.file == OPINFO else _tests(options.file)
    if options.draw:
        names = sorted(tests)
        drawn = sorted(random.Random(options.seed).sample(names, min(options.draw, len(names))))
        source = "" if options.file == OPINFO else hashlib.sha256(options.file.read_bytes()).hexdigest()
        record = {"source": source, "torch": import_module("torch").version.git_version, "seed": options.seed}
        options.json.write_text(json.dumps({**record, "of": len(names), "tests": dict.fromkeys(drawn)}, indent=1))
        return 0
    record = json.loads(options.json.read_text())
    found: dict[str, Any] = record["tests"]
    todo = [name for name in found if (options.only in name if options.only else found[name] is None)]
    _warm_up()
    for start in range(0, len(todo), 8):
        part = todo[start : start + 8]
        results = run_isolated(partial(_measured, tests), part, options.jobs, batch=1, seconds=options.seconds)
        found.update(dict(zip(part, map(_ended, results), strict=True)))
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    print(dict(Counter(each["outcome"] for each in found.values() if each)))
    return int(any(each and each["outcome"] == "wrong" for each in found.values()))


def _warm_up() -> None:
    """Load what compiles before processes are forked."""
    import tlx_xdsl.torch

    torch: Any = import_module("torch")
    import_module("torch._inductor.config").compile_threads = 1
    with tlx_xdsl.torch.inductor_enabled():
        torch.compile(torch.nn.functional.gelu)(torch.ones(3, 5))
    torch.compiler.reset()


def _ended(result: dict[str, Any]) -> dict[str, Any]:
    died = result.get("died")
    return result if died is None else {"outcome": "slow" if died == "signal 14" else "error", "reason": died}


def _tests(file: Path) -> dict[str, Callable[[], None]]:
    """The tests of a file, by name; each raises what it fails with."""
    module = _module(file)
    cls = type("CpuTests", (module.TestCase,), {"common": module.check_model, "device": "cpu"})
    module.copy_tests(module.CommonTemplate, cls, "cpu")
    names = _comparing(file.read_text())
    return {
        name: partial(_run_test, cls, name) for name in dir(cls) if name.removesuffix("_cpu") in names
    }  # fmt: skip


def _comparing(text: str) -> set[str]:
    """The names of tests that compare with eager torch, on a CPU."""
    (template,) = (
        each for each in ast.parse(text).body if isinstance(each, ast.ClassDef) and each.name == "CommonTemplate"
    )
    return {
        each.name
        for each in template.body
        if isinstance(each, ast.FunctionDef)
        and "self.common(" in ast.unparse(each)
        and not any(_NOT_HERE.search(ast.unparse(decorator)) for decorator in each.decorator_list)
    }


def _module(file: Path) -> Any:
    """Import a file of tests, with stand-ins for what the installed torch lacks of the names that it imports."""
    tree = ast.parse(file.read_text())
    absent = [
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        for alias in node.names
        if not _has(node.module, alias.name)
    ]
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            node.names = [alias for alias in node.names if (alias.asname or alias.name) not in absent]
    tree.body = [node for node in tree.body if not (isinstance(node, ast.ImportFrom) and not node.names)]
    module = types.ModuleType(file.stem)
    module.__file__ = str(file)
    sys.modules[file.stem] = module
    # Decorators that are called first, and others.
    module.__dict__.update({name: _unchanged for name in absent})
    exec(compile(tree, str(file), "exec"), module.__dict__)
    return module


def _has(module: str, name: str) -> bool:
    if importlib.util.find_spec(module.partition(".")[0]) is None:
        return False
    try:
        if hasattr(import_module(module), name):
            return True
        return importlib.util.find_spec(f"{module}.{name}") is not None
    except ImportError:
        return False


def _unchanged(*given: Any, **_: Any) -> Any:
    return given[0] if given and callable(given[0]) else _unchanged


def _run_test(cls: Any, name: str) -> None:
    result = unittest.TestResult()
    unittest.TestSuite([cls(name)]).run(result)
    if result.skipped:
        raise unittest.SkipTest(result.skipped[0][1])
    for _, text in (*result.errors, *result.failures):
        raise AssertionError(text)


def _operators() -> dict[str, Callable[[], None]]:
    """The operators of torch's own list with their types, each on the first of torch's own inputs."""
    torch: Any = import_module("torch")
    db = import_module("torch.testing._internal.common_methods_invocations").op_db
    found: dict[str, Callable[[], None]] = {}
    for each in db:
        for kind in _KINDS:
            if getattr(torch, kind) in each.supported_dtypes("cpu"):
                found[f"{each.formatted_name}:{kind}"] = partial(_run_operator, each, getattr(torch, kind))
    return found


def _run_operator(operator: Any, dtype: Any) -> None:
    torch: Any = import_module("torch")
    torch.manual_seed(0)
    samples = list(operator.sample_inputs("cpu", dtype))
    if not samples:
        raise unittest.SkipTest("no inputs")
    # The greatest of torch's inputs, and the first.
    for sample in {id(each): each for each in (samples[0], max(samples, key=_size))}.values():
        torch.compiler.reset()
        given = (sample.input, *sample.args)

        def call(*given: Any, named: Any = sample.kwargs) -> Any:
            return operator.get_op()(*given, **named)

        wanted = call(*_copies(given))
        got = torch.compile(call)(*_copies(given))
        close = {"atol": 1e-2, "rtol": 1.6e-2} if dtype in (torch.float16, torch.bfloat16) else {}
        torch.testing.assert_close(got, wanted, equal_nan=True, check_stride=False, **close)


def _size(sample: Any) -> int:
    return sample.input.numel() if hasattr(sample.input, "numel") else 0


def _copies(values: Any) -> Any:
    torch: Any = import_module("torch")

    def copied(each: Any) -> Any:
        return each.detach().clone()

    return torch.utils._pytree.tree_map_only(torch.Tensor, copied, values)


def _measured(tests: dict[str, Callable[[], None]], name: str) -> dict[str, Any]:
    """Run a test through ours, and by the C++ backend where it fails."""
    import tlx_xdsl.torch
    from tlx_xdsl.torch import inductor_kernels

    torch: Any = import_module("torch")
    kernels = [0]
    init = inductor_kernels.InductorKernel.__init__

    def counted(self: Any, described: Any) -> None:
        init(self, described)
        kernels[0] += 1

    inductor_kernels.InductorKernel.__init__ = counted
    place: Any = import_module("torch._inductor.compile_fx")
    test_module = sys.modules.get("test_torchinductor")
    stock = place.compile_fx
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", tlx_xdsl.torch.Fallback)
        tlx_xdsl.torch.enable_inductor()
        if test_module is not None:
            test_module.__dict__["compile_fx"] = place.compile_fx
        failure = _failure(tests[name])
    reasons = sorted({str(each.message) for each in caught if issubclass(each.category, tlx_xdsl.torch.Fallback)})
    result: dict[str, Any] = {"outcome": "right", "kernels": kernels[0]}
    if reasons:
        result = {"outcome": "refused", "kernels": kernels[0], "reason": reasons[0][:400]}
    if failure is not None:
        tlx_xdsl.torch.disable_inductor()
        torch.compiler.reset()
        if test_module is not None:
            test_module.__dict__["compile_fx"] = stock
        other = _failure(tests[name])
        if isinstance(failure, unittest.SkipTest) or other is not None:
            return {"outcome": "not here", "reason": _line(failure), "cpp": other and _line(other)}
        result |= {"outcome": "wrong" if _is_mismatch(failure) else "error", "reason": _line(failure)}
    print(f"{name:<50} {result}", file=sys.stderr)
    return result


def _failure(test: Callable[[], None]) -> BaseException | None:
    try:
        test()
    except (Exception, unittest.SkipTest) as error:
        return error
    return None


def _is_mismatch(error: BaseException) -> bool:
    return "are not close" in str(error) or "are not equal" in str(error) or "Mismatch" in str(error)


def _line(error: BaseException) -> str:
    lines = [each.strip() for each in str(error).splitlines() if each.strip()]
    return f"{type(error).__name__}: {' | '.join(lines[-12:])}"[:900]


if __name__ == "__main__":
    raise SystemExit(main())
