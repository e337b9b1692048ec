# Short commands. Each only calls a script or a CMake preset.
#   make run  [DATA=folder] [NPROC=2] [STEPS=n]   train ResNet-50 on CIFAR-10 for about two minutes
#   make train-images FOLDER=folder [NETWORK=name] [NPROC=2] [STEPS=n]   train ResNet-18 on your own pictures, a sub-folder for each class
#   make train-ocr                      train a text detector and a recogniser on drawn pictures, 40 minutes
#   make test                           everything that must hold; PARTS="build release" and the like picks parts
#   make test-cluster                   real launchers, hosts and services alone (root)
#   make test-clients                   Lightning, DeepSpeed and others under torchrun and lockstep run; CLIENTS_PYTHON=python that has them
#   make test-exports                   torchvision, timm, onnxruntime and TensorBoard read Lockstep's files; EXPORTS_PYTHON=python that has them
#   make test-cuda                      PyPI's libtorch with CUDA and NCCL: compiles, links and loads, without a GPU
#   make test-bare                      these commands on a machine that has nothing (root); PARTS as in tests/bare/run.sh
#   make chaos [KILLS=300] [SEED=n]     ranks that are killed at random; every survivor must name them within a second
# TORCH=FOLDER|PYTHON|VERSION, with each of them: another libtorch than the system's, as TORCH=2.13.0
SHELL := /bin/bash
ifeq ($(wildcard scripts/setup.sh),)
$(error error: $(CURDIR) is not the folder of Lockstep: make -C FOLDER)
endif
ifeq ($(shell find scripts/setup.sh -perm /111),)
$(error error: $(CURDIR)/scripts/setup.sh has lost its right to be run, as in some archives: git clone, or find . -name '*.sh' -exec chmod +x {} +)
endif
ifneq ($(shell [ -x scripts/setup.sh ] && echo yes),yes)
$(error error: $(CURDIR)/scripts/setup.sh cannot be run: is this folder mounted noexec? Clone to another place)
endif
NPROC ?= 2
DATA ?=
STEPS ?=
FOLDER ?=
PARTS ?=
KILLS ?= 300
SEED ?=
TORCH ?=
export NPROC DATA STEPS FOLDER NETWORK TORCH

.PHONY: help run train-images train-ocr test chaos test-cluster test-clients test-exports test-cuda test-bare bench format lint fuzz install build clean
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

train-images:
	@scripts/setup.sh run
	@scripts/build.sh release lockstep lockstep-data lockstep-train
	@scripts/train_images.sh

train-ocr:
	@scripts/setup.sh run
	@scripts/build.sh release lockstep lockstep-data lockstep-data-synth-ocr lockstep-train lockstep-predict
	@scripts/train_ocr.sh

test:
	@scripts/setup.sh test
	@scripts/test.sh $(PARTS)

chaos:
	@scripts/setup.sh test
	@scripts/build.sh release comm_chaos
	@. scripts/lib.sh && $$release/bin/comm_chaos --kills $(KILLS) $(if $(SEED),--seed $(SEED))

test-cluster:
	@scripts/setup.sh cluster
	@scripts/build.sh release lockstep lockstep-data lockstep-data-synth-ocr lockstep-train lockstep-doctor-libtorch lockstep_mpi cluster_worker cluster_suite
	@tests/cluster/run.sh

test-clients:
	@scripts/setup.sh run
	@scripts/build.sh release lockstep
	@tests/clients/run.sh

test-exports:
	@scripts/setup.sh run
	@scripts/build.sh release zoo_scores lockstep lockstep-data lockstep-train
	@tests/exports/run.sh

test-cuda:
	@scripts/setup.sh cuda
	@tests/cuda/run.sh

test-bare:
	@scripts/setup.sh bare
	@tests/bare/run.sh $(PARTS)

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
install:
	@PREFIX="$(PREFIX)" scripts/install.sh

clean:
	@rm -rf build
