# Each target does its own set-up; `make help` lists them. Nothing is redone when nothing changed.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
ARGS ?=
PYTHONS ?= 3.10 3.11 3.12 3.13 3.14 3.14t
# Or aarch64-unknown-linux-gnu, x86_64-unknown-linux-musl, aarch64-unknown-linux-musl.
TARGETS ?= x86_64-unknown-linux-gnu

VENV := $(CURDIR)/.venv
PY := $(VENV)/bin/python
TOOLS := $(VENV)/.tools-installed
BUILT := $(VENV)/.extension-built
PROGRAMS := $(CURDIR)/.programs
FEW := $(PROGRAMS)/few
MPI := $(CURDIR)/.distributed
DOCS := $(CURDIR)/.docs
VULKAN := $(VENV)/.vulkan-looked-for
AARCH64 := $(VENV)/.aarch64-looked-for
VALGRIND := $(VENV)/.valgrind-looked-for
NIGHTLY := $(VENV)/.nightly-looked-for
WINDOWS := $(VENV)/.windows-looked-for
MACOS := $(VENV)/.macos-looked-for
RUST := $(shell find rust shaders -type f -not -name README.md 2>/dev/null)

export PATH := $(VENV)/bin:$(PATH):$(HOME)/.cargo/bin
export VIRTUAL_ENV := $(VENV)
unexport CONDA_PREFIX

.PHONY: help demo test lint format bench sweep counts fuzz programs few distributed docs wheel dist gen clean build FORCE

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 17

RANKS := $(findstring --ranks,$(ARGS))
GPU := $(if $(findstring --gpu-as,$(ARGS)),$(VULKAN))
# Tools from the project's environment, MPI from its own.
demo: $(BUILT) $(VULKAN) $(if $(RANKS),$(MPI)/.installed) ## train a small CNN on real digits (ARGS="--device wgpu" for the GPU, "--ranks 2")
	@$(if $(RANKS),PATH=$(MPI)/bin:$$PATH LD_LIBRARY_PATH=$(MPI)/lib \
		PYTHONPATH=$$(echo $(MPI)/lib/python*/site-packages)) $(PY) -m pytensorlib.examples.digits $(ARGS)

test: $(TOOLS) $(VULKAN) $(AARCH64) $(VALGRIND) $(NIGHTLY) $(WINDOWS) $(MACOS) ## everything CI runs: formatters, linters, types, tests, conformance
	@$(PY) .ci/parts.py $(ARGS)

lint: $(TOOLS) ## only the formatters, linters and types
	@$(PY) .ci/parts.py rustfmt ruff format clippy mypy

format: $(TOOLS) ## format every file (`cargo fmt` does not see modules that a macro declares)
	@rustfmt --edition=2021 $$(find rust -name '*.rs') && $(PY) -m ruff format -q .

bench: $(BUILT) ## ours beside PyTorch (TORCH_PYTHON=... names a Python that has it)
	@$(PY) bench/compare.py $(ARGS)

sweep: $(BUILT) ## calls that no row of the bench has, beside PyTorch, the slowest first (ARGS=--large)
	@$(PY) bench/sweep.py $(ARGS)

counts: $(BUILT) $(VALGRIND) ## instructions of kernels, beside those recorded (ARGS=--record)
	@$(PY) bench/instructions.py $(ARGS)

fuzz: $(BUILT) ## random calls and graphs: ARGS="laws --count 5000", or beside PyTorch "calls", "graphs"
	@PYTHONPATH=tests $(PY) -m fuzz $(if $(ARGS),$(ARGS),laws)

programs: $(BUILT) $(PROGRAMS)/.installed $(GPU) ## libraries above PyTorch, beside its recorded numbers (ARGS="--gpu-as cuda": on the GPU)
	@PYTHONPATH=$(CURDIR) $(PROGRAMS)/bin/python tests/programs/run.py $(ARGS)
	@$(if $(TORCH_PYTHON),$(PROGRAMS)/bin/python tests/programs/names.py, \
		echo "the names that libraries mention stay as recorded: TORCH_PYTHON names no PyTorch")

$(PROGRAMS)/.installed: tests/programs/requirements.lock
	@$(PYTHON) -m venv $(PROGRAMS) && $(PROGRAMS)/bin/pip install -q --no-deps -r $<
	@touch $@

