# Everything a developer needs; all of it works in .venv of this clone and leaves the system alone.

PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
C_CODE := $(wildcard dynacap/hook/*.c dynacap/hook/*.h guards/*.c guards/*.h \
            backends/native/run/*.c backends/native/run/*.h)

# Torch's threads spin when the machine is busy; one thread each keeps runs short and repeatable.
export OMP_NUM_THREADS ?= 1
export OMP_WAIT_POLICY ?= PASSIVE

.PHONY: help setup demo test quick lint format type rules suite native twins pythons fuzz opinfo wheel bench clean

help:  ## what there is to make
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:[^#]*##/:\t/' | expand -t 12

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.dependencies: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install -q -c constraints.txt --upgrade pip setuptools wheel
	$(BIN)/python -m pip install -q -c constraints.txt --group dev --group models \
	    torch numpy bytecode rich
	@touch $@

$(VENV)/.installed: $(VENV)/.dependencies setup.py MANIFEST.in $(C_CODE)
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@touch $@

setup: $(VENV)/.installed  ## make .venv with all dependencies and an editable install

demo: setup  ## compile a real sentence-embedding model and show what happened
	$(BIN)/python examples/demo.py

test: setup  ## all that CI does
	bash .ci/run

quick: setup  ## the tests that need no torch, in a few seconds
	$(BIN)/python -m pytest -q -m "not torch and not slow and not cc"

lint: setup  ## formatting and lint rules, without changing anything
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

format: setup  ## put the formatting right, and what lint can mend by itself
	$(BIN)/ruff check --fix-only -q .
	$(BIN)/ruff format .

type: setup  ## mypy, strict, over all packages and tests
	$(BIN)/python .ci/typecheck.py

rules: setup  ## layering, sizes, packaging and the other rules about the code itself
	$(BIN)/python -m pytest -q tests/rules

suite: setup  ## the tests with the C hook and the C checker
	DYNACAP_HOOK=pep523 DYNACAP_CHECKER=c $(BIN)/python -m pytest -q -n 2 --ignore tests/rules

native: setup  ## the tests of what programs do, with graphs as C; DYNACAP_BACKEND=native serves for all others too
	DYNACAP_BACKEND=native $(BIN)/python -m pytest -q -n 2 tests/cases tests/effects tests/adversarial tests/arrays

# What no choice of hook or checker reaches; tests/hook and tests/guards try both by themselves.
SAME_FOR_TWINS := rules opcodes resume fxlite backends hook guards
twins: setup  ## the tests with the Python twins of both, but those that cannot tell
	DYNACAP_HOOK=settrace DYNACAP_CHECKER=python $(BIN)/python -m pytest -q -n 2 $(SAME_FOR_TWINS:%=--ignore tests/%)

pythons: setup  ## the tests of capture on every other Python that is present
	$(BIN)/python -m nox

MINUTES ?= 10
fuzz: setup  ## hunt for programs that differ from eager, for MINUTES=10; DYNACAP_HOOK and _CHECKER as for twins
	DYNACAP_FUZZ_MINUTES=$(MINUTES) $(BIN)/python -m pytest -q -s tests/fuzz tests/effects

opinfo: setup  ## every operator of torch's own list, compiled, against eager; goes on where it was stopped
	$(BIN)/python benchmarks/opinfo.py

wheel: setup  ## wheel and sdist, built and tried in fresh environments
	bash .ci/try_wheel

bench: setup  ## the tables of README's figures; takes many minutes
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/bench_models.py
	env -u OMP_NUM_THREADS -u OMP_WAIT_POLICY $(BIN)/python benchmarks/native.py

clean:  ## remove what the builds made; .venv stays
	rm -rf build dist .nox .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find dynacap guards backends -name '*.so' -delete
	rm -f $(VENV)/.installed
