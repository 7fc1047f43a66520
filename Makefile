# flashwise: what can be done here. `make` alone lists it.

CARGO ?= cargo
TARGET_DIR = $(or $(CARGO_TARGET_DIR),target)

.DEFAULT_GOAL := help
.PHONY: help run test test-full bench docs install uninstall python dist dist-test lint fmt

help: ## List the targets
	@echo 'flashwise: fit your database to the SSD it runs on'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo '  make run ARGS="--rows 50000"       more options: flashwise fit sqlite --help'
	@echo '  make test CRATES="ssd learn"       the lints and tests of these crates alone'
	@echo '  make install PREFIX=$$HOME/.local   with man pages and completions'

run: ## Build, then fit SQLite to a simulated drive; the report goes to flashwise-report/
	@scripts/c-compiler
	$(CARGO) build --profile quick --locked --package flashwise-cli
	@echo
	@'$(TARGET_DIR)/quick/flashwise' fit sqlite $(ARGS)

test: ## Format, lints and every test; as root it installs what is missing
	@scripts/c-compiler
	@scripts/test-tools
	@CARGO='$(CARGO)' scripts/check $(CRATES)

test-full: ## All of test, optimised and with eight times the random cases; benches once; the book
	@scripts/c-compiler
	@scripts/test-tools
	@scripts/sqlite-suite all
	@scripts/postgres-suite
	@scripts/postgres-versions
	@scripts/extension-hosts
	@scripts/lint
	@scripts/book
	@CARGO='$(CARGO)' scripts/kernel-against-linux counts
	@CARGO='$(CARGO)' scripts/learn-under-blk-throttle
	@CARGO='$(CARGO)' scripts/dist
	@scripts/dist-test
	$(CARGO) bench --workspace --locked --bench '*' -- --test
	@PROPTEST_CASES=$(or $(PROPTEST_CASES),2048) LOOM_MAX_PREEMPTIONS=$(or $(LOOM_MAX_PREEMPTIONS),3) \
		FLASHWISE_POOL_HISTORIES=$(or $(FLASHWISE_POOL_HISTORIES),16384) \
		FLASHWISE_POWER_CUTS=$(or $(FLASHWISE_POWER_CUTS),13000) \
		FLASHWISE_POWER_CUTS_OF_PROCESSES=$(or $(FLASHWISE_POWER_CUTS_OF_PROCESSES),2000) \
		FLASHWISE_MOUNTED_POWER_CUTS=$(or $(FLASHWISE_MOUNTED_POWER_CUTS),1000) \
		FLASHWISE_POSTGRES_POWER_CUTS=$(or $(FLASHWISE_POSTGRES_POWER_CUTS),1000) \
		FLASHWISE_MARIADB_POWER_CUTS=$(or $(FLASHWISE_MARIADB_POWER_CUTS),100) \
		FLASHWISE_TEST_LIMIT=$(or $(FLASHWISE_TEST_LIMIT),6h) CARGO='$(CARGO)' scripts/tests \
		--workspace --locked --no-fail-fast --release -- --include-ignored

bench: ## How fast the simulator and the learner are (about a minute after the build)
	@scripts/c-compiler
	$(CARGO) bench --locked --package flashwise-benches

docs: ## The book in target/book, the libraries' pages in target/doc; installs mdbook if there is none
	@scripts/c-compiler
	@scripts/book
	$(CARGO) doc --workspace --locked --no-deps
	@echo "docs: target/book/index.html and $(TARGET_DIR)/doc/flashwise_block/index.html"

install: ## Install the program, where cargo does or in PREFIX
	@scripts/c-compiler
	@CARGO='$(CARGO)' PREFIX='$(PREFIX)' scripts/install

uninstall: ## Remove what install has installed
	@CARGO='$(CARGO)' PREFIX='$(PREFIX)' scripts/install remove

python: ## Build the Python package's wheel into target/wheels
	@scripts/c-compiler
	@scripts/python-wheel

dist: ## Build what is released into target/packages: archive, .deb, image, wheel
	@scripts/c-compiler
	@CARGO='$(CARGO)' scripts/dist

dist-test: ## Install what target/packages holds in fresh systems, use it, and remove it (root, Debian)
	@scripts/dist-test

lint: ## Format and lints only
	@scripts/lint

fmt: ## Format the code
	$(CARGO) fmt --all
