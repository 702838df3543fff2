# The short way to everything; CMake does the work. `make help` lists the targets.
BUILD ?= build
JOBS ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# Options for CMake, such as -DNORMLAB_OPENMP=OFF; the build directory remembers them. CXX=clang++ chooses the compiler.
CMAKE_FLAGS ?=
SEED ?= $(shell date +%s)
FUZZ_SECONDS ?= 120

sources = $(shell find include src tests -name '*.h' -o -name '*.cpp')
compiler = $(if $(filter default,$(origin CXX)),,$(CXX))
# CMake keeps the compiler that a build directory began with; another one starts afresh.
configure = if [ "$$(cat $(BUILD)/compiler 2>/dev/null)" != "$(compiler)" ]; then \
              rm -rf $(BUILD)/CMakeCache.txt $(BUILD)/CMakeFiles; \
            fi; \
            mkdir -p $(BUILD) && echo "$(compiler)" > $(BUILD)/compiler && \
            $(if $(compiler),CXX="$(compiler)") cmake -S . -B $(BUILD) $(CMAKE_FLAGS)
compile = cmake --build $(BUILD) -j $(JOBS)
need_package = command -v $(1) >/dev/null || { echo "$(1) is missing; install it (Debian: apt-get install $(2))" >&2; exit 2; }
need = $(call need_package,$(1),$(1))

program:  ## the program, build/normlab
	@$(configure)
	@$(compile) --target normlab

train: program  ## trains a small model and shows what it writes
	@$(BUILD)/normlab train configs/tiny.yaml

reproduce: program  ## the flagship: Post-LN needs warmup, Pre-LN does not; verdicts and a report
	@$(BUILD)/normlab reproduce warmup

report-check: program  ## screenshots of reports in a real browser (chromium), which must tell of no error
	@$(BUILD)/normlab train configs/tiny.yaml train.steps=200 run.dir=$(BUILD)/report-check/run --force >/dev/null
	@$(BUILD)/normlab sweep configs/claims/pre-faster.yaml train.steps=40 --seeds 2 run.dir=$(BUILD)/report-check/sweep \
	  >/dev/null || [ $$? -eq 1 ]
	@tests/report_check.sh $(BUILD)/report-check $(BUILD)/report-check/run/report.html $(BUILD)/report-check/sweep/report.html

tests:
	@tests/install_catch2.sh $(BUILD)
	@$(configure) -DNORMLAB_TESTS=ON
	@$(compile)

test: tests  ## every test but the long ones; installs Catch2 where it is missing. TESTS=... chooses, as Catch2 does
	@tests/layers_test.sh
	@tests/definitions_test.sh
	@$(BUILD)/tests/normlab_tests $(TESTS)

install-test: program  ## installs into a folder, moves it, and builds another project against it
	@tests/install_test.sh $(BUILD)

torture: tests  ## the long tests, about a minute: kills, full disks, damage, 20,000 steps; SEED=N for the same kills again
	@start=$$(date +%s); echo "torture: SEED=$(SEED)"; SEED=$(SEED) $(BUILD)/tests/normlab_tests "[.torture]"; \
	  code=$$?; echo "torture: SEED=$(SEED), exit code $$code after $$(($$(date +%s) - start)) s"; exit $$code

bench: program  ## kernels and training steps, with their share of the machine's peak
	@$(BUILD)/normlab bench

bench-torch: program  ## training steps compared with PyTorch's; PYTHON=... names a Python that has it, else Debian's is installed
	@PYTHON="$(PYTHON)" tests/peer/compare.py --program $(BUILD)/normlab

interop: program  ## what is exported, read by transformers, PyTorch, TensorBoard, ...; installs them (PYTHON=... has them)
	@PYTHON="$(PYTHON)" tests/peer/interop.py --program $(BUILD)/normlab

format:  ## formats the sources
	@$(call need,clang-format)
	@clang-format -i $(sources)

check:  ## clang-format and clang-tidy, which change nothing here
	@$(call need,clang-format)
	@$(call need,clang-tidy)
	@clang-format --dry-run --Werror $(sources)
	@cmake -S . -B build-check -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DCMAKE_UNITY_BUILD=OFF  # clang-tidy reads each file alone
	@echo $(filter src/%.cpp,$(sources)) | xargs -n 4 -P $(JOBS) clang-tidy -p build-check --quiet

