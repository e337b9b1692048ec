#!/usr/bin/env python3
"""The documents are consistent: documents.py SOURCE. One line for each fault; exit code 1 if there is any.

* Every block has a label. "console" can be typed literally (tests/bare does) and begins with a command. "sh"
  are examples, without the prompt "$ ".
* Every link leads to an existing file and heading. Every page is reached from docs/index.md.
* Code ("cpp") is, word for word, part of a program of examples, which a script of RUNNERS runs.
* Names of our files and folders in the text exist: from the root or from include/, or any file of a plain name.
  A table below "Where the code is" may name them from the folder of its head, or of the name before.
* Places of our own calls in sample output ("reducer.cpp:275") exist: that line makes a call.
* Lines of text have at most 100 columns, rows of tables 220, and sentences at most 25 words, also in comments of
  public headers and examples. A row cannot be broken; a page of texts from the code has the code's rows.
* Pages named by sources exist. Every LOCKSTEP_ variable that sources read is in the reference, and no table
  there has a variable twice.
* Every ErrorCode has a row with its exit status in the reference, and every row is one.
* The page of exit codes has every verb, and the codes that the sources of STATUSES return.
* A file that begins with "#!" is executable: make and the pages run it by its name.
"""

import collections
import fnmatch
import glob
import os
import re
import signal
import subprocess
import sys

MOST_WORDS = 25
MOST_COLUMNS_OF_ROW = 220
FROM_CODE = ("docs/reference/settings.md",)
OUR_FOLDERS = ("lockstep/", "include/", "apps/", "bench/", "cmake/", "configs/", "docs/", "examples/", "fuzz/",
               "scripts/", "tests/", ".ci/")
OTHERS_HEADERS = ("torch/", "ATen/")
RUNNERS = ("examples.sh", "own_parts.sh", "own_text_parts.sh")

# Of a row of the page of exit codes, the source that returns its codes, as numbers or names of signals.
STATUSES = (
    (r"\| `lockstep train` \|", "lockstep/train/trainer_agreement.cpp", r"return (SIG\w+);"),
    (r"\| `lockstep env` \|", "apps/lockstep/verb_env.cpp", r"return .* \? 0 : (\d+);"),
    (r"\| `lockstep doctor` \|", "lockstep/launch/doctor/report.cpp", r"return .* \? (\d+) : 0;"),
    (r"\| `lockstep ranktable --check` \|", "lockstep/launch/cli/rank_table_command.cpp", r" status = ([1-9]\d*);"),
    (r"\| `lockstep` without a verb \|", "apps/lockstep/main.cpp", r"return (\d+);"),
    (r"\| 126, ", "lockstep/launch/process/program.cpp", r'return \{"", ([1-9]\d*),'),
)

os.chdir(sys.argv[1])
faults = []


def tracked(*patterns):
    """Files of the tree, also without a git repository."""
    found = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
                           capture_output=True, text=True).stdout.split("\n")
    found = [name for name in found if name and os.path.exists(name)]
    if found:
        return found
    walked = [os.path.join(folder, name)[2:] for folder, _, names in os.walk(".") for name in names]
    return [name for name in walked if not name.startswith("build/") and
            any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]


def read(name):
    with open(name, encoding="utf-8", errors="replace") as file:
        return file.read()


Block = collections.namedtuple("Block", "line label lines")


def parse(name):
    """Lines of text with their numbers, and blocks."""
    text, blocks, block = [], [], None
    for number, line in enumerate(read(name).split("\n"), 1):
        fence = re.match(r"\s*```(.*)$", line)
        if fence and block is None:
            block = Block(number, fence[1].strip(), [])
        elif fence:
            blocks.append(block)
            block = None
        elif block is not None:
            block.lines.append(line)
        else:
            text.append((number, line))
    if block is not None:
        faults.append(f"{name}:{block.line}: a block that does not end")
    return text, blocks


