# Front door of the project. `make help` lists the targets.

BUILD     ?= build/release
JOBS      ?= $(shell nproc)
ARGS      ?=
FUZZ_TIME ?= 60
PEER      ?=

SOURCES    = $(shell find src -name '*.h' -o -name '*.cc')
CTEST      = ctest --output-on-failure --no-tests=error -j $(JOBS)

.DEFAULT_GOAL := help
.PHONY: help setup build run test slow bench compare instructions format lint asan tsan fuzz clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

setup:  ## install missing Debian packages (scripts/packages.txt)
	@scripts/setup.sh build

# configure PRESET DIR: once; Ninja repeats it when a CMake file changes.
define configure
	@[ -f $(2)/build.ninja ] || cmake --preset $(1) -B $(2) >&2
endef

build: setup  ## build everything but benchmarks and slow tests
	$(call configure,release,$(BUILD))
	@cmake --build $(BUILD) -j $(JOBS)

run: setup  ## build, and let the model of this repository tell a story (ARGS='-p "PROMPT"', or any flags)
	$(call configure,release,$(BUILD))
	@cmake --build $(BUILD) -j $(JOBS) --target tilewright >&2
	@$(BUILD)/bin/tilewright run $(ARGS)

test: build  ## build and run the tests and the checks of the repository
	@cd $(BUILD) && $(CTEST) -LE slow

slow: build  ## the tests that `make test` leaves out
	@cmake --build $(BUILD) -j $(JOBS) --target slow_all
	@cd $(BUILD) && $(CTEST) -L slow

bench: setup  ## build and run the benchmarks
	$(call configure,release,$(BUILD))
	@cmake --build $(BUILD) -j $(JOBS) --target bench_all
	@for bench in $(BUILD)/bin/*_bench; do echo "$$bench" && "$$bench" $(ARGS) || exit; done

compare: setup  ## speed beside another runtime's: PEER=PROGRAM, flags in ARGS (docs/performance.md)
	$(call configure,release,$(BUILD))
	@cmake --build $(BUILD) -j $(JOBS) --target tilewright >&2
	@scripts/compare_peer.py --peer "$(PEER)" --tilewright $(BUILD)/bin/tilewright $(ARGS)

instructions: setup  ## instructions of the main kernels against scripts/instructions.txt (ARGS=--update)
	$(call configure,release,$(BUILD))
	@cmake --build $(BUILD) -j $(JOBS) --target tilewright_kernel_counts >&2
	@scripts/check_instructions.py $(BUILD)/bin/tilewright_kernel_counts $(ARGS)

format:  ## lay out the sources (clang-format 14)
	@scripts/setup.sh lint
	@clang-format-14 -i $(SOURCES)

lint: setup  ## layout and static analysis of the sources, warnings are errors
	@scripts/setup.sh lint
	@clang-format-14 --dry-run -Werror $(SOURCES)
	@cmake --preset release -B $(BUILD) >&2
	@scripts/lint.py $(BUILD) $(JOBS)

asan: setup  ## the tests under the address and undefined-behaviour sanitizers
	$(call configure,asan,build/asan)
	@cmake --build build/asan -j $(JOBS)
	@ctest --preset asan -j $(JOBS)

tsan: setup  ## the tests under the thread sanitizer
	$(call configure,tsan,build/tsan)
	@cmake --build build/tsan -j $(JOBS)
	@ctest --preset tsan -j $(JOBS)

fuzz: setup  ## fuzz every target for FUZZ_TIME seconds (60); new inputs are kept in build/fuzz/corpus
	@scripts/setup.sh fuzz
	$(call configure,fuzz,build/fuzz)
	@cmake --build build/fuzz -j $(JOBS) --target fuzz_all
	@scripts/fuzz.sh build/fuzz $(FUZZ_TIME)

clean:  ## remove all build folders
	@rm -rf build