layers:  ## fails when an include goes against the layers, or two files define one name
	@tests/layers.sh
	@tests/definitions.sh

sizes:  ## lines by room, of the sources and of their tests
	@tests/sizes.sh

sanitize:  ## the tests under the address and undefined-behaviour sanitizers: all at -O1, at -O0 those that aren't [slow]
	@$(MAKE) --no-print-directory test BUILD=build-sanitize CMAKE_FLAGS="-DCMAKE_BUILD_TYPE=Debug \
	  -DCMAKE_CXX_FLAGS='-O1 -Wno-maybe-uninitialized' -DNORMLAB_SANITIZE=address,undefined $(CMAKE_FLAGS)"
	@$(MAKE) --no-print-directory test BUILD=build-sanitize-O0 TESTS="'$(quick)'" CMAKE_FLAGS="-DCMAKE_BUILD_TYPE=Debug \
	  -DNORMLAB_SANITIZE=address,undefined $(CMAKE_FLAGS)"

# Blocks of memory are the system's own there, as under the address sanitizer: each one's ends are seen.
checked = -DNORMLAB_CHECKED_MEMORY
# What knows of OpenMP's own synchronisation; the runtime itself is not instrumented.
archer = $(lastword $(sort $(wildcard /usr/lib/llvm-*/lib/libarcher.so)))
valgrind_cpu = $(if $(filter x86_64,$(shell uname -m)),-march=x86-64-v3)
threaded = *thread*,cli: a sweep has results*

tsan:  ## the tests that use threads, under clang's thread sanitizer
	@$(call need,clang++)
	@tests/install_catch2.sh build-tsan
	@$(MAKE) --no-print-directory tests BUILD=build-tsan CXX=clang++ CMAKE_FLAGS="-DCMAKE_BUILD_TYPE=Debug \
	  -DCMAKE_CXX_FLAGS='-O1 $(checked)' -DNORMLAB_SANITIZE=thread $(CMAKE_FLAGS)"
	@OMP_TOOL_LIBRARIES="$(archer)" TSAN_OPTIONS="ignore_noninstrumented_modules=1 $$TSAN_OPTIONS" \
	  setarch -R build-tsan/tests/normlab_tests "$(threaded)"

valgrind:  ## the smallest training run under valgrind, which does not know AVX-512
	@$(call need,valgrind)
	@$(MAKE) --no-print-directory program BUILD=build-valgrind CMAKE_FLAGS="-DNORMLAB_NATIVE=OFF \
	  -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS='-O1 $(checked) $(valgrind_cpu)' $(CMAKE_FLAGS)"
	@for threads in 1 3; do \
	  valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite --fair-sched=yes \
	    build-valgrind/normlab train configs/tiny.yaml data.size=5000 model.n_layers=1 model.d_model=8 model.n_heads=2 \
	    model.context_length=8 train.batch_size=2 train.steps=4 eval.windows=4 log.sample_tokens=4 log.layers_every=2 \
	    checkpoint.every=2 train.threads=$$threads run.dir=build-valgrind/run --force >build-valgrind/log 2>&1 \
	    || { cat build-valgrind/log; exit 1; }; \
	  echo "valgrind: $$threads thread(s): clean"; \
	done

# What finishes in reasonable time without optimisation, where the kernels' loops are some 30 times slower.
quick = ~[slow]~[.]

debug:  ## the quick tests at -O0, each source compiled alone and char unsigned, as it is on ARM
	@$(MAKE) --no-print-directory test BUILD=build-debug TESTS="'$(quick)'" CMAKE_FLAGS="-DCMAKE_BUILD_TYPE=Debug \
	  -DCMAKE_UNITY_BUILD=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DCMAKE_CXX_FLAGS=-funsigned-char $(CMAKE_FLAGS)"

