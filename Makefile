# Everything a developer does here, one target each; `make help` lists them.
#
# Every target that needs tools gets them from a virtual environment that `make setup` creates. Targets that can run
# on several versions of Triton take the version as a variable:
#
#   make test-unit TRITON_VERSION=3.6.0             in .venv-3.6.0, created when it is missing
#   make test-unit VENV=/tmp/mine PYTHON=python3.12
#   make -k test                                    goes on to the unit tests when a filecheck test fails

PYTHON ?= python3
DEFAULT_TRITON := 3.9.0
TRITON_VERSION ?= $(DEFAULT_TRITON)
TRITON_VERSIONS ?= 3.6.0 3.7.1 3.8.0 3.9.0
DEFAULT_XDSL := 0.75.0
# The other xDSL, which `make test-xdsl` runs on.
XDSL_VERSION ?= 0.74.0
VENV ?= .venv$(addprefix -,$(filter-out $(DEFAULT_TRITON),$(TRITON_VERSION)))
EXTRAS ?= dev,nvidia
# More arguments for the tools, as in `make test-unit PYTEST_ARGS='-k storage -x'`.
PYTEST_ARGS ?=
BENCH_ARGS ?=
PACKAGES_ARGS ?=
RELEASE_ARGS ?=
LIT_ARGS ?=
# Processes that run the unit tests: one for each core, or none but pytest's own where there is a GPU. With 0 a
# debugger works.
WORKERS ?= auto
# More arguments of pip for `make test-next`, such as an index with nightly builds.
NEXT_ARGS ?=

BIN = $(VENV)/bin
# Tests start hundreds of processes: without bytecode each compiles our sources again, which takes it half a second or more.
unexport PYTHONDONTWRITEBYTECODE
PIP_INSTALL = $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off
# A file's tests share what they compile, so they stay in one process. It has one core; numpy need not ask for more.
PYTEST = OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile
comma := ,
# What the environment has: more extras may be added to it, and another Triton takes the place of this one.
INSTALLED := $(VENV)/.installed-triton-$(TRITON_VERSION)-$(subst $(comma),-,$(EXTRAS))
# Triton exists for Linux only; elsewhere we work without it.
TRITON_PIN := $(if $(filter Linux,$(shell uname -s)),triton==$(TRITON_VERSION))

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test test-quick test-filecheck test-unit test-backend test-all test-xdsl test-next lint format
.PHONY: ttl-headers typecheck hooks docs docs-serve playground size bench bench-cpu bench-gpu bench-gemm table packages release clean distclean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(INSTALLED) ## Create the environment .venv (variables: VENV, TRITON_VERSION, PYTHON, EXTRAS)

# A command that says nothing for long, with a sign of life every 4 s: $(call ticking,COMMAND).
ticking = ( s=0; while sleep 4 >/dev/null; do s=$$((s + 4)); echo "  ... $$s s"; done ) & \
	ticker=$$!; trap "kill $$ticker" EXIT; $(1)

$(INSTALLED): pyproject.toml
	@echo "An environment in $(VENV), with $(EXTRAS) $(TRITON_PIN): $(if $(findstring dev,$(EXTRAS)),some 100,8 or more) packages"
	@$(call ticking,$(PYTHON) -m venv $(VENV))
	rm -f $(filter-out $(VENV)/.installed-triton-$(TRITON_VERSION)-%,$(wildcard $(VENV)/.installed-triton-*))
	@$(call ticking,$(PIP_INSTALL) -e '.[$(EXTRAS)]' xdsl==$(DEFAULT_XDSL) $(TRITON_PIN))
	touch $@

demo: ## Compile the Hopper GEMM to PTX and cubin in build/ and print the report (no GPU and none of the tools needed)
	@$(if $(wildcard $(INSTALLED)),,$(MAKE) --no-print-directory setup EXTRAS=nvidia)
	@$(call ticking,$(BIN)/tlx compile examples/hopper_gemm_ws.py:matmul --target sm_90a -o build/)

