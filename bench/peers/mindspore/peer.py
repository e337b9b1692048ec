#!/usr/bin/env python3
"""MindSpore's side of the comparison with Lockstep: the same networks, weights and batches.

usage: peer.py init  CONFIG WEIGHTS.ckpt          fresh weights of MindSpore's network, and as
                                                  WEIGHTS.safetensors for float64.py
       peer.py train CONFIG WEIGHTS.ckpt DIR STEPS LR OUT
                                                  loss and gradients of DIR's first batch, STEPS steps
       peer.py eval  CONFIG WEIGHTS.ckpt          the scores of the section eval
       peer.py step  CONFIG WEIGHTS.ckpt DIR      images a second, as `bench_mindspore step` and
       peer.py pipeline CONFIG                    `bench_mindspore pipeline` answer them
       any of them, with more words key.sub=value that replace values of CONFIG

CONFIG is a YAML file that both sides read. A classifier is MindCV's ResNet, as MindOCR contains it,
or with `stem: mindspore` the ResNet-50 of MindSpore's tutorial; the other networks come from
MindOCR's build_model() and build_loss(). `train` runs under msrun or mpirun, too: then each rank uses
every n-th batch, and the gradients are means over the ranks. system.mode is MindSpore's: 0 compiles
the network and its gradient as a graph, 1 runs them operator by operator.

`eval` reads the pictures by itself: MindOCR's data pipeline, postprocessing and metrics, or
MindSpore's transforms of CIFAR-10's test_batch.bin. It prints the line that MindOCR's tools/eval.py logs.
"""
import itertools
import os
import re
import statistics
import sys
import time
import types

import numpy as np
import yaml
from safetensors.numpy import load_file, save_file

# MindSpore asks its oneDNN 3.10 for plain layouts. With AVX-512 that has only reference code for such
# convolutions, forward and of the input's gradient; with AVX2 it multiplies matrices, ten times as fast.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")
import mindspore as ms
from mindspore import nn


class Absent(types.ModuleType):
    """Stands for a module that MindSpore 2.10 can no longer load: its names are empty classes."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


# MindOCR 0.5 imports all its networks; ABINet's needs mindspore.parallel._transformer, which 2.10 lacks.
sys.modules["mindocr.models.utils.abinet_layers"] = Absent("abinet_layers")


class WithLoss(nn.Cell):
    def __init__(self, network, loss):
        super().__init__(auto_prefix=False)
        self.network = network
        self.loss = loss

    def construct(self, image, *targets):
        return self.loss(self.network(image), *targets)


def read_config(path, overrides=(), batch_size=None):
    with open(path, encoding="utf-8") as file:
        # ${NAME:-default} as in a shell
        text = re.sub(r"\$\{(\w+):-([^}]*)\}", lambda m: os.environ.get(m[1]) or m[2], file.read())
    config = yaml.safe_load(text)
    for override in overrides:
        keys, value = override.split("=", 1)
        *sections, last = keys.split(".")
        section = config
        for key in sections:
            section = section[key]
        section[last] = yaml.safe_load(value)
    if batch_size and config["loss"].get("batch_size"):
        config["loss"]["batch_size"] = batch_size
    return config


def build(config):
    model = config["model"]
    ms.set_context(mode=config["system"]["mode"])
    ms.set_seed(config["system"]["seed"])
    if model["type"] == "cls" and model["backbone"].get("stem") == "mindspore":
        import tutorial_resnet

        return tutorial_resnet.ResNet50(model["head"]["num_classes"])
    if model["type"] == "cls":
        from mindocr.models.backbones.mindcv_models import resnet

        return getattr(resnet, model["backbone"]["name"])(num_classes=model["head"]["num_classes"])
    from mindocr.models import build_model

    model["backbone"]["pretrained"] = False
    model.pop("resume", None)
    # Without a level the text networks lack an attribute that their encoder reads.
    return build_model(model, amp_level="O0")


def build_loss(config):
    if config["model"]["type"] == "cls":
        return nn.CrossEntropyLoss()
    from mindocr.losses import build_loss as make

    options = dict(config["loss"])
    return make(options.pop("name"), **options)


def read_batch(folder, index):
    tensors = load_file(f"{folder}/batch_{index}.safetensors")
    columns = [tensors["image"]]
    while f"target_{len(columns) - 1}" in tensors:
        target = tensors[f"target_{len(columns) - 1}"]
        columns.append(target.astype(np.int32) if target.dtype == np.int64 else target)
    return [ms.Tensor(column) for column in columns]


def join():
    """This process's rank and the number of ranks."""
    if not ({"MS_WORKER_NUM", "OMPI_COMM_WORLD_SIZE"} & set(os.environ)):
        return 0, 1
    from mindspore.communication import get_group_size, get_rank, init

    init()
    rank, size = get_rank(), get_group_size()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True,
                                 device_num=size)
    return rank, size


