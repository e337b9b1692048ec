"""Lockstep's zoo beside torchvision's networks: scores for the same weights, in both directions.

`make test-exports` runs it. Else, with the Python of a virtual environment that has requirements.txt:
    scripts/build.sh release zoo_scores lockstep lockstep-train
    python bench/peers/torchvision/compare.py [NETWORK ...]
For each network with random weights and statistics, on four pictures in float32:
    pth, old pth, safetensors   Lockstep's scores of torchvision's files, as torch.save writes them
                                since 1.6 and before, and as safetensors does
    timm                        its scores of timm's file, beside timm's own
    export                      torchvision's scores of what `lockstep export` wrote as safetensors
    onnx                        onnxruntime's scores of what `lockstep export` wrote, also for one picture
    start                       initial weights of one seed: how many tensors have equal bits
Figures are the largest difference of a score, divided by the largest score. Ends with 1 if one of
the first four is above 1e-5, or onnx above 1e-4.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnxruntime
import timm
import torch
from safetensors.torch import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/models"))
import zoo_reference  # noqa: E402

BIN = pathlib.Path(os.environ.get("LOCKSTEP_BIN_DIR", ROOT / "build/release/bin"))
CLASSES = 10
TIMM = {"vit_b_16": "vit_base_patch16_224", "vit_s_16": "vit_small_patch16_224",
        "mobilenet_v3_large": "mobilenetv3_large_100", "mobilenet_v3_small": "mobilenetv3_small_100"}
TIMM_EPS = "1e-5"  # of its MobileNets' batch norms


def lockstep(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr}")


def randomise(net):
    """Weights as they start, but for those that start as constants."""
    with torch.no_grad():
        for name, value in net.state_dict().items():
            if name.endswith("running_var"):
                value.uniform_(0.5, 2)
            elif name.endswith(("running_mean", "bias", "layer_scale", "gamma", "class_token", "cls_token")):
                value.normal_(std=0.1)
            elif value.dim() == 1 and name.endswith("weight"):
                value.uniform_(0.5, 1.5)
            elif name.startswith(("heads.", "head.")) and value.dim() == 2:
                value.normal_(std=0.02)
    return net.eval()


def scores_of(net, pictures):
    with torch.no_grad():
        return net(pictures)


def difference(own, other):
    return ((torch.as_tensor(own) - torch.as_tensor(other)).abs().max() / torch.as_tensor(other).abs().max()).item()


class Comparison:
    def __init__(self, name, folder):
        self.name, self.folder = name, pathlib.Path(folder)
        self.side = 224
        torch.manual_seed(7)
        self.start = zoo_reference.build(name, CLASSES, self.side)
        self.started = {key: value.clone() for key, value in self.start.state_dict().items()}
        self.net = randomise(self.start)
        self.pictures = torch.rand(4, 3, self.side, self.side) * 2 - 1
        self.expected = scores_of(self.net, self.pictures)
        save_file({"pictures": self.pictures}, self.folder / "pictures.safetensors")

    def own_scores(self, weights, *norm_eps):
        out = self.folder / "scores.safetensors"
        lockstep(BIN / "zoo_scores", "score", self.name, CLASSES, self.side, weights,
                 self.folder / "pictures.safetensors", out, *norm_eps)
        return load_file(out)["scores"]

    def files(self):
        state = self.net.state_dict()
        torch.save(state, self.folder / "new.pth")
        torch.save(state, self.folder / "old.pth", _use_new_zipfile_serialization=False)
        save_file(state, self.folder / "w.safetensors")
        return [difference(self.own_scores(self.folder / name), self.expected)
                for name in ("new.pth", "old.pth", "w.safetensors")]

    def timm(self):
        net = randomise(timm.create_model(TIMM.get(self.name, self.name), num_classes=CLASSES))
        save_file(net.state_dict(), self.folder / "timm.safetensors")
        return difference(self.own_scores(self.folder / "timm.safetensors", TIMM_EPS), scores_of(net, self.pictures))

    def exported(self, ending):
        config = self.folder / "c.yaml"
        more = f", image_size: {self.side}" if self.name.startswith("vit") else ""
        config.write_text(f"model: {{network: {{name: {self.name}{more}}}, head: {{num_classes: {CLASSES}}}}}\n"
                          "train: {ckpt_save_dir: out, dataset: {dataset_root: d, data_dir: d}, loader: {batch_size: 1}}\n")
        out = self.folder / f"exported{ending}"
        lockstep(BIN / "lockstep", "export", "-c", config, "--weights", self.folder / "w.safetensors", "--output", out,
                 "--size", self.side)
        return out

    def export(self):
        again = zoo_reference.build(self.name, CLASSES, self.side).eval()
        again.load_state_dict(load_file(self.exported(".safetensors")))
        return difference(scores_of(again, self.pictures), self.expected)

    def onnx(self):
        session = onnxruntime.InferenceSession(self.exported(".onnx"), providers=["CPUExecutionProvider"])
        pictures = self.pictures.numpy()
        four = session.run(None, {"input": pictures})[0]
        one = session.run(None, {"input": pictures[:1]})[0]
        return max(difference(four, self.expected), difference(one, self.expected[:1]))

    def equal_start(self):
        out = self.folder / "start.safetensors"
        lockstep(BIN / "zoo_scores", "start", self.name, CLASSES, self.side, 7, out)
        own = load_file(out)
        return f"{sum(numpy.array_equal(own[key], value) for key, value in self.started.items())} of {len(own)}"


def main():
    bad = False
    print("| network | pth | old pth | safetensors | timm | export | onnx | start |\n|---|---|---|---|---|---|---|---|")
    for name in sys.argv[1:] or zoo_reference.NAMES:
        with tempfile.TemporaryDirectory() as folder:
            comparison = Comparison(name, folder)
            close = comparison.files() + [comparison.timm(), comparison.export()]
            onnx = comparison.onnx()
            bad |= onnx > 1e-4 or any(value > 1e-5 for value in close)
            shown = [f"{value:.1e}" for value in close + [onnx]]
            print(f"| {name} | {' | '.join(shown)} | {comparison.equal_start()} |", flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main())
