# make run   installs what is missing, builds, fetches and checks the weights, starts Alice
# make test  the same for the tests, then every check and test
#
# Build output and weights lie in ~/.cache/alice, so a second clone does not make them again.

CARGO_TARGET_DIR ?= $(HOME)/.cache/alice/target
export CARGO_TARGET_DIR
# A rustup that was installed a moment ago is not on the PATH yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

ALICE = $(CARGO_TARGET_DIR)/release/alice

.PHONY: run test build

run: build
	@$(ALICE) models pull || echo 'Starting all the same; Alice says what she has to do without.'
	@exec $(ALICE) run $(ARGS)

build:
	@scripts/setup run
	@scripts/page
	cargo build --release

test:
	@scripts/setup test
	@scripts/check