test: test-filecheck test-unit ## All tests that need no GPU: what CI runs
	@$(BIN)/python -m tests.seconds build/filecheck.json

test-quick: test-filecheck ## The lit tests and the heart of each package: at most 4 minutes on 2 cores
	$(PYTEST) -m quick tests/unit

test-filecheck: setup ## The lit tests in tests/filecheck (variable: LIT_ARGS)
	@mkdir -p build
	$(BIN)/lit -sv --output build/filecheck.json $(LIT_ARGS) tests/filecheck

test-unit: setup ## The pytest tests; of one package with PYTEST_ARGS=tests/unit/layouts (variable: WORKERS)
	$(PYTEST) $(PYTEST_ARGS)

test-backend: setup ## Only the tests that run stock Triton, as in `make test-backend TRITON_VERSION=3.6.0`
	$(BIN)/python -c 'import triton; assert triton.__version__ == "$(TRITON_VERSION)", triton.__version__'
	$(PYTEST) -m backend $(PYTEST_ARGS)

test-all: $(TRITON_VERSIONS:%=test-triton-%) ## All tests at full volume on every supported Triton (variable: TRITON_VERSIONS)

test-triton-%:
	TLX_TEST_VOLUME=full $(MAKE) test VENV=.venv-$* TRITON_VERSION=$* EXTRAS=test,nvidia

# The checkout comes first: xDSL's wheel, too, has folders named tests and docs.
test-xdsl: on_other_xdsl = PYTHONPATH=$(CURDIR):$(CURDIR)/build/xdsl-$(XDSL_VERSION)
test-xdsl: build/xdsl-$(XDSL_VERSION) ## Tests of text, dialects and plug-ins on another xDSL (variable: XDSL_VERSION)
	$(on_other_xdsl) $(BIN)/python -c 'from importlib import metadata; assert metadata.version("xdsl") == "$(XDSL_VERSION)"'
	$(on_other_xdsl) $(BIN)/lit -sv $(LIT_ARGS) $(addprefix tests/filecheck/,dialects text tlx canonicalize tritongpu storage_alias)
	$(on_other_xdsl) $(PYTEST) tests/unit/dialects tests/unit/text tests/unit/test_wings.py tests/unit/tools/test_tlx_opt.py $(PYTEST_ARGS)

build/xdsl-%: | setup
	@$(call ticking,$(PIP_INSTALL) --no-deps --target $@ xdsl==$*)

# pip says what our own caps forbid, and installs it all the same. torch comes first, since it pins a Triton.
test-next: VENV := .venv-next
test-next: ## Lit and quick tests on the newest xDSL, Triton and torch, with pre-releases (variable: NEXT_ARGS)
	@$(call ticking,$(PYTHON) -m venv --clear $(VENV))
	@$(call ticking,$(PIP_INSTALL) -e '.[test]')
	@for next in torch xdsl triton; do ( $(call ticking,$(PIP_INSTALL) --pre --upgrade $(NEXT_ARGS) $$next) ) || echo "without $$next"; done
	@$(BIN)/python -m pip list --disable-pip-version-check | grep -E '^(xdsl|triton|torch|numpy|ml_dtypes|llvmlite) '
	@failed=0; $(BIN)/lit -sv $(LIT_ARGS) tests/filecheck || failed=1; \
		$(PYTEST) -q -m quick tests/unit $(PYTEST_ARGS) || failed=1; exit $$failed

ttl-headers: setup ## Compile the C++ of TTL's tests against TT-Metalium's headers (downloads ttnn's wheel, 103 MB)
	ls build/ttnn/ttnn-0.81.1-*.whl >/dev/null 2>&1 || $(BIN)/python -m pip download --quiet --no-deps \
		--python-version 3.12 --only-binary=:all: --dest build/ttnn ttnn==0.81.1
	rm -rf build/ttl-cpp
	TTL_RECORD_CPP=build/ttl-cpp $(PYTEST) -q tests/unit/ttl
	$(BIN)/python -m tests.unit.ttl.metalium.vendor_headers build/ttl-cpp

lint: setup ## Check style and formatting with ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: setup ## Format, and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