def anchors(name):
    """Headings in the form of a browser's address."""
    found = set()
    for _, line in parse(name)[0]:
        heading = re.match(r"#+ (.*)$", line)
        if heading:
            words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            found.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return found


def check_blocks(name, blocks):
    for block in blocks:
        if not block.label:
            faults.append(f"{name}:{block.line}: a block without a label: console, sh, text ...")
        if block.label == "console" and not (block.lines and block.lines[0].startswith("$ ")):
            faults.append(f'{name}:{block.line}: a block "console" begins with "$ " and a command')
        for number, line in enumerate(block.lines, block.line + 1):
            if block.label == "sh" and line.startswith("$ "):
                faults.append(f'{name}:{number}: a prompt in a block "sh": "console" or no prompt')


def check_links(name, text):
    """Returns the linked pages."""
    pages = set()
    for number, line in text:
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            there = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
            if not os.path.exists(there):
                faults.append(f"{name}:{number}: no file {there}")
            elif there.endswith(".md"):
                pages.add(there)
                if anchor and anchor not in anchors(there):
                    faults.append(f"{name}:{number}: {there} has no heading '{anchor}'")
    return pages


def without_indentation(lines):
    depth = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[depth:].rstrip() for line in lines]


def stands_in(lines, program):
    """Whether it contains the lines one after the other, at any indentation."""
    size = len(lines)
    return any(program[i].strip() == lines[0].strip() and without_indentation(program[i:i + size]) == lines
               for i in range(len(program) - size + 1))


def check_code(name, blocks, programs):
    for block in blocks:
        if block.label == "cpp" and not any(
                stands_in(without_indentation(block.lines), program) for program in programs.values()):
            faults.append(f"{name}:{block.line}: this code stands in no program of examples/")


def check_places(name, blocks, sources):
    for block in blocks:
        for number, line in enumerate(block.lines, block.line + 1):
            for file, place in re.findall(r"\b(\w+\.cpp):(\d+)\b", line):
                code = sources.get(file, [])
                if code and not re.search(r"CallSite::here|group\.\w+\(", "".join(code[int(place) - 1:int(place)])):
                    faults.append(f"{name}:{number}: {file}:{place} makes no call of a group")


def is_there(path):
    """A file, a folder, a pattern, or a source or header without its ending."""
    return any(glob.glob(path + ending) for ending in ("", ".h", ".cpp"))


def check_code_tables(name, text):
    """Returns the text without the names that it has checked."""
    rest, below, base = [], False, ""
    for number, line in text:
        if line.startswith("#"):
            below, base = line == "## Where the code is", ""
        head = re.match(r"\| in `([^`]+)` \|", line)
        if below and head:
            base = head[1] + "/"
        elif below and line.startswith("|"):
            cell, _, line = line[1:].partition("|")
            folder = base
            for path in re.findall(r"`([^`]+)`", cell):
                if is_there(base + path):
                    folder = os.path.dirname((base + path).rstrip("/")) + "/"
                elif not is_there(folder + path):
                    faults.append(f"{name}:{number}: no {base}{path}")
        rest.append((number, line))
    return rest


def check_paths(name, text, plain_names):
    joined = "\n".join(line for _, line in check_code_tables(name, text))
    for span in re.finditer(r"`([^`]+)`", joined):
        for word in span[1].split():
            path = word.strip(",;:()'\"")
            is_file = re.fullmatch(r"[\w./*-]+\.(h|cpp|sh)", path) and "/" in path
            is_ours = path.startswith(OUR_FOLDERS) and re.fullmatch(r"[\w./*-]+", path)
            is_plain = re.fullmatch(r"\w+\.(h|cpp|sh)", path)
            good = not (is_file or is_ours) or is_there(path) or is_there("include/" + path)
            if not good and not path.startswith(OTHERS_HEADERS) or is_plain and path not in plain_names:
                number = text[joined.count("\n", 0, span.start())][0]
                faults.append(f"{name}:{number}: no file {path}")


