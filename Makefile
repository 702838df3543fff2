BUILD ?= build
JOBS ?= $(shell nproc)

all: ; cmake -S . -B $(BUILD) -DNORMLAB_TESTS=OFF && cmake --build $(BUILD) -j $(JOBS)
test: ; cmake -S . -B $(BUILD) -DNORMLAB_TESTS=ON && cmake --build $(BUILD) -j $(JOBS) && $(BUILD)/tests/normlab_tests
.PHONY: all test
