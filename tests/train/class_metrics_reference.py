"""Writes class_metrics_expected.json: scikit-learn's metrics, for class_metrics_test.cpp.

Needs scikit-learn and numpy (1.9.1 and 1.26.4 made the committed file). Run it in this folder.
"""
import json

import numpy
from sklearn import metrics

K = 6
random = numpy.random.default_rng(3)
# Scores in steps, so that samples tie; within a sample they differ. Class 4 is never predicted,
# class 5 is never there, and class 3 is neither.
logits = random.integers(-3, 4, (40, K)) / 2 + numpy.arange(K) * 0.01
logits[:, [3, 4]] -= 9
logits[30:] = logits[:10]
labels = random.choice([0, 1, 2, 4], 40)
right = (random.random(40) < 0.5) & (logits.argmax(1) < 3)
labels[right] = logits.argmax(1)[right]
several_logits = random.integers(-4, 5, (30, 4)) / 2 + 0.25
several = (several_logits + random.normal(0, 0.7, (30, 4)) > 0.4).astype(int)
several[:, 3] = 0  # never there, but sometimes predicted


def mean_of_defined(figure, truth, scores):
    values = []
    for c in range(truth.shape[1]):
        if truth[:, c].any() and (figure is not metrics.roc_auc_score or not truth[:, c].all()):
            values.append(float(figure(truth[:, c], scores[:, c])))
    return float(numpy.mean(values))


def averages(truth, predicted, classes):
    figures = {}
    for average in ["macro", "micro"]:
        precision, recall, f1, _ = metrics.precision_recall_fscore_support(
            truth, predicted, average=average, zero_division=0)
        figures[average] = [f1, precision, recall]
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(
        truth, predicted, average=None, zero_division=0, labels=range(classes))
    figures["class"] = [f1.tolist(), precision.tolist(), recall.tolist()]
    return figures


def log_softmax(scores):
    shifted = scores - scores.max(1, keepdims=True)
    return (shifted - numpy.log(numpy.exp(shifted).sum(1, keepdims=True))).astype(numpy.float32)


log_p = log_softmax(logits.astype(numpy.float32).astype(numpy.float64))
present = numpy.eye(K, dtype=int)[labels]
expected = {
    "logits": logits.tolist(),
    "labels": labels.tolist(),
    "single": {
        "acc": metrics.accuracy_score(labels, logits.argmax(1)),
        "top_k": [metrics.top_k_accuracy_score(labels, logits, k=k, labels=range(K))
                  for k in range(1, K)],
        "auc": mean_of_defined(metrics.roc_auc_score, present, log_p),
        "map": mean_of_defined(metrics.average_precision_score, present, log_p),
        "averages": averages(labels, logits.argmax(1), K),
        "confusion": metrics.confusion_matrix(labels, logits.argmax(1), labels=range(K)).tolist(),
    },
    "several_logits": several_logits.tolist(),
    "several_truth": several.tolist(),
    "several": {
        "acc": metrics.accuracy_score(several, several_logits > 0),
        "auc": mean_of_defined(metrics.roc_auc_score, several, several_logits),
        "map": mean_of_defined(metrics.average_precision_score, several, several_logits),
        "averages": averages(several, several_logits > 0, 4),
    },
}
with open("class_metrics_expected.json", "w", encoding="utf-8") as file:
    file.write("{\n" + ",\n".join(f'"{key}": {json.dumps(value)}'
                                  for key, value in expected.items()) + "\n}\n")
