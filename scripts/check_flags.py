#!/usr/bin/env python3
"""Check the compiler flags that the numerics contract rests on.

usage: check_flags.py COMPILE_COMMANDS_JSON [ROOT]

Every C++ source under ROOT that the build compiles has -ffp-contract=off as its last word on contraction and no flag that
lets the compiler reorder, approximate or assume away floating-point results. Instruction-set flags stand only in
src/lane/cpu and src/spatial/evaluate, where they are chosen at run time: all else runs on any x86-64. (-fno-trapping-math
is allowed: it gives up floating-point exceptions, which nothing looks at, and no value.)
"""
import json
import pathlib
import re
import shlex
import sys

INEXACT = {
    "-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-fassociative-math", "-freciprocal-math",
    "-ffinite-math-only", "-fno-signed-zeros", "-fcx-limited-range", "-fcx-fortran-rules",
    "-fsingle-precision-constant", "-fapprox-func", "-ffp-model=fast", "-fexcess-precision=fast", "-mrecip",
    "-mfpmath=387",
}
INSTRUCTION_SET = re.compile(r"-m(arch=.*|avx.*|fma4?|f16c|sse[3-4].*|ssse3|bmi2?|amx.*)$")
DISPATCHED = ("src/lane/cpu/", "src/spatial/evaluate/")


def arguments(entry):
    return entry["arguments"] if "arguments" in entry else shlex.split(entry["command"])


def check_entry(name, args):
    contraction = [a for a in args if a.startswith("-ffp-contract=")]
    if not contraction:
        yield f"{name}: compiled without -ffp-contract=off"
    elif contraction[-1] != "-ffp-contract=off":
        yield f"{name}: compiled with {contraction[-1]}, expected -ffp-contract=off"
    for arg in args:
        if arg in INEXACT or arg.startswith("-mrecip="):
            yield f"{name}: compiled with {arg}, which changes results"
        elif INSTRUCTION_SET.match(arg) and not name.startswith(DISPATCHED):
            yield f"{name}: compiled with {arg}; instruction-set flags belong to {' and '.join(DISPATCHED)}"


def check(commands, root):
    root, findings, checked = pathlib.Path(root).resolve(), [], 0
    for entry in commands:
        path = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
        if path.suffix not in (".cc", ".cpp", ".cxx") or root not in path.parents:
            continue
        checked += 1
        findings += check_entry(path.relative_to(root).as_posix(), arguments(entry))
    if not checked:
        findings.append(f"no C++ source under {root.name} is in the compilation database")
    return findings


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    root = sys.argv[2] if len(sys.argv) > 2 else pathlib.Path(__file__).resolve().parent.parent
    findings = check(json.loads(pathlib.Path(sys.argv[1]).read_text()), root)
    print("\n".join(findings) or "Every source is compiled with the flags of the numerics contract.")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
