#!/usr/bin/python3
"""The pipelines of bench_ocr_pipeline in Python: OpenCV, NumPy (vectorised, no loop over pixels) and
pyclipper. Same steps, arguments and data; its own random numbers.

Each step works like MindOCR's transform of that name: a file is read by open(), channels are
reversed by an index, mean and deviation are per channel. It skips only unnecessary work: no
dictionary passes from step to step, and no canvas is filled that the image covers. The output on
both sides is the input of a batch: continuous arrays, an image's as C x H x W.

usage: ocr_pipeline.py det|rec LABEL_FILE DATA_DIR SECONDS
Packages: python3-opencv python3-numpy python3-pyclipper.
"""
import json
import os
import random
import sys
import time

import cv2
import numpy as np
import pyclipper

IMAGENET_MEAN = np.array([[[123.675, 116.28, 103.53]]], np.float32)
IMAGENET_STD = np.array([[[58.395, 57.12, 57.375]]], np.float32)
WORD_MEAN = WORD_STD = np.array([[[127, 127, 127]]], np.float32)


def read_label_file(path, folder):
    with open(path, encoding="utf-8") as file:
        for line in file:
            name, label = line.rstrip("\n").split("\t")
            yield os.path.join(folder, name), label


def decode(path, rgb):
    with open(path, "rb") as file:
        image = cv2.imdecode(np.frombuffer(file.read(), np.uint8), cv2.IMREAD_COLOR)
    return cv2.cvtColor(image, cv2.COLOR_BGR2RGB) if rgb else image


def normalize_to_planes(image, mean, std):
    return np.ascontiguousarray(((image.astype(np.float32) - mean) / std).transpose(2, 0, 1))


def parse(label):
    entries = json.loads(label)
    polygons = [np.array(entry["points"], np.float32) for entry in entries]
    ignored = [entry["transcription"] in ("###", "*") for entry in entries]
    return polygons, ignored


def adjust_colour(image, brightness, saturation):
    steps = [("brightness", brightness), ("saturation", saturation)]
    random.shuffle(steps)
    for name, factor in steps:
        if name == "brightness":
            image = cv2.convertScaleAbs(image, alpha=factor)
        else:
            grey = cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
            image = cv2.addWeighted(grey, 1 - factor, image, factor, 0)
    return image


def flip(image, polygons):
    width = image.shape[1]
    return cv2.flip(image, 1), [(p * [-1, 1] + [width - 1, 0])[::-1] for p in polygons]


