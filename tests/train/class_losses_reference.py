"""Writes class_losses_expected.json: PyTorch's losses of fixed numbers, for class_losses_test.cpp.

Needs torch (2.13.0 made the committed file). Run it in this folder.
"""
import json
import math

import torch
import torch.nn.functional as F

N, K = 6, 4
logits = torch.tensor([[2 * math.sin(1 + 0.7 * (i * K + j)) for j in range(K)] for i in range(N)],
                      dtype=torch.float64)
teacher = torch.tensor([[3 * math.cos(0.4 * (i * K + j)) for j in range(K)] for i in range(N)],
                       dtype=torch.float64)
labels = torch.tensor([0, 3, 1, 1, 2, 0])
several = torch.tensor([[1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 0], [0, 0, 1, 1],
                        [1, 0, 0, 0]], dtype=torch.float64)
weights = [0.5, 1.0, 2.0, 0.25]


def focal(gamma, alpha):
    cross_entropy = F.cross_entropy(logits, labels, reduction="none")
    p = torch.exp(-cross_entropy)
    of_class = torch.tensor(alpha, dtype=torch.float64)[labels]
    return (of_class * (1 - p) ** gamma * cross_entropy).mean()


def bce(targets, pos_weight=None):
    weight = None if pos_weight is None else torch.tensor(pos_weight, dtype=torch.float64)
    return F.binary_cross_entropy_with_logits(logits, targets, pos_weight=weight)


def distillation(temperature, weight, smoothing):
    soft = F.kl_div(F.log_softmax(logits / temperature, 1), F.softmax(teacher / temperature, 1),
                    reduction="batchmean") * temperature ** 2
    hard = F.cross_entropy(logits, labels, label_smoothing=smoothing)
    return (1 - weight) * hard + weight * soft


one_hot = F.one_hot(labels, K).double()
expected = {
    "logits": logits.tolist(),
    "teacher": teacher.tolist(),
    "labels": labels.tolist(),
    "several": several.tolist(),
    "weights": weights,
    "losses": {
        "cross_entropy": F.cross_entropy(logits, labels).item(),
        "focal_2": focal(2, [1] * K).item(),
        "focal_0.5_alpha": focal(0.5, weights).item(),
        "focal_2_quarter": focal(2, [0.25] * K).item(),
        "bce": bce(one_hot).item(),
        "bce_smooth": bce(one_hot * 0.9 + 0.1 / K).item(),
        "bce_sum": bce(one_hot).item() * K,
        "bce_several": bce(several).item(),
        "bce_several_weights": bce(several, weights).item(),
        "distillation": distillation(4, 0.7, 0).item(),
        "distillation_smooth": distillation(2, 0.5, 0.1).item(),
    },
}
with open("class_losses_expected.json", "w", encoding="utf-8") as file:
    file.write("{\n" + ",\n".join(f'"{key}": {json.dumps(value)}'
                                  for key, value in expected.items()) + "\n}\n")
