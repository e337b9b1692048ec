#!/usr/bin/python3
"""The layers of Lockstep by their CMake targets: draws docs/images/layers.svg, and checks #include lines.

usage: scripts/layers.py draw [FILE]    writes the picture (default docs/images/layers.svg)
       scripts/layers.py check [ROOT]   every #include of a layer must name its own header, or one of
                                        a layer that it links in CMake; and folders must include each
                                        other in one direction. Exit status 1 if one does not

Both configure a build of all parts in a temporary folder, and compile nothing. CMake's graph
(cmake --graphviz) has the links between layers, its file API the sources of each target.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PARTS = ("TORCH", "LAUNCHER", "DOCTOR", "DATA", "RECIPES")
GRAPH_OPTIONS = """set(GRAPHVIZ_EXTERNAL_LIBS FALSE)
set(GRAPHVIZ_EXECUTABLES FALSE)
set(GRAPHVIZ_GENERATE_PER_TARGET FALSE)
set(GRAPHVIZ_GENERATE_DEPENDERS FALSE)
set(GRAPHVIZ_INTERFACE_LIBS TRUE)
"""


class Layer:
    def __init__(self, name):
        self.name = name
        self.public = set()  # names of layers that users of this one link too
        self.private = set()
        self.files = []  # relative to the root: sources, and headers that are linked for it
        self.folder = ""
        self.torch = False  # it links libtorch, directly or through another


def configure(root, build):
    """Configures all parts into `build`, with the graph and the lists of sources."""
    os.makedirs(os.path.join(build, ".cmake/api/v1/query"))
    open(os.path.join(build, ".cmake/api/v1/query/codemodel-v2"), "w").close()
    with open(os.path.join(build, "CMakeGraphVizOptions.cmake"), "w") as file:
        file.write(GRAPH_OPTIONS)
    command = ["cmake", "-S", root, "-B", build, "-G", "Ninja", "-DLOCKSTEP_TESTS=OFF",
               "-DLOCKSTEP_BENCH=OFF", "-DLOCKSTEP_EXAMPLES=OFF",
               "--graphviz=" + os.path.join(build, "graph.dot")]
    command += ["-DLOCKSTEP_WITH_%s=ON" % part for part in PARTS]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit("layers: error: cmake could not configure all parts:\n" + done.stdout[-2000:])


def read_graph(path):
    """Layers and their links, from CMake's graph. Only targets lockstep::NAME are layers."""
    text = open(path).read()
    names = {node: name for node, name in
             re.findall(r'"(node\d+)" \[ label = "[^"\\]*\\n\(lockstep::(\w+)\)"', text)}
    layers = {name: Layer(name) for name in names.values()}
    for user, used, style in re.findall(r'"(node\d+)" -> "(node\d+)"(?: \[ style = (\w+) \])?', text):
        if user in names and used in names:
            edges = layers[names[user]].private if style == "dotted" else layers[names[user]].public
            edges.add(names[used])
    return layers


def read_sources(build, layers):
    reply = os.path.join(build, ".cmake/api/v1/reply")
    for entry in sorted(os.listdir(reply)):
        if not entry.startswith("target-lockstep_"):
            continue
        target = json.load(open(os.path.join(reply, entry)))
        layer = layers.get(target["name"][len("lockstep_"):])
        if layer is None:
            continue
        layer.folder = target["paths"]["source"]
        layer.files = [source["path"] for source in target.get("sources", [])
                       if source["path"].startswith(("lockstep/", "include/"))]


def read_headers(root, build, layers):
    """Headers that cmake/LockstepHeaders.cmake has linked for a layer."""
    for layer in layers.values():
        top = os.path.join(build, "lockstep_headers", layer.name)
        layer.files += [os.path.relpath(os.path.realpath(os.path.join(top, path)), os.path.realpath(root))
                        for path in files_below(top, "")]


def read_layers(root):
    with tempfile.TemporaryDirectory(prefix="lockstep-layers-") as work:
        build = os.path.join(work, "build")
        configure(root, build)
        layers = read_graph(os.path.join(build, "graph.dot"))
        read_sources(build, layers)
        read_headers(root, build, layers)
    for name, layer in layers.items():
        layer.torch = "torch" in linked_by(layers, name)
    for other_projects in ("torch", "opencv"):
        layers.pop(other_projects, None)
    for layer in layers.values():
        layer.public &= set(layers)
        layer.private &= set(layers)
    return layers


