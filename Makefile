# Fleetfoot. `make run` answers a question; `make test` runs every test; `make check` is the fast inner loop.
SHELL := /bin/bash
CARGO ?= cargo
FILE ?=
ARGS ?=

.PHONY: run test test-all check explorer python dist dist-check site bench bench-peers peers fuzz coverage soak soak-live soak-path fmt doc clean

## Build the program and compare every mechanism on the built-in home line (or FILE=path).
run:
	@scripts/need-cargo.sh
	$(CARGO) run --release --locked --package fleetfoot-cli -- compare $(FILE) $(ARGS)

## Every test; installs what it can and says what it skips. Prints where the time went.
test:
	@scripts/test.sh

## The same and the long suites.
test-all:
	@FLEETFOOT_LONG=1 scripts/test.sh

## Formatting, lints, unit tests: under two minutes when warm.
check:
	@scripts/need-cargo.sh
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked --quiet -- -D warnings
	$(CARGO) test --workspace --lib --locked --quiet

## The Python package: its wheel, installed into .venv (or the active environment), and its tests.
python:
	@scripts/need-cargo.sh
	@scripts/python.sh $(ARGS)

## The documentation site, target/site/html; ARGS=--follow also follows its tutorials, ARGS=--links asks whether external links exist (exit code 1: some do not, 3: no network).
site:
	@scripts/need-cargo.sh
	@scripts/site.sh $(ARGS)

## The files of a release, of the commit that is checked out: target/dist; ARGS=--twice builds them a second time elsewhere and compares.
dist:
	@scripts/need-cargo.sh
	@scripts/dist.sh $(ARGS)

## The source distribution, a wheel built from it, and that wheel in an empty environment with the first notebook; or ARGS=WHEEL.
dist-check:
	@scripts/need-cargo.sh
	@scripts/dist-check.sh $(ARGS)

## The explorer: one page with the simulator in it (explorer.html), which needs no server and no network.
explorer:
	@scripts/need-cargo.sh
	@scripts/explorer.sh $(ARGS)

## The workloads of the engine: time, memory per flow, and per delivered packet the instructions and missed lines of the caches.
bench:
	@scripts/need-cargo.sh
	@scripts/bench.sh

## The workloads that ns-2 has as well (Debian package ns2), both programs in turns, ROUNDS times (default 3).
bench-peers:
	@scripts/need-cargo.sh
	@bench/peers/compare.sh $(or $(ROUNDS),3)

## Side by side with ns-2 and ns-3 (Debian packages ns2, libns3-dev), Linux's queues and this machine's kernel and quinn (root, namespaces).
peers:
	@bench/peers/compare.sh
	@bench/peers/ns3/queues.sh
	@bench/peers/queues/linux.sh
	@bench/peers/linux.sh
	@bench/peers/quic.sh

## Each fuzz target for FUZZ_SECONDS (default 20).
fuzz:
	@scripts/fuzz.sh

## Lines of core that its tests reach; needs llvm-cov of the compiler's LLVM.
coverage:
	@scripts/coverage.sh

## Random transfers over random bad paths in virtual time, checked byte by byte; 100 GiB, or ARGS="--seconds 60". Ctrl-C ends it.
soak:
	@scripts/soak.sh $(ARGS)

## Our TCP against the kernel's on real packets, every byte compared: 64 GiB in parts, or ARGS="--gib 8". Goes on where it was stopped.
soak-live:
	@scripts/soak-live.sh $(ARGS)

## The router and proxies under load while they are reloaded, cut off and killed: 64 GiB each way through each, or ARGS="--gib 8".
soak-path:
	@scripts/soak-path.sh $(ARGS)

fmt:
	$(CARGO) fmt --all

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

clean:
	$(CARGO) clean
	rm -rf fleetfoot-out
