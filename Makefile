# make run: set up and read the bundled captures; make test: set up and pass the tests.
PYTHONS := python3.13 python3.12 python3.11
PYTHON ?= $(firstword $(foreach python,$(PYTHONS),$(shell $(python) -c 'print("$(python)")' 2>/dev/null)))
JAVA := $(if $(JAVA_HOME),$(JAVA_HOME)/bin/)java
VENV := .venv
BIN := $(VENV)/bin
LAKE ?= .lake
PAGE ?= quorum.html
CAPTURES := tests/golden/dynamic-membership tests/golden/uncommitted-truncation
RUN := --captures $(CAPTURES) --lake $(LAKE) --report $(PAGE)

.PHONY: setup
setup: $(VENV)/.ready

# Versions come from constraints.txt. While the rest is fetched and installed (PySpark is built from source), the
# kernel is compiled and the jars that Spark lacks are fetched beside the installation.
$(VENV)/.installed: pyproject.toml constraints.txt spark-defaults.conf
	@test -n "$(PYTHON)" || { echo "make: needs one of $(PYTHONS); install one, or name it with PYTHON=..." >&2; exit 1; }
	@command -v "$(PYTHON)" >/dev/null || { echo "make: $(PYTHON) not found; PYTHON= must name one of $(PYTHONS)" >&2; exit 1; }
	@version=$$($(JAVA) -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p'); test "$${version:-0}" -ge 17 || \
	  { echo "make: needs Java 17 or later for Spark, found $${version:-none}; install it, or set JAVA_HOME" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python tools/install.py "what the kernel needs" google-crc32c numba numpy pyarrow
	@$(BIN)/python -m jobs.runtime.jars 2>/dev/null & $(BIN)/python -m kraft_core.columnar 2>/dev/null & \
	  $(BIN)/python tools/install.py Kraftlake -e . && { wait || :; }
	@$(BIN)/python -m jobs.runtime.jars
	@touch $@

# Spark's classes are archived by a session: of its own, or of the first run.
$(VENV)/.ready: $(VENV)/.installed
	@$(BIN)/python -m jobs.archive_classes
	@touch $@

# What tests and linters need, on top.
$(VENV)/.test: $(VENV)/.ready
	@$(BIN)/python tools/install.py "what tests need" -e '.[test]'
	@touch $@

$(VENV)/.lint: $(VENV)/.ready
	@$(BIN)/python tools/install.py linters -e '.[lint]'
	@touch $@

.PHONY: run test test-long lint docs clean
run: $(VENV)/.installed
	@if test $(VENV)/.ready -nt $(VENV)/.installed; then $(BIN)/kraftlake run $(RUN); \
	  else $(BIN)/python -m jobs.archive_classes $(RUN); code=$$?; touch $(VENV)/.ready; exit $$code; fi

# In random order; pytest prints the seed: repeat with PYTEST_FLAGS=--randomly-seed=N.
PYTEST_FLAGS ?=
# By three processes: what needs Spark shares one session in each of two, the third runs the rest.
test: $(VENV)/.test
	$(BIN)/python -m pytest -n 3 --dist loadscope $(PYTEST_FLAGS)

test-long: $(VENV)/.test kafka
	$(BIN)/python -m pytest -m long $(PYTEST_FLAGS)

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

# Generated pages: docs/cli.md, docs/data-dictionary.md.
docs: $(VENV)/.test
	$(BIN)/python -m tests.cli_reference
	$(BIN)/python -m tests.data_dictionary

# The demo's page and its picture, as in docs/quorum.png.
DEMO ?= .demo
.PHONY: picture
picture: $(VENV)/.test
	$(BIN)/python -m tests.dashboards.picture $(DEMO)

clean:
	rm -rf $(VENV) $(LAKE) $(PAGE) $(PAGE:.html=-clusters)

# A real Kafka, fetched by Maven for tests, benchmarks and traces (tests/kafka/README.md).
export KAFKA_LAB ?= $(CURDIR)/.kafka-lab
.PHONY: kafka
kafka: $(KAFKA_LAB)/classes
$(KAFKA_LAB)/classes: $(wildcard tests/kafka/gen/*.java)
	tests/kafka/bin/get 4.3.1
	touch $@

# Compare every file of a folder laid out like tests/golden with kafka-dump-log's output.
GOLDEN ?= tests/golden
.PHONY: golden
golden: $(VENV)/.test
	$(BIN)/python -m tests.golden_compare $(GOLDEN)

# Compare kraft_core.raft with traces of Kafka's own raft classes; make traces records new ones.
TRACES ?= tests/traces
.PHONY: conformance traces
conformance: $(VENV)/.test
	$(BIN)/python -m tests.conformance $(TRACES)

SEED ?= 1
OUT ?= .traces
traces:
	tests/kafka/bin/traces $(SEED) $(OUT)

# Random operations on the log classes of a real release of Kafka, compared with the engine.
RELEASE ?= 4.3.1
.PHONY: drift
drift: $(VENV)/.test
	$(BIN)/python -m tests.long.drift --release $(RELEASE)

# Ratios of speed and size: make bench, or make bench BENCH="decode ingest", BENCH_FLAGS=--small for a quick look.
# Rows that compare with Kafka need make kafka first.
BENCH ?=
BENCH_FLAGS ?=
.PHONY: bench
bench: $(VENV)/.test
	$(BIN)/python -m tests.bench $(BENCH) $(BENCH_FLAGS)