libcxx_compiler = $(firstword $(foreach name,clang++-19 clang++,$(if $(shell command -v $(name)),$(name))) clang++)
libcxx:  ## the tests, built by clang++ with libc++, as on macOS
	@echo '#include <vector>' | $(libcxx_compiler) -stdlib=libc++ -x c++ -fsyntax-only - 2>/dev/null || \
	  { echo "clang++ with libc++ is missing; install it (Debian: apt-get install clang-19 libc++-19-dev libc++abi-19-dev)" \
	    >&2; exit 2; }
	@$(MAKE) --no-print-directory test BUILD=build-libcxx CXX=$(libcxx_compiler) CMAKE_FLAGS="-DCMAKE_CXX_FLAGS=-stdlib=libc++ \
	  -DNORMLAB_OPENMP=OFF $(CMAKE_FLAGS)"

cross:  ## built for aarch64 and run by qemu: references, and the same bytes at 1 and 2 threads
	@$(call need_package,aarch64-linux-gnu-g++,g++-aarch64-linux-gnu)
	@$(call need_package,qemu-aarch64-static,qemu-user-static)
	@$(MAKE) --no-print-directory program BUILD=build-cross CXX=aarch64-linux-gnu-g++ CMAKE_FLAGS="-DCMAKE_SYSTEM_NAME=Linux \
	  -DCMAKE_SYSTEM_PROCESSOR=aarch64 $(CMAKE_FLAGS)"
	@tests/machine_test.sh build-cross qemu-aarch64-static -L /usr/aarch64-linux-gnu

levels:  ## the same for x86-64, x86-64-v2 and x86-64-v3
	@for level in x86-64 x86-64-v2 x86-64-v3; do \
	  $(MAKE) --no-print-directory program BUILD=build-$$level \
	    CMAKE_FLAGS="-DNORMLAB_NATIVE=OFF -DCMAKE_CXX_FLAGS=-march=$$level $(CMAKE_FLAGS)" && \
	  tests/machine_test.sh build-$$level || exit 1; \
	done

clang:  ## the tests, built by clang++
	@$(MAKE) --no-print-directory test BUILD=build-clang CXX=clang++

fuzz:  ## libFuzzer on every reader of files, FUZZ_SECONDS=120 a target; crashes are kept in build-fuzz/crashes
	@echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' | \
	  clang++ -x c++ - -fsanitize=fuzzer,address -o /dev/null 2>/dev/null || \
	  { echo "clang++ with libFuzzer is missing; install it (Debian: apt-get install clang)" >&2; exit 2; }
	@$(MAKE) --no-print-directory fuzz-targets BUILD=build-fuzz CXX=clang++ CMAKE_FLAGS="-DNORMLAB_FUZZ=ON \
	  -DNORMLAB_OPENMP=OFF -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS='-O1 -g1' $(CMAKE_FLAGS)"
	@tests/fuzz/run.sh build-fuzz $(FUZZ_SECONDS)

fuzz-targets:
	@$(configure)
	@$(compile) --target fuzz_targets

suites:  ## the readers over yaml-test-suite (branch data) and JSONTestSuite, wherever they lie below DIR=...
	@[ -n "$(DIR)" ] || { echo "say where the suites lie: make suites DIR=..." >&2; exit 2; }
	@$(configure)
	@$(compile) --target normlab_suites
	@$(BUILD)/normlab_suites "$(DIR)"

readme: program  ## makes the table of settings in README.md again
	@$(BUILD)/normlab train --help-table > $(BUILD)/settings.md
	@awk -v table=$(BUILD)/settings.md '/settings: end/ { while ((getline line < table) > 0) print line; keep = 0 } \
	  !/settings: (begin|end)/ && keep { next } { print } /settings: begin/ { keep = 1 }' README.md > $(BUILD)/README.md
	@cp $(BUILD)/README.md README.md

clean:  ## removes what was built
	rm -rf $(BUILD) build-sanitize build-sanitize-O0 build-debug build-libcxx build-cross build-x86-64* build-tsan build-valgrind build-clang build-check build-fuzz build-consumer*

help:
	@awk -F ':[^#]*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

.PHONY: program sizes install-test train reproduce report-check tests test torture bench bench-torch interop format check layers \
  sanitize tsan valgrind debug libcxx cross levels clang fuzz fuzz-targets suites readme clean help
