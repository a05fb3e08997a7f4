# make run: set up and read the bundled captures; make test: set up and pass the tests.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
LAKE ?= .lake
PAGE ?= quorum.html
CAPTURES := tests/golden/dynamic-membership tests/golden/uncommitted-truncation

.PHONY: setup run test test-long lint golden clean

setup: $(VENV)/.ready

# Versions come from constraints.txt; the jars that Spark needs are resolved and the kernel compiled once, here.
$(VENV)/.ready: pyproject.toml constraints.txt spark-defaults.conf
	command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) not found; name a Python 3.11 with PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -m kraft_core.columnar & $(BIN)/python -m jobs.runtime.session && wait $$!
	touch $@

run: setup
	$(BIN)/kraftlake run --captures $(CAPTURES) --lake $(LAKE) --report $(PAGE)

test: setup
	$(BIN)/python -m pytest

test-long: setup
	$(BIN)/python -m pytest -m long

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

# Compare every file of a folder laid out like tests/golden with kafka-dump-log's output.
GOLDEN ?= tests/golden
golden: setup
	$(BIN)/python -m tests.golden_compare $(GOLDEN)

clean:
	rm -rf $(VENV) $(LAKE) $(PAGE)

# Compare kraft_core.raft with traces of Kafka's own raft classes.
TRACES ?= tests/traces
.PHONY: conformance
conformance: setup
	$(BIN)/python -m tests.conformance $(TRACES)

# Random operations on the log classes of a real release of Kafka, compared with the engine.
KAFKA_SCRIPTS ?= ../shared/kafka
RELEASE ?= 4.3.1
.PHONY: drift
drift: setup
	$(BIN)/python -m tests.long.drift $(KAFKA_SCRIPTS) --release $(RELEASE)

# Ratios of speed and size: make bench, or make bench BENCH="decode ingest", BENCH_FLAGS=--small for a quick look.
BENCH ?=
BENCH_FLAGS ?=
.PHONY: bench
bench: setup
	$(BIN)/python -m tests.bench $(BENCH) --kafka $(KAFKA_SCRIPTS) $(BENCH_FLAGS)