def check_width(name, text):
    for number, line in text:
        if line.startswith("|") and len(line) > MOST_COLUMNS_OF_ROW and name not in FROM_CODE:
            faults.append(f"{name}:{number}: a row of {len(line)} columns, {MOST_COLUMNS_OF_ROW} are allowed: "
                          "say more below the table")
        elif len(line) > 100 and " " in line.strip() and not line.startswith(("|", "![")):
            faults.append(f"{name}:{number}: {len(line)} columns, 100 are allowed")


def paragraphs(text):
    """Paragraphs and items of lists, each as its numbered lines. Without tables, headings and pictures."""
    found, last = [], -1
    for number, line in text:
        item = re.match(r"\s*([*-]|\d+\.)\s", line)
        if not line.strip() or re.match(r"#|\s*\||!\[|<!--", line):
            continue
        if item or number != last + 1:
            found.append([])
        found[-1].append((number, line[item.end():] if item else line))
        last = number
    return found


def sentences(paragraph):
    """The words of each, and the number of its first line. A link counts as its text, code as its words."""
    joined = " ".join(f"\0{number} {line}" for number, line in paragraph)
    words, number, first = [], 0, 0
    for token in re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", joined).split():
        if token.startswith("\0"):
            number = int(token[1:])
            continue
        if re.search(r"\w", token):
            first = first if words else number
            words.append(token)
        if re.search(r"[.!?][)\"'`*_]*$", token) and not token.endswith("..."):
            yield first, words
            words = []
    yield first, words


def check_sentences(name, text):
    for paragraph in paragraphs(text):
        for number, words in sentences(paragraph):
            if len(words) > MOST_WORDS:
                faults.append(f"{name}:{number}: a sentence of {len(words)} words, {MOST_WORDS} are allowed: "
                              f"{' '.join(words[:6])} ...")


def comments(source):
    """The numbered lines of its comments. Code in them is indented."""
    for number, line in enumerate(source.split("\n"), 1):
        behind = re.search(r"(?:^\s*///(?!<)|^\s*//(?!/)|///<) ?(?!\s)(.*)$", line)
        if behind:
            yield number, behind.group(1)


def check_errors():
    """The rows of the reference are the enumeration's values, each with its exit status."""
    enum = re.search(r"enum class ErrorCode \{(.*?)\};", read("include/lockstep/error.h"), re.DOTALL)[1]
    faults_of_input = re.search(r"int exit_status\(.*?\n\}", read("lockstep/base/error.cpp"), re.DOTALL)[0]
    wanted = {code: "2" if f"ErrorCode::{code}:" in faults_of_input else "1"
              for code in re.findall(r"^ *(k\w+),", enum, re.MULTILINE)}
    page = "docs/reference/errors.md"
    rows = dict(re.findall(r"^\| `(k\w+)` \|.*\| (\d+) \|$", read(page), re.MULTILINE))
    for code in sorted(wanted.keys() | rows.keys()):
        if wanted.get(code) != rows.get(code):
            faults.append(f"{page}: {code} has status {rows.get(code)}, in the code {wanted.get(code)}")


def check_exit_codes():
    page = "docs/reference/exit_codes.md"
    rows = [line for line in read(page).split("\n") if line.startswith("| ")]
    for verb in re.findall(r'Command\{"(\w+)"', read("apps/lockstep/verbs.cpp")):
        if not any(re.search(rf"`(lockstep )?{verb}\b", row) for row in rows):
            faults.append(f"{page}: no row has the verb {verb}")
    for start, source, pattern in STATUSES:
        found = re.findall(pattern, read(source))
        wanted = {128 + signal.Signals[code] if code.startswith("SIG") else int(code) for code in found}
        shown = {int(code) for row in rows if re.match(start, row) for code in re.findall(r"\b\d+\b", row)}
        if shown != wanted or not wanted:
            faults.append(f"{page}: the row {start} has {sorted(shown)}, {source} returns {sorted(wanted)}")


