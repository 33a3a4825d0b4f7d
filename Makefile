# Everything that one does with millrace. `make` alone lists it.
#
# .venv holds the exact versions of the lock files. Stamps inside it make a second call instant;
# `make clean` forgets them. What only the tests need is never installed by `make serve`.

# The fastest that is there, python3 unless another is 10 % faster: one built with PGO and LTO, as Debian's is, is 15-25 %
# faster everywhere. `millrace version` says what it runs on.
PYTHON ?= $(shell for each in python3=0.9 /usr/bin/python3=1 /usr/bin/python3.11=1; do \
  $${each%=*} -c 'import ensurepip, sys, time, timeit, venv; loop = "for n in range(50000): d[n & 255] = str(n)"; \
    sys.version_info < (3, 11) or print(float(sys.argv[1]) * min(timeit.repeat(loop, "d = {}", time.process_time, 7, 1)), sys.argv[2])' \
    $${each#*=} $${each%=*} 2>/dev/null; done | sort -g | { read -r seconds found; echo $${found:-python3}; })
ARGS ?=
TEST_PROCESSES ?= 2

BIN := .venv/bin
READY := .venv/ready
TEST_READY := .venv/test-ready
INSTALL := $(BIN)/python deploy/install.py
APT := DEBIAN_FRONTEND=noninteractive apt-get -qq

.DEFAULT_GOAL := help
.PHONY: help setup serve demo site test fast-tests test-slow test-clients compatibility lint types check bench clean

help: ## this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) $(TEST_READY) ## create .venv with all that serving and testing need

serve: $(READY) ## start the database; options in ARGS="--mysql-port 3307 …"
	@exec $(BIN)/millrace serve $(ARGS)

test: lint ## lint, types, and every test but the slow ones
	@$(MAKE) --no-print-directory -j2 types fast-tests  # mypy has one process, so it goes beside the tests

fast-tests: $(READY) $(TEST_READY)
	$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder --max-worker-restart 0 $(ARGS)

test-slow: $(READY) $(TEST_READY) ## the long tests: crashes, cluster, thousands of statements
	$(BIN)/python -m pytest -m slow --timeout 3600 $(ARGS)

test-clients: $(READY) $(TEST_READY) ## drivers of other languages, dumps, and a browser (installs Debian and npm packages)
	$(BIN)/python -m pytest -m slow --timeout 3600 tests/clients tests/browser $(ARGS)

compatibility: $(READY) $(TEST_READY) ## SQLAlchemy's, Django's and (--suite mariadb-test) MariaDB's own tests here and on MariaDB
	$(BIN)/python -m tests.compatibility $(ARGS)

demo: $(READY) ## millrace with the site of Lobsters, visitors, and the page; options in ARGS="--scale 0.1 --rate 50"
	@exec $(BIN)/python -m apps.lobsters.demo $(ARGS)

site: $(READY) $(TEST_READY) ## the documentation as a site, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "open build/site/index.html"

lint: $(READY) $(TEST_READY) ## ruff
	$(BIN)/ruff check .

types: $(READY) $(TEST_READY) ## mypy, strict
	$(BIN)/mypy

check: lint types ## what to run before each commit: lint, types, the repository's own rules
	$(BIN)/python -m pytest -q tests/tidy

bench: $(READY) $(TEST_READY) ## every benchmark, beside MariaDB; one line of JSON each with ARGS=--json
	$(BIN)/millrace bench all $(ARGS)

clean: ## remove caches and stamps, keep .venv and data
	rm -rf $(READY) $(TEST_READY) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

# --- the environment ------------------------------------------------------------------------

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo 'millrace needs Python 3.11 or later: make PYTHON=/path/to/python3.11 …' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || $(call debian,python3-venv,to create .venv)
	@echo 'creating .venv'
	@$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }

$(READY): requirements.lock requirements-java.lock pyproject.toml | $(BIN)/python
	@echo 'installing millrace and what it needs (Spark is 450 MB; once)'
	@$(INSTALL) -r requirements.lock
	@command -v java >/dev/null || [ -x "$$JAVA_HOME/bin/java" ] || $(INSTALL) -r requirements-java.lock
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@echo "preparing Java's classes (once)"
	@$(BIN)/python -m backend.processes.shared_classes >/dev/null 2>&1 || true  # without them a start takes a second longer
	@touch $@

$(TEST_READY): requirements-test.lock $(READY)
	@missing=; need() { missing="$$missing $$1"; }; \
	  PATH="$$PATH:/usr/sbin"; \
	  command -v mariadbd >/dev/null && command -v mariadb-install-db >/dev/null || need 'mariadb-server-core mariadb-client-core'; \
	  [ -d /usr/share/mysql/mysql-test/main ] || need mariadb-test-data; \
	  command -v gcc >/dev/null || need gcc; \
	  command -v pkg-config >/dev/null || need pkg-config; \
	  command -v mariadb_config >/dev/null || need libmariadb-dev; \
	  $(BIN)/python -c 'import os, sysconfig; open(os.path.join(sysconfig.get_path("include"), "Python.h"))' 2>/dev/null \
	    || need python3-dev; \
	  [ -z "$$missing" ] || $(call debian,$$missing,for the tests)
	@echo 'installing what the tests need'
	@$(INSTALL) -r requirements-test.lock
	@touch $@

# Install Debian packages $(1), or say what they are for, $(2), to someone who may not.
define debian
{ \
  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
    echo "installing Debian packages:" $(1); \
    $(APT) update && $(APT) install -y --no-install-recommends $(1) >/dev/null; \
  else \
    echo "missing Debian packages $(2), please install them:  sudo apt-get install" $(1) >&2; exit 1; \
  fi; \
}
endef