few: $(BUILT) $(FEW)/.installed $(GPU) ## those of the programs that need little: a part of `make test`
	@PYTHONPATH=$(CURDIR):$(FEW) $(PY) tests/programs/run.py --few $(ARGS)

$(FEW)/.installed: tests/programs/requirements.lock tests/programs/run.py | $(TOOLS)
	@rm -rf $(FEW) && $(PY) -m pip install -q --disable-pip-version-check --no-deps --target $(FEW) \
		$$($(PY) tests/programs/run.py --lock)
	@touch $@

distributed: $(BUILT) $(MPI)/.installed ## processes that communicate, by MPI: a part of `make test`
	@PYTHONPATH=$(CURDIR) $(MPI)/bin/python -m pytest -q tests/distributed/test_distributed*.py $(ARGS)

# An environment of its own: without the extra, the other tests see how its absence is told.
$(MPI)/.installed: tests/ranks/requirements.lock
	@$(PYTHON) -m venv $(MPI) && $(MPI)/bin/pip install -q --disable-pip-version-check --no-deps -r $<
	@touch $@

# A warning is an error, a dead link and an example that prints something else among them.
docs: $(BUILT) $(DOCS)/.installed ## the site, in docs/_build/html: every example and tutorial runs while it is built
	@PYTHONPATH=$(CURDIR) PATH=$(DOCS)/bin:$$PATH $(DOCS)/bin/python -m sphinx -W --keep-going -q -b html \
		docs docs/_build/html $(ARGS)
	@PYTHONPATH=$(CURDIR) $(DOCS)/bin/python docs/check.py docs/_build/html
	@echo "open docs/_build/html/index.html"

# An environment of its own: what builds the site is no part of the tests.
$(DOCS)/.installed: docs/requirements.lock
	@$(PYTHON) -m venv $(DOCS) && $(DOCS)/bin/pip install -q --disable-pip-version-check --no-deps -r $<
	@touch $@

wheel: $(TOOLS) ## a wheel for this system and Python, looked at, in dist
	@maturin build --release --out dist -i $(PY) && $(PY) .ci/wheels.py dist

dist: $(TOOLS) ## wheels of Linux for each Python by zig, for old C libraries, and an sdist (TARGETS=... names others)
	@.ci/setup zig
	@for target in $(TARGETS); do \
		old=manylinux2014; [[ $$target != *musl ]] || old=musllinux_1_2; \
		! command -v rustup >/dev/null || rustup -q target add $$target; \
		PATH=$(CURDIR)/.wheels/bin:$$PATH maturin build --release --zig --locked --out dist \
			--target $$target --compatibility $$old -i $(PYTHONS) $(ARGS); \
	done
	@maturin sdist --out dist
	@$(PY) .ci/wheels.py dist && for wheel in dist/*.whl; do .wheels/bin/python -m auditwheel show $$wheel; done

gen: $(BUILT) ## write again what is generated from the op table
	@$(PY) .ci/gen.py && $(PY) .ci/notices.py

clean: ## delete what the other targets made
	rm -rf .venv .programs .distributed .docs .windows .wheels docs/_build docs/_generated target dist .benchmarks .mypy_cache .pytest_cache .ruff_cache
	rm -f pytensorlib/_C*.so pytensorlib/_C*.pyd

build: $(BUILT)

$(TOOLS): requirements-dev.lock .ci/setup
	@.ci/setup venv "$(PYTHON)"
	@touch $@

$(VULKAN): | $(TOOLS)
	@.ci/setup vulkan
	@touch $@

$(AARCH64): | $(TOOLS)
	@.ci/setup aarch64
	@touch $@

$(VALGRIND): | $(TOOLS)
	@.ci/setup valgrind
	@touch $@

$(NIGHTLY): | $(TOOLS)
	@.ci/setup nightly
	@touch $@

$(WINDOWS): tests/platforms/windows.lock | $(TOOLS)
	@.ci/setup windows
	@touch $@

$(MACOS): | $(TOOLS)
	@.ci/setup macos
	@touch $@

# One release build, shared by the demo, the tests and the benchmarks.
$(BUILT): $(RUST) Cargo.toml pyproject.toml $(wildcard Cargo.lock) | $(TOOLS)
$(BUILT): $(if $(wildcard pytensorlib/_C.*.so pytensorlib/_C.pyd),,FORCE)
	@command -v cargo >/dev/null || { echo "Rust is needed (cargo is not on PATH)"; exit 1; }
	@maturin develop --release
	@touch $@
