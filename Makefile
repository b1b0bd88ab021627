# make demo      see it work
# make test      lint, types, tests
# make sanitize  the tests of the native code under AddressSanitizer and UndefinedBehaviorSanitizer, and its threads
#                under ThreadSanitizer
# make aarch64   compile the native code for 64-bit ARM and run its threads by qemu (g++-aarch64-linux-gnu, qemu-user)
# make docs      the site, in docs/_build/html
# make bench     measure against peers, part by part (long; leave the machine alone meanwhile; goes on where it was)
# make bench-quick  ratios of today beside the committed ones, in ten minutes
# make format    put the sources in their standard form

PYTHON ?= python3
BIN := .venv/bin
NATIVE := $(wildcard native/*.?pp native/*/*.?pp)
BUILD := pyproject.toml CMakeLists.txt $(NATIVE)

.PHONY: demo test lint sanitize sanitize-memory sanitize-threads aarch64 docs bench bench-quick format clean

demo: .venv/installed
	$(BIN)/quickmeans demo

test: .venv/installed lint
	$(BIN)/pytest tests src

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(NATIVE)
	$(BIN)/mypy

sanitize: sanitize-memory sanitize-threads

sanitize-memory: .venv-sanitize/installed
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	.venv-sanitize/bin/python -m pytest -p no:cacheprovider tests/test_kernel.py tests/test_assignment.py \
		tests/test_interrupts.py tests/test_product.py tests/test_solvers.py tests/test_als.py tests/test_iteration.py \
		tests/test_gaussian.py tests/test_swaps.py tests/test_distances.py tests/test_nearest.py tests/test_csr.py \
		tests/test_groups.py tests/test_neighborhood.py tests/test_scan.py \
		--deselect tests/test_product.py::test_memory_map_is_not_loaded \
		--deselect tests/test_csr.py::test_memory_is_that_of_the_centroids # the sanitizer's own memory would count

sanitize-threads: .venv-sanitize/installed
	mkdir -p build
	.venv-sanitize/bin/cmake -S . -B build/threads -DQUICKMEANS_SANITIZE=thread > build/threads.log
	.venv-sanitize/bin/cmake --build build/threads -j >> build/threads.log
	build/threads/threads

aarch64:
	cmake -S . -B build/aarch64 -DQUICKMEANS_PROGRAM=ON -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
		-DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++
	cmake --build build/aarch64 -j2
	qemu-aarch64 -L /usr/aarch64-linux-gnu build/aarch64/threads

docs: .venv/docs
	$(BIN)/sphinx-build -W --keep-going -q -E -b html docs docs/_build/html
	@echo "The site is docs/_build/html/index.html"

bench: .venv/bench
	$(BIN)/python -m benchmarks

bench-quick: .venv/bench
	$(BIN)/python -m benchmarks.quick

format: .venv/installed
	$(BIN)/clang-format -i $(NATIVE)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .venv-sanitize build docs/_build docs/api

.venv/installed: $(BUILD)
	@echo "Building quickmeans and installing what it needs into .venv; this takes a minute or two ..."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group dev
	touch $@

.venv/bench: .venv/installed
	$(BIN)/python -m pip install --quiet --group bench
	touch $@

.venv/docs: .venv/installed
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

.venv-sanitize/installed: $(BUILD) $(wildcard src/quickmeans/*.py src/quickmeans/*/*.py)
	$(PYTHON) -m venv .venv-sanitize
	.venv-sanitize/bin/python -m pip install --quiet --upgrade pip
	.venv-sanitize/bin/python -m pip install --quiet cmake pytest pytest-timeout hypothesis pandas polars scikit-learn
	.venv-sanitize/bin/python -m pip install --quiet --config-settings=cmake.define.QUICKMEANS_SANITIZE=address \
		--config-settings=build-dir=build/sanitize .
	touch $@