def linked_by(layers, name, with_private=True):
    """Layers whose headers a source of `name` may include; a header, without private ones: users of
    its layer do not link those."""
    private = layers[name].private if with_private else set()
    seen, waiting = set(), list(layers[name].public | private)
    while waiting:
        other = waiting.pop()
        if other not in seen:
            seen.add(other)
            waiting += layers[other].public
    return seen


def files_below(root, top):
    for folder, _, names in os.walk(os.path.join(root, top)):
        for name in sorted(names):
            if name.endswith((".h", ".cpp")):
                yield os.path.relpath(os.path.join(folder, name), root)


def owners(root, layers):
    """The layer of each file. A source that no list names, such as one of a part that is not built
    here, belongs to the only layer of its folder."""
    owner, faults = {}, []
    by_folder = {}
    for layer in layers.values():
        by_folder.setdefault(layer.folder, []).append(layer.name)
        owner.update((path, layer.name) for path in layer.files)
    for path in list(files_below(root, "lockstep")) + list(files_below(root, "include/lockstep")):
        folder = os.path.dirname(path)
        while path not in owner and folder not in by_folder and folder:
            folder = os.path.dirname(folder)
        if path not in owner and path.endswith(".cpp") and len(by_folder.get(folder, ())) == 1:
            owner[path] = by_folder[folder][0]
        elif path not in owner:
            faults.append("%s: no layer has this file; name it in one's CMakeLists.txt" % path)
    return owner, faults


def included(root, path):
    """Headers of Lockstep with their lines. A header in quotes always is one, whatever its path."""
    for number, line in enumerate(open(os.path.join(root, path), errors="replace"), 1):
        match = re.match(r'\s*#\s*include\s*(?:"([^"]+)"|<(lockstep/[^>]+)>)', line)
        if match:
            yield number, match.group(1) or match.group(2)


def check(root):
    layers = read_layers(root)
    owner, faults = owners(root, layers)
    allowed = {name: linked_by(layers, name) | {name} for name in layers}
    allowed_in_headers = {name: linked_by(layers, name, with_private=False) | {name} for name in layers}
    inside = {}  # includes between folders, each with its first place
    for path, name in sorted(owner.items()):
        for number, header in included(root, path):
            place = header if header in owner else os.path.join("include", header)
            other = owner.get(place)
            if other is None:
                faults.append("%s:%d: includes %s, which no layer has" % (path, number, header))
            elif other not in (allowed_in_headers if path.endswith(".h") else allowed)[name]:
                faults.append("%s:%d: includes %s of layer '%s', which '%s' does not link"
                              % (path, number, header, other, name))
            elif not place.startswith("include/"):
                here, there = os.path.dirname(path), os.path.dirname(place)
                if here != there:
                    inside.setdefault(here, {}).setdefault(there, "%s:%d" % (path, number))
    faults += circles(inside)
    for fault in faults:
        print(fault)
    print("layers: %d layers, %d files, %d faults" % (len(layers), len(owner), len(faults)))
    return 1 if faults else 0


def circles(edges):
    """A line for each edge between folders that is part of a cycle."""
    faults = []
    for here in sorted(edges):
        for there in sorted(edges[here]):
            seen, waiting = set(), [there]
            while waiting:
                folder = waiting.pop()
                if folder not in seen:
                    seen.add(folder)
                    waiting += edges.get(folder, {})
            if here in seen:
                faults.append("%s: %s includes %s, which includes it in turn"
                              % (edges[here][there], here, there))
    return faults


# ---- The picture: a row for each distance from base. Lines leave out links that another linked
# layer already has.

BOX, GAP, ROW, HEIGHT, LEFT = 112, 16, 74, 34, 20


def rows_of(layers):
    depth = {}

    def depth_of(name):
        if name not in depth:
            below = layers[name].public | layers[name].private
            depth[name] = 1 + max((depth_of(other) for other in below), default=-1)
        return depth[name]

    for name in sorted(layers):
        depth_of(name)
    rows = [[] for _ in range(max(depth.values()) + 1)]
    for name in sorted(depth):
        rows[depth[name]].append(name)
    return rows


