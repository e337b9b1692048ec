#!/usr/bin/env python3
"""What a public header declares is lockstep::X, all else is lockstep::internal::X.

usage: internal_names.py SOURCE    one line for each fault; exit code 1 if there is any

A namespace of a module's own (lockstep::shm) may be anywhere. The public headers are those of
include/lockstep. Each kind of header may forward declare types of the other kind, in their namespace.
"""

import pathlib
import re
import sys

SOURCE = pathlib.Path(sys.argv[1])
PUBLIC = "include/lockstep"
FOLDERS = (PUBLIC, "lockstep", "apps", "tests", "bench", "fuzz", "examples")
INTERNAL = "lockstep::inline internal"
# In the order of the text, so that no comment begins within a string.
NO_CODE = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*.*?\*/|^#[^\n]*', re.S | re.M)
OPENING = re.compile(r"^(?:inline )?namespace ([\w:]+(?: \w+)*) \{", re.M)
FORWARD = re.compile(r"^(?:class|struct|enum class|enum) (\w+)(?: : \w+)?;", re.M)
DEFINITION = re.compile(r"^(?:class|struct|enum class|enum|union) (?:[A-Z_]+ )?(\w+)[^;{}()]*\{|^TORCH_MODULE\((\w+)\)", re.M)


def code_of(path):
    """The text, with as many lines, without comments, strings and the preprocessor's lines."""
    return NO_CODE.sub(lambda found: "\n" * found[0].count("\n"), path.read_text(encoding="utf-8"))


def blocks(code):
    """(name, line, body) of each namespace that is not within another one."""
    for opening in OPENING.finditer(code):
        depth, end = 1, opening.end()
        while depth and end < len(code):
            depth += {"{": 1, "}": -1}.get(code[end], 0)
            end += 1
        yield opening[1], code[:opening.end()].count("\n") + 1, code[opening.end():end - 1]


def headers():
    for folder in FOLDERS:
        for path in sorted((SOURCE / folder).rglob("*.h")):
            yield path, str(path.relative_to(SOURCE)), folder == PUBLIC


def faults_of(name, public, block, public_types):
    """Where and what a block must not have."""
    space, line, body = block
    where = "%s:%d" % (name, line)
    if space not in ("lockstep", INTERNAL):
        if "internal" in space.split("::")[1:2] or " " in space:
            yield "%s: namespace %s: write namespace %s" % (where, space, INTERNAL)
        return
    own = public == (space == "lockstep")  # this kind of header defines names there
    rest = FORWARD.sub("", body).split()
    if rest and not own:
        yield "%s: in namespace %s %s header may have forward declarations only, not '%s ...'" % (
            where, space, "a public" if public else "an internal", " ".join(rest[:4]))
        return
    for each in FORWARD.findall(body):
        if (each in public_types) != (space == "lockstep"):
            yield "%s: type '%s' is %s, so its namespace is %s" % (
                (where, each) + (("public", "lockstep") if each in public_types else ("internal", INTERNAL)))


def main():
    found = [(name, public, list(blocks(code_of(path)))) for path, name, public in headers()]
    public_types = {a or b for _, public, its in found if public for space, _, body in its if space == "lockstep"
                    for a, b in DEFINITION.findall(body)}
    faults = [fault for name, public, its in found for block in its
              for fault in faults_of(name, public, block, public_types)]
    print("\n".join(faults + ["internal_names: %d headers, %d public types, %d faults" %
                              (len(found), len(public_types), len(faults))]))
    return 1 if faults or len(public_types) < 50 or len(found) < 300 else 0


sys.exit(main())
