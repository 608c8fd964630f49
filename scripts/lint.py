#!/usr/bin/env python3
"""Run clang-tidy on every source of the build; any warning is an error.

usage: lint.py BUILD [JOBS]

A source that was clean is not read again until it, a header of ours that it includes, its compile command or .clang-tidy
changes: BUILD/lint keeps one empty file for each clean state.
"""
import concurrent.futures
import hashlib
import json
import pathlib
import re
import shlex
import subprocess
import sys

CLANG_TIDY = "clang-tidy-16"
ROOT = pathlib.Path(__file__).resolve().parent.parent


def files_of(command, source):
    """The source and the headers of ours that it includes, by the compiler's own account."""
    arguments = shlex.split(command)
    for flag in ("-o", "-c"):
        if flag in arguments:
            at = arguments.index(flag)
            del arguments[at:at + 2]
    if "ccache" in arguments[0]:
        arguments = arguments[1:]
    listing = subprocess.run([*arguments, "-MM", str(source)], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    paths = [pathlib.Path(word) for word in listing.replace("\\\n", " ").split()[1:]]
    return sorted({path.resolve() for path in paths if ROOT in path.resolve().parents})


def database_of(build):
    """The compile commands of the build, without GCC's compiled headers and parameters, which clang-tidy cannot read:
    sources include what they need themselves. Written to BUILD/lint too, for clang-tidy."""
    entries = json.loads((build / "compile_commands.json").read_text())
    entries = [entry for entry in entries if "cmake_pch" not in entry["file"]]
    for entry in entries:
        entry["command"] = re.sub(r"-include \S*/cmake_pch\.hxx |--param=\S+ ", "", entry["command"])
    (build / "lint" / "compile_commands.json").write_text(json.dumps(entries, indent=1))
    return entries


def state_of(command, source):
    digest = hashlib.sha256(command.encode())
    for path in [ROOT / ".clang-tidy", *files_of(command, source)]:
        digest.update(str(path).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def lint(build, command, source):
    """The findings of one source as text, empty when it is clean."""
    try:
        stamp = build / "lint" / state_of(command, source)
    except subprocess.CalledProcessError as error:
        return error.stderr
    if stamp.exists():
        return ""
    result = subprocess.run([CLANG_TIDY, "-p", str(build / "lint"), "--quiet", str(source)], capture_output=True, text=True,
                            check=False)
    if result.returncode == 0:
        stamp.touch()
        return ""
    noise = re.compile(r"^\d+ warnings?( and \d+ errors?)? generated\.$|^Error while processing ")
    lines = (result.stdout + result.stderr).splitlines()
    return "\n".join(line for line in lines if not noise.match(line))


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    build = pathlib.Path(sys.argv[1]).resolve()
    jobs = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    (build / "lint").mkdir(exist_ok=True)
    work, failed = {}, 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for entry in database_of(build):
            source = pathlib.Path(entry["file"])
            if ROOT in source.parents:
                work[pool.submit(lint, build, entry["command"], source)] = source
        for done in concurrent.futures.as_completed(work):
            if done.result():
                failed += 1
                print(f"{work[done].relative_to(ROOT)}:\n{done.result()}\n", flush=True)
    print(f"clang-tidy: {len(work)} sources, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