class Training:
    """The network of CONFIG in training mode, with momentum 0.9."""

    def __init__(self, config, weights, lr, ranks=1):
        self.network = build(config)
        ms.load_param_into_net(self.network, ms.load_checkpoint(weights))
        network = WithLoss(self.network, build_loss(config))
        network.set_train()
        self.parameters = self.network.trainable_params()
        self.optimizer = nn.Momentum(self.parameters, lr, 0.9)
        self.forward_backward = ms.value_and_grad(network, None, self.parameters)
        self.reducer = nn.DistributedGradReducer(self.parameters, True, ranks) if ranks > 1 else None

    def backward(self, batch):
        loss, gradients = self.forward_backward(*batch)
        return loss, self.reducer(gradients) if self.reducer else gradients


def train(config_path, weights, folder, steps, lr, out, *overrides):
    rank, size = join()
    config = read_config(config_path, overrides, read_batch(folder, 0)[0].shape[0])
    training = Training(config, weights, float(lr), size)
    os.makedirs(out, exist_ok=True)
    files = sum(name.startswith("batch_") for name in os.listdir(folder))
    times = []
    for step in range(int(steps)):
        batch = read_batch(folder, (step * size + rank) % files)
        begin = time.perf_counter()
        loss, gradients = training.backward(batch)
        if step == 0 and rank == 0:
            save_file({p.name: np.ascontiguousarray(g.asnumpy())
                       for p, g in zip(training.parameters, gradients)},
                      f"{out}/gradients.safetensors")
        training.optimizer(gradients)
        value = float(loss.asnumpy())
        times.append((time.perf_counter() - begin) * 1000)
        print(f"loss {step} {value:.9g}", flush=True)
    if rank == 0:
        ms.save_checkpoint(training.network, f"{out}/trained.ckpt")
    print(f"ms {statistics.median(times):.1f}")


def answer(speed):
    """Answers each number of the standard input, so that two programs can be measured in turns."""
    for line in sys.stdin:
        print(f"images/s {speed(int(line)):.6g}", flush=True)


def time_steps(config_path, weights, folder, *overrides):
    ms.device_context.cpu.op_tuning.threads_num(int(os.environ["OMP_NUM_THREADS"]))
    batch = read_batch(folder, 0)
    images = batch[0].shape[0]
    training = Training(read_config(config_path, overrides, images), weights, 1e-5)

    def speed(count):
        begin = time.perf_counter()
        for _ in range(count):
            loss, gradients = training.backward(batch)
            training.optimizer(gradients)
        loss.asnumpy()
        training.parameters[0].asnumpy()  # the optimizer runs beside this thread
        return count * images / (time.perf_counter() - begin)

    answer(speed)


def cifar10_train(config):
    """The training images as MindSpore's tutorial transforms them."""
    from mindspore.dataset import Cifar10Dataset, transforms, vision

    section = config["train"]
    steps = {name: options for step in section["dataset"]["transform_pipeline"]
             for name, options in step.items()}
    workers = section["loader"]["num_workers"]
    size, crop = steps["Resize"]["size"], steps["RandomCrop"]
    operations = [vision.RandomCrop((crop["size"],) * 2, (crop["padding"],) * 4),
                  vision.RandomHorizontalFlip(steps["RandomHorizontalFlip"]["prob"]),
                  vision.Resize((size, size)), vision.Rescale(1 / 255, 0),
                  vision.Normalize(steps["Normalize"]["mean"], steps["Normalize"]["std"]),
                  vision.HWC2CHW()]
    images = Cifar10Dataset(section["dataset"]["data_dir"], "train", num_parallel_workers=workers)
    images = images.map(transforms.TypeCast(ms.int32), "label", num_parallel_workers=workers)
    images = images.map(operations, "image", num_parallel_workers=workers)
    return images.batch(section["loader"]["batch_size"], num_parallel_workers=workers)