def direct(layers, name):
    below = layers[name].public | layers[name].private
    further = set()
    for other in below:
        waiting = list(layers[other].public | layers[other].private)
        while waiting:
            each = waiting.pop()
            if each not in further:
                further.add(each)
                waiting += layers[each].public | layers[each].private
    return sorted(below - further)


def bands_of(layers):
    """The column of each layer: 0 recipes, 1 core, 2 launcher."""
    core = linked_by(layers, "core") | {"core"}
    return {name: 1 if name in core else 2 if layer.folder.startswith("lockstep/launch") else 0
            for name, layer in layers.items()}


def ordered(layers, rows):
    """Places of boxes, each near the layers it links, and the left edges of the three bands."""
    band = bands_of(layers)
    most = [max(sum(band[name] == i for name in row) for row in rows) for i in range(3)]
    edges = [LEFT + sum(most[:i]) * (BOX + GAP) + i * GAP for i in range(4)]
    x = {}
    for row in rows:
        for i in range(3):
            middle = (edges[i] + edges[i + 1] - GAP) / 2

            def wish(name):
                below = [x[other] for other in direct(layers, name) if band[other] == i]
                return (sum(below) / len(below) if below else middle, name)

            names = sorted((name for name in row if band[name] == i), key=wish)
            step = (edges[i + 1] - GAP - edges[i]) / max(1, len(names))
            for j, name in enumerate(names):
                x[name] = round(edges[i] + step * (j + 0.5))
    return x, edges


def picture(root):
    layers = read_layers(root)
    rows = rows_of(layers)
    x, edges = ordered(layers, rows)
    total = edges[3] + LEFT - GAP
    height = len(rows) * ROW + 50
    y = {name: height - 60 - i * ROW for i, row in enumerate(rows) for name in row}
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" '
           'font-family="Helvetica, Arial, sans-serif" font-size="12">' % (total, height, total, height),
           '<!-- drawn by scripts/layers.py from the graph of cmake - -graphviz -->',
           '<rect width="%d" height="%d" fill="#ffffff"/>' % (total, height)]
    for i, title in enumerate(("recipes", "core", "launcher")):
        out.append('<rect x="%d" y="24" width="%d" height="%d" rx="8" fill="#f7f7f7"/>'
                   '<text x="%d" y="18" font-weight="bold">%s</text>'
                   % (edges[i] - 4, edges[i + 1] - edges[i] - GAP + 8, height - 52, edges[i], title))
    for name in sorted(layers):
        for other in direct(layers, name):
            out.append('<path d="M%d %d C%d %d %d %d %d %d" fill="none" stroke="#999"/>'
                       % (x[name], y[name] + HEIGHT, x[name], y[name] + HEIGHT + 24,
                          x[other], y[other] - 24, x[other], y[other]))
    for name in sorted(layers):
        fill, line = ("#fdf3e7", "#c07a2c") if layers[name].torch else ("#eef3fb", "#4a6fa5")
        out.append('<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="%s" stroke="%s"/>'
                   '<text x="%d" y="%d" text-anchor="middle">%s</text>'
                   % (x[name] - BOX // 2, y[name], BOX, HEIGHT, fill, line, x[name],
                      y[name] + HEIGHT // 2 + 4, name))
    out.append('<text x="%d" y="%d" fill="#444">A layer includes headers of those below it to which '
               'lines lead. Blue: without libtorch. Orange: with libtorch.</text>' % (LEFT, height - 8))
    out.append("</svg>")
    return "\n".join(out) + "\n"


def main(words):
    verb = words[0] if words else ""
    if verb == "draw" and len(words) <= 2:
        path = words[1] if len(words) == 2 else os.path.join(ROOT, "docs/images/layers.svg")
        text = picture(ROOT)
        with open(path, "w") as file:
            file.write(text)
        return 0
    if verb == "check" and len(words) <= 2:
        return check(os.path.abspath(words[1]) if len(words) == 2 else ROOT)
    print(__doc__.strip(), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