def rotate(image, polygons, angle):
    height, width = image.shape[:2]
    matrix = cv2.getRotationMatrix2D((width // 2, height // 2), angle, 1)
    image = cv2.warpAffine(image, matrix, (width, height))
    return image, [p @ matrix[:, :2].T + matrix[:, 2] for p in polygons]


def scale(image, polygons, factor):
    return cv2.resize(image, None, fx=factor, fy=factor), [p * factor for p in polygons]


def find_crop(size, polygons, tries, least_ratio):
    """(top, left), (bottom, right) of a part that cuts no polygon, or of the whole."""
    whole = np.array([0, 0]), np.array(size)
    if not polygons:
        return whole
    rows, cols = np.zeros(size[0], bool), np.zeros(size[1], bool)
    for polygon in polygons:
        corners = np.maximum(np.round(polygon).astype(int), 0)
        (left, top), (right, bottom) = corners.min(0), corners.max(0)
        cols[left : right + 1] = True
        rows[top : bottom + 1] = True
    free_rows, free_cols = np.flatnonzero(~rows), np.flatnonzero(~cols)
    if not len(free_rows) or not len(free_cols):
        return whole
    least = np.ceil(np.array(size) * least_ratio)
    for _ in range(tries):
        top, bottom = np.sort(np.random.choice(free_rows, 2))
        left, right = np.sort(np.random.choice(free_cols, 2))
        if bottom - top < least[0] or right - left < least[1]:
            continue
        for polygon in polygons:
            low, high = polygon.min(0), polygon.max(0)
            if (high > (left, top)).all() and (low < (right, bottom)).all():
                return np.array([top, left]), np.array([bottom, right])
    return whole


def crop(image, polygons, start, end, canvas):
    factor = min(canvas[0] / (end[0] - start[0]), canvas[1] / (end[1] - start[1]))
    part = cv2.resize(image[start[0] : end[0], start[1] : end[1]], None, fx=factor, fy=factor)
    actual = part.shape[:2]
    padding = [(0, c - s) for c, s in zip(canvas, actual)] + [(0, 0)]
    return np.pad(part, padding), actual, [(p - start[::-1]) * factor for p in polygons]


def visible(polygons, ignored, actual, least_area=1.0):
    """Polygons at least partly in the image; OpenCV computes the common area of convex ones."""
    height, width = actual
    frame = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    kept, tags = [], []
    for polygon, tag in zip(polygons, ignored):
        low, high = polygon.min(0), polygon.max(0)
        if (high < 0).any() or low[0] > width or low[1] > height:
            continue
        inside = (low >= 0).all() and high[0] <= width and high[1] <= height
        area = area_of(polygon)
        if not inside:
            area = cv2.intersectConvexConvex(polygon.astype(np.float32), frame)[0]
        kept.append(polygon)
        tags.append(tag or area < least_area)
    return kept, tags


def area_of(polygon):
    x, y = polygon[:, 0], polygon[:, 1]
    return abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2


def perimeter_of(polygon):
    return np.linalg.norm(polygon - np.roll(polygon, -1, 0), axis=1).sum()


def offset(polygon, distance):
    clipper = pyclipper.PyclipperOffset()
    clipper.AddPath(polygon, pyclipper.JT_ROUND, pyclipper.ET_CLOSEDPOLYGON)
    return clipper.Execute(distance)


def offset_distance(polygon, ratio):
    return area_of(polygon) * (1 - ratio * ratio) / perimeter_of(polygon)


def shrink_map(size, polygons, ignored, least_size, ratio):
    binary, mask = np.zeros(size, np.float32), np.ones(size, np.float32)
    for i, polygon in enumerate(polygons):
        shrunk = []
        if not ignored[i] and (polygon.max(0) - polygon.min(0)).min() >= least_size:
            shrunk = offset(polygon, -offset_distance(polygon, ratio))
        if shrunk:
            cv2.fillPoly(binary, [np.array(shrunk[0], np.int32)], 1)
        else:
            cv2.fillPoly(mask, [polygon.astype(np.int32)], 0)
            ignored[i] = True
    return binary, mask


def distance_to_edge(x, y, p, q):
    a = (x - p[0]) ** 2 + (y - p[1]) ** 2
    b = (x - q[0]) ** 2 + (y - q[1]) ** 2
    c = ((p - q) ** 2).sum()
    cosine = (a + b - c) / (2 * np.sqrt(a * b))
    to_line = np.sqrt(a * b * np.nan_to_num(1 - cosine**2) / c)
    return np.where(cosine >= 0, np.sqrt(np.minimum(a, b)), to_line)


def border_map(size, polygons, ignored, ratio, low, high):
    values, mask = np.zeros(size, np.float32), np.zeros(size, np.float32)
    for polygon, tag in zip(polygons, ignored):
        if tag:
            continue
        distance = offset_distance(polygon, ratio)
        grown = np.array(offset(polygon, distance)[0], np.int32)
        cv2.fillPoly(mask, [grown], 1)
        (left, top), (right, bottom) = grown.min(0), grown.max(0)
        x0, y0 = max(left, 0), max(top, 0)
        x1, y1 = min(right + 1, size[1]), min(bottom + 1, size[0])
        if x0 >= x1 or y0 >= y1:
            continue
        x, y = np.arange(x0, x1)[None, :], np.arange(y0, y1)[:, None]
        edges = zip(polygon, np.roll(polygon, -1, 0))
        nearest = np.min([distance_to_edge(x, y, p, q) for p, q in edges], axis=0)
        part = values[y0:y1, x0:x1]
        np.maximum(part, 1 - np.clip(nearest / distance, 0, 1), out=part)
    return values * (high - low) + low, mask


def detection(path, label):
    """The training pipeline of MindOCR's db_r50_icdar15.yaml."""
    image = decode(path, rgb=True)
    polygons, ignored = parse(label)
    jitter = 32 / 255
    image = adjust_colour(image, random.uniform(1 - jitter, 1 + jitter), random.uniform(0.5, 1.5))
    if random.random() < 0.5:
        image, polygons = flip(image, polygons)
    image, polygons = rotate(image, polygons, random.randrange(-10, 10))
    image, polygons = scale(image, polygons, random.uniform(0.5, 3))
    legible = [p for p, tag in zip(polygons, ignored) if not tag]
    start, end = find_crop(image.shape[:2], legible, 10, 0.1)
    image, actual, polygons = crop(image, polygons, start, end, (640, 640))
    polygons, ignored = visible(polygons, ignored, actual)
    binary, mask = shrink_map(image.shape[:2], polygons, ignored, 8, 0.4)
    thresh, thresh_mask = border_map(image.shape[:2], polygons, ignored, 0.4, 0.3, 0.7)
    image = normalize_to_planes(image, IMAGENET_MEAN, IMAGENET_STD)
    return image, binary[None], mask, thresh, thresh_mask


CLASSES = {c: i for i, c in enumerate("0123456789abcdefghijklmnopqrstuvwxyz")}


def recognition(path, label):
    """The training pipeline of MindOCR's crnn_resnet34.yaml."""
    image = decode(path, rgb=False)
    text = [] if len(label) > 24 else [CLASSES[c] for c in label.lower() if c in CLASSES]
    text_seq = np.array(text + [36] * (24 - len(text)), np.int32)
    image = cv2.resize(image, (100, 32))[..., [2, 1, 0]]
    return normalize_to_planes(image, WORD_MEAN, WORD_STD), text_seq, np.int32(len(text))


BETWEEN_CLOCKS = 8  # excludes the cost of reading the clock


def main():
    kind, label_file, folder, seconds = sys.argv[1:5]
    cv2.setNumThreads(1)
    np.seterr(all="ignore")
    make = {"det": detection, "rec": recognition}[kind]
    samples = list(read_label_file(label_file, folder))
    make(*samples[0])  # one-time loading is not counted
    count, begin = 0, time.thread_time()
    while time.thread_time() - begin < float(seconds):
        for _ in range(BETWEEN_CLOCKS):
            make(*samples[count % len(samples)])
            count += 1
    print(f"{kind},python,{count / (time.thread_time() - begin):.1f}")


if __name__ == "__main__":
    main()