def training_data(config):
    ms.dataset.config.set_prefetch_size(config["train"]["loader"].get("prefetch_size", 16))
    if config["model"]["type"] == "cls":
        return cifar10_train(config)
    from mindocr.data import build_dataset

    return build_dataset(config["train"]["dataset"], config["train"]["loader"], is_train=True)


def time_pipeline(config_path, *overrides):
    def speed(count):
        data = training_data(read_config(config_path, overrides))
        epochs = -(-(count + 1) // data.get_dataset_size())
        batches = data.repeat(epochs).create_tuple_iterator(num_epochs=1, output_numpy=True)
        next(batches)  # without the start of the threads and the reading of whole files
        begin = time.perf_counter()
        images = sum(len(columns[0]) for columns in itertools.islice(batches, count))
        seconds = time.perf_counter() - begin
        # The time ends before the rest of the epoch is given up. A take(count + 1) would first make
        # all of it, which took CIFAR-10's 50,000 images minutes.
        batches.stop()
        return images / seconds

    answer(speed)


def cifar10_test(config):
    """The test images as MindSpore's tutorial transforms them; sizes and constants from CONFIG."""
    from mindspore.dataset import NumpySlicesDataset, transforms, vision

    section = config["eval"]
    steps = {name: options for step in section["dataset"]["transform_pipeline"]
             for name, options in step.items()}
    size = steps["Resize"]["size"]
    operations = [vision.Resize((size, size)), vision.Rescale(1 / 255, 0),
                  vision.Normalize(steps["Normalize"]["mean"], steps["Normalize"]["std"]),
                  vision.HWC2CHW()]
    # MindSpore's own reader refuses files with less than 10,000 records.
    records = np.fromfile(f"{section['dataset']['data_dir']}/test_batch.bin", np.uint8)
    records = records.reshape(-1, 3073)
    pixels = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    images = NumpySlicesDataset((pixels, records[:, 0]), ["image", "label"], shuffle=False)
    images = images.map(transforms.TypeCast(ms.int32), "label").map(operations, "image")
    return images.batch(section["loader"]["batch_size"])


def evaluate_classifier(config, network):
    right = total = 0
    for image, label in cifar10_test(config).create_tuple_iterator(num_epochs=1):
        answer = network(image).asnumpy().argmax(1)
        right += int((answer == label.asnumpy()).sum())
        total += len(answer)
    return {"acc": right / total}


def evaluate_text(config, network):
    """As MindOCR's tools/eval.py does."""
    from mindocr.data import build_dataset
    from mindocr.metrics import build_metric
    from mindocr.postprocess import build_postprocess
    from mindocr.utils.evaluator import Evaluator

    section = config["eval"]["dataset"]
    columns = section["output_columns"]
    inputs, labels = section.pop("net_input_column_index"), section.pop("label_column_index")
    loader = build_dataset(section, config["eval"]["loader"], is_train=False, refine_batch_size=True)
    evaluator = Evaluator(network, loader, postprocessor=build_postprocess(config["postprocess"]),
                          metrics=[build_metric(config["metric"])], loader_output_columns=columns,
                          input_indices=inputs, label_indices=labels, num_epochs=1)
    return evaluator.eval()


def evaluate(config_path, weights, *overrides):
    config = read_config(config_path, overrides)
    network = build(config)
    missing, unused = ms.load_param_into_net(network, ms.load_checkpoint(weights), strict_load=True)
    if missing or unused:
        sys.exit(f"{weights}: no {missing}, and no use for {unused}")
    network.set_train(False)
    classifies = config["model"]["type"] == "cls"
    figures = (evaluate_classifier if classifies else evaluate_text)(config, network)
    print(f"Performance: {figures}")


def main():
    command, *words = sys.argv[1:] or [""]
    if command == "init":
        config_path, weights, *overrides = words
        network = build(read_config(config_path, overrides))
        ms.save_checkpoint(network, weights)
        save_file({p.name: np.ascontiguousarray(p.asnumpy()) for p in network.get_parameters()},
                  os.path.splitext(weights)[0] + ".safetensors")
    elif command == "train":
        train(*words)
    elif command == "eval":
        evaluate(*words)
    elif command == "step":
        time_steps(*words)
    elif command == "pipeline":
        time_pipeline(*words)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