typecheck: setup ## Check the types of the package with pyright, and what users write with pyright and mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/python -m tests.user_code

hooks: setup ## Make git run the checks of .pre-commit-config.yaml before each commit
	$(BIN)/pre-commit install

# The theme's makers advertise their next project unless an environment variable forbids it.
docs docs-serve: export NO_MKDOCS_2_WARNING = 1
# Not quiet: warnings that are not printed are not counted, and would not end the build.
docs: setup ## Build the site into build/site, with warnings as errors
	$(BIN)/python -m mkdocs build --strict
	$(BIN)/python -m docs.site.check build/site

playground: setup ## Fetch Pyodide from npm into build/pyodide, with which the site's playground runs
	$(BIN)/python -m docs.site.playground

docs-serve: setup ## Show the site at http://127.0.0.1:8000 while you write
	$(BIN)/python -m mkdocs serve

table: $(TRITON_VERSIONS:%=setup-triton-%) ## Compile all kernels for all targets on every Triton; writes docs/compile-table.md
	.venv-$(lastword $(TRITON_VERSIONS))/bin/python benchmarks/compile/table.py \
		$(TRITON_VERSIONS:%=--python .venv-%/bin/python) --write docs/compile-table.md

setup-triton-%:
	$(MAKE) setup VENV=.venv-$* TRITON_VERSION=$* EXTRAS=test,nvidia

size: ## Count the lines and tokens of each package (variable: AGAINST, a revision of git to compare with)
	$(PYTHON) benchmarks/size.py $(AGAINST:%=--against %)

bench: setup ## Measure how long compiling and interpreting take
	$(BIN)/python benchmarks/compile/stages.py
	$(BIN)/python benchmarks/compile/parallel.py
	$(BIN)/python benchmarks/compile/cached_launch.py
	$(BIN)/python benchmarks/compile/sweep.py
	$(BIN)/python benchmarks/attention/compile.py
	$(BIN)/python benchmarks/compile/buffer_regions.py
	$(BIN)/python benchmarks/cpu/linalg.py
	$(BIN)/python benchmarks/compile/frontend.py
	$(BIN)/python benchmarks/compile/storage_alias.py
	$(BIN)/python benchmarks/compile/program_address.py
	$(BIN)/python benchmarks/interpreter/speed.py
	$(BIN)/python benchmarks/cpu/run.py
	$(BIN)/python benchmarks/compile/ttl.py

bench-cpu: setup ## Measure kernels on this CPU against their rivals; writes the figures of docs/cpu.md (with torch and torch-mlir where installed)
	$(BIN)/python benchmarks/cpu/run.py --write $(BENCH_ARGS)

bench-gpu: setup ## Measure launches, and our kernels against their rivals; writes docs/performance.md (needs a Hopper GPU and torch)
	$(if $(findstring --quick,$(BENCH_ARGS)),,$(BIN)/python benchmarks/gpu/launch.py)
	$(BIN)/python benchmarks/gpu/kernels.py $(BENCH_ARGS)

bench-gemm: setup ## Measure GEMMs of many shapes, in 8 bits, in groups, with epilogues, and calls; figures into build/gemm (needs a Hopper GPU and torch)
	$(BIN)/python benchmarks/gemm/report.py --out build/gemm $(BENCH_ARGS)

$(VENV)/.installed-release: pyproject.toml | setup
	@$(call ticking,$(PIP_INSTALL) -e '.[release]')
	touch $@

packages: $(VENV)/.installed-release ## Build wheel and source distribution into dist/, check them and install them in clean environments
	$(BIN)/python -m release.packages $(PACKAGES_ARGS)

release: $(VENV)/.installed-release ## Say whether the version can be released; with RELEASE_ARGS=--tag also tag it (CONTRIBUTING.md)
	$(BIN)/python -m release $(RELEASE_ARGS)

clean: ## Remove build products and caches
	rm -rf build dist .hypothesis .pytest_cache .ruff_cache
	find tlx_xdsl tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## Remove the environments too
	rm -rf .venv .venv-*