def check_console(pages):
    """Requires a minimum of tested blocks per page: a block with another label is not tested."""
    least = {"README.md": 3, "docs/quick_start.md": 3, "docs/guide/launchers.md": 3, "docs/guide/debugging.md": 1,
             "docs/guide/from_ascend.md": 1, "docs/guide/mixed_precision.md": 1, "docs/guide/ocr.md": 1,
             "docs/guide/checkpoints.md": 1, "docs/guide/own_trainer.md": 1}
    for name, wanted in least.items():
        found = sum(block.label == "console" for block in pages[name][1]) if name in pages else 0
        if found < wanted:
            faults.append(f'{name} has {found} blocks "console", at least {wanted} are expected')


def check_sources():
    variables = read("docs/reference/environment.md")
    named = set()
    for name in tracked("*.h", "*.cpp", "*.sh", "*.py", "*.cmake", "*CMakeLists.txt", "Makefile"):
        content = read(name)
        for page in re.findall(r"\bdocs/[\w/-]+\.md\b", content):
            if not os.path.exists(page):
                faults.append(f"{name}: no file {page}")
        if name.endswith((".h", ".cpp")) and not name.startswith(("tests/", "bench/", "examples/", "fuzz/")):
            named |= set(re.findall(r'"(LOCKSTEP_[A-Z_]+)"', content))
    for variable in sorted(named):
        if f"`{variable}" not in variables:
            faults.append(f"docs/reference/environment.md does not have {variable}")
    for section in variables.split("\n## "):
        rows = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
        listed = collections.Counter(re.findall(r"`(\w+)", " ".join(rows)))
        for variable in sorted(name for name, times in listed.items() if times > 1):
            faults.append(f"docs/reference/environment.md: {variable} stands twice in one table")


def check_executables():
    for name in tracked("*"):
        with open(name, "rb") as file:
            if file.read(2) == b"#!" and not os.access(name, os.X_OK):
                faults.append(f"{name}: begins with #! and is not executable")


def main():
    names = ["README.md", "CONTRIBUTING.md"] + sorted(tracked("docs/*.md", "docs/**/*.md"))
    pages = {name: parse(name) for name in dict.fromkeys(names)}
    programs = {name: read(name).split("\n") for name in tracked("examples/*.cpp", "examples/**/*.cpp")}
    run = "".join(read(f"tests/system/{name}") for name in RUNNERS)
    for name in programs:
        if name.count("/") == 1 and not re.search(rf"\b{os.path.basename(name)[:-4]}\b", run):
            faults.append(f"{name}: none of {', '.join(RUNNERS)} in tests/system runs it")
    sources = {os.path.basename(name): read(name).split("\n")
               for name in tracked("lockstep/**/*.cpp", "tests/comm/group_holder.cpp")}
    plain_names = {os.path.basename(name) for name in tracked("*.h", "*.cpp", "*.sh")}
    links = {}
    for name, (text, blocks) in pages.items():
        check_blocks(name, blocks)
        links[name] = check_links(name, text)
        check_code(name, blocks, programs)
        check_places(name, blocks, sources)
        check_paths(name, text, plain_names)
        check_sentences(name, text)
        check_width(name, text)
    reached, new = set(), {"docs/index.md"}
    while new:
        reached |= new
        new = set().union(*(links.get(name, set()) for name in new)) - reached
    for name in pages:
        if name.startswith("docs/") and name not in reached:
            faults.append(f"{name}: no link leads there from docs/index.md")
    for name in tracked("include/*.h", "examples/*.cpp"):
        check_sentences(name, list(comments(read(name))))
    check_console(pages)
    check_sources()
    check_errors()
    check_exit_codes()
    check_executables()
    for fault in faults:
        print(fault)
    return 1 if faults else 0


sys.exit(main())
