#!/usr/bin/env python3
"""Check that the include graph of src/ follows the layering of docs/architecture.md.

usage: check_layering.py [ROOT]

Prints one finding a line (file:line: what is wrong) and fails when there is one. Checked: which component includes which,
that quoted includes are written from src/ and exist, that headers have #pragma once and no include cycle, and that the
DEPENDS of each tw_component() name only components it may include.
"""
import pathlib
import re
import sys

# component -> the components it may include, beside itself and its own subfolders.
ALLOWED = {
    "base": "",
    "gguf": "base",
    "text": "base gguf",
    "graph": "base gguf",
    "model": "base gguf graph",
    "lane": "base gguf graph",
    "fuse": "base gguf graph lane",
    "plan": "base gguf graph lane fuse",
    "lane/cpu": "base gguf graph lane fuse plan",
    "lane/cuda": "base gguf graph lane fuse plan",
    "spatial": "base gguf graph",
    "spatial/step": "base gguf graph model spatial",
    "runtime": "base gguf text graph model lane fuse plan lane/cpu lane/cuda",
    "serve": "base gguf text graph model lane fuse plan lane/cpu lane/cuda runtime",
    "cli": "base gguf text graph model lane fuse plan lane/cpu lane/cuda spatial spatial/step runtime serve",
}
ALLOWED = {component: set(below.split()) for component, below in ALLOWED.items()}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]*)"|<([^>]*)>)')
COMPONENT_CALL = re.compile(r"tw_component\(\s*(\S+?)(?:\s+([^)]*))?\)")


def component_of(path):
    """The component of a path relative to src/: the longest folder prefix in the table, or None."""
    folders = path.split("/")[:-1]
    for length in range(len(folders), 0, -1):
        prefix = "/".join(folders[:length])
        if prefix in ALLOWED:
            return prefix
    return None


def includes(text):
    """(line, quoted path or None, angled path or None) of each include."""
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def check_sources(src):
    findings, edges = [], {}
    files = sorted(p for p in src.rglob("*") if p.suffix in (".h", ".cc", ".cu", ".cuh", ".inc"))
    names = {p.relative_to(src).as_posix() for p in files}
    for file in files:
        name = file.relative_to(src).as_posix()
        where = f"src/{name}"
        text = file.read_text(encoding="utf-8")
        if file.suffix in (".h", ".cuh") and "#pragma once" not in text.splitlines():
            findings.append(f"{where}:1: the header has no #pragma once")
        own = component_of(name)
        if own is None:
            findings.append(f"{where}:1: its folder is no component of the layering")
            continue
        for line, quoted, angled in includes(text):
            if angled in names:
                findings.append(f'{where}:{line}: a header of ours is included with <>: write "{angled}"')
            if quoted is None:
                continue
            if quoted not in names:
                findings.append(f'{where}:{line}: "{quoted}" is no file of src/; includes are written from src/')
                continue
            edges.setdefault(name, []).append((line, quoted))
            other = component_of(quoted)
            if other is not None and other != own and other not in ALLOWED[own]:
                findings.append(f"{where}:{line}: {own} may not include {other} ({quoted})")
    return findings + cycles(edges)


def cycles(edges):
    """One finding for each include that closes a cycle."""
    findings, state = [], {}

    def visit(name):
        state[name] = "open"
        for line, included in edges.get(name, []):
            if state.get(included) == "open":
                findings.append(f"src/{name}:{line}: including {included} closes a cycle of includes")
            elif included not in state:
                visit(included)
        state[name] = "done"

    for name in sorted(edges):
        if name not in state:
            visit(name)
    return findings


def check_depends(src):
    findings = []
    for file in sorted(src.rglob("CMakeLists.txt")):
        where = f"src/{file.relative_to(src).as_posix()}:1"
        for name, rest in COMPONENT_CALL.findall(file.read_text(encoding="utf-8")):
            own = component_of(name + "/")
            if own is None:
                findings.append(f"{where}: tw_component({name}) is no component of the layering")
                continue
            for target in re.findall(r"\btw_(\w+)", rest):
                other = component_of(target.replace("_", "/") + "/")
                if other is not None and other != own and other not in ALLOWED[own]:
                    findings.append(f"{where}: {name} may not depend on {other}")
    return findings


def check(root):
    src = pathlib.Path(root) / "src"
    return check_sources(src) + check_depends(src)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    findings = check(root)
    print("\n".join(findings) or "The include graph follows the layering.")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
