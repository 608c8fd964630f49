#!/usr/bin/env python3
"""Check that what is defined in an anonymous namespace has a name of its own in its folder: sources of a folder are compiled
several at a time, so two functions of one name would be overloads of each other, and a call could change its meaning.

usage: check_names.py [ROOT]
"""
import collections
import pathlib
import re
import sys

# Sources that make one program or library, by the ends of their names; benchmarks, fuzz targets and programs stand alone, and
# sources with flags of their own are compiled alone.
PROGRAMS = ("_golden_test", "_slow_test", "_test")
ALONE = re.compile(r"_(?:bench|fuzz|main|avx2|avx512|scalar|emulated_test)$")
JOINED_FOLDERS = {"lane/cpu/reference": "lane/cpu", "lane/cpu/testing": "lane/cpu_test"}  # as their CMakeLists.txt say
FUNCTION = re.compile(r"^(?!(?:using|return|namespace|class|struct|enum|template|static_assert|else|if)\b|[A-Z][A-Z_]+\()"
                      r"[A-Za-z_][\w:<>,&*\[\] ]*?[ &*](\w+)\(")
TYPE = re.compile(r"^(?:class|struct|enum class) (\w+)(?= \{| :|<|$)")
CONSTANT = re.compile(r"^(?:constexpr|const)\b[^=({]*\b(k[A-Z]\w*)\b\s*(?:\[[^\]]*\])*\s*[={;]")


def program_of(path):
    """What the source is compiled into, or None when it is compiled alone; path is relative to src."""
    if ALONE.search(path.stem):
        return None
    folder = path.parent.as_posix()
    kind = next((kind for kind in PROGRAMS if path.stem.endswith(kind)), "")
    return JOINED_FOLDERS.get(folder, folder) + kind


def names_of(text):
    """Names that are defined in an anonymous namespace at the outer level, with their lines."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if line == "namespace {":
            inside = True
        elif line == "}  // namespace":
            inside = False
        elif inside:
            match = FUNCTION.match(line) or TYPE.match(line) or CONSTANT.match(line)
            if match:
                yield match[1], number


def check(root):
    src = root / "src"
    places = collections.defaultdict(dict)
    for path in sorted(src.rglob("*.cc")):
        program = program_of(path.relative_to(src))
        if program is None:
            continue
        for name, number in names_of(path.read_text()):
            places[program, name].setdefault(path, number)
    findings = []
    for (_, name), found in places.items():
        (first, _), *others = found.items()
        for path, number in others:
            findings.append(f"{path.relative_to(root)}:{number}: {name} is also in {first.relative_to(root)}, which may be "
                            "compiled together with it; name one after what it is for, or share it in a header")
    return sorted(findings)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    findings = check(root)
    print("\n".join(findings) or "names: every name of an anonymous namespace is its folder's only one")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
