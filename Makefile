# Short commands. Each only calls a script or a CMake preset.
#   make run  [DATA=folder] [NPROC=2]   train ResNet-50 on CIFAR-10 for about two minutes
#   make train-ocr                      train a text detector and a recogniser on drawn pictures, 40 minutes
#   make test                           everything that must hold
#   make test-cluster                   real launchers, hosts and services alone (root)
SHELL := /bin/bash
BUILD := build/release
NPROC ?= 2
DATA ?=
export NPROC DATA

.PHONY: help run train-ocr test test-cluster bench format lint fuzz install build clean
help:
	@sed -n 's/^#\(   make.*\)/\1/p' Makefile; echo "   make bench | format | lint | fuzz | install [PREFIX=dir] | clean"

build:
	@scripts/setup.sh test
	@scripts/build.sh release

# Only the programs that training needs: the first run does not wait for tests to compile.
run:
	@scripts/setup.sh run
	@scripts/build.sh release lockstep lockstep-data lockstep-train
	@scripts/run.sh

train-ocr:
	@scripts/setup.sh run
	@scripts/build.sh release lockstep lockstep-data lockstep-train lockstep-predict
	@scripts/train_ocr.sh

test:
	@scripts/setup.sh test
	@scripts/test.sh

test-cluster:
	@scripts/setup.sh cluster
	@scripts/build.sh release lockstep lockstep-data lockstep-train lockstep-doctor-libtorch cluster_worker cluster_suite
	@tests/cluster/run.sh

bench: build
	@scripts/setup.sh all
	@scripts/bench.sh

format:
	@scripts/setup.sh all
	@git ls-files '*.h' '*.cpp' | xargs clang-format-14 -i

lint:
	@scripts/setup.sh all
	@scripts/lint.sh

fuzz:
	@scripts/setup.sh all
	@scripts/fuzz.sh 60

PREFIX ?= /usr/local
install: build
	@cmake --install $(BUILD) --prefix $(PREFIX)

clean:
	@rm -rf build
