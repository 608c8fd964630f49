#!/usr/bin/env python3
"""Check the files of the repository: no machine paths, no marks of unfinished work, files that end in a newline, sources of
at most 800 lines, and the style of .clang-format (when clang-format 14 is installed).

usage: check_repo.py [ROOT]
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

MAX_LINES = 800
CLANG_FORMAT_VERSION = "14."  # other versions lay out the same style differently
SKIPPED_FOLDERS = {".git", ".cache", "build", "__pycache__"}
# Brackets keep the patterns from finding themselves.
MACHINE_PATH = re.compile(r"(?<![\w.$}~])/(?:home|root|Users|work|farm|mnt|srv)/[\w.]")
UNFINISHED = re.compile(r"\b(?:TO[D]O|FIX[M]E|XX[X]|HAC[K])\b|(?i:not impl[e]mented|unimpl[e]mented)")
UNFINISHED_EXEMPT = ("LICENSE", "models/", "tests/golden/")  # prose and data of other makers
NOT_TEXT = ("tests/fuzz/",)  # seeds for fuzzing: any bytes
NOT_TEXT_SUFFIXES = (".gguf", ".f32")


def tracked_files(root):
    """Files that are or would be committed; without git, every file outside the build folders."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, capture_output=True, check=False) if shutil.which("git") else None
    if listing and listing.returncode == 0 and listing.stdout:
        names = sorted(set(os.fsdecode(listing.stdout).split("\0")) - {""})
    else:
        names = []
        for folder, subfolders, files in os.walk(root):
            subfolders[:] = [s for s in subfolders if s not in SKIPPED_FOLDERS]
            names += [(pathlib.Path(folder) / f).relative_to(root).as_posix() for f in files]
    return sorted(name for name in names if (root / name).is_file())


def check_text(name, text):
    """Findings about one text file; name is its path from the root."""
    for number, line in enumerate(text.splitlines(), 1):
        if MACHINE_PATH.search(line):
            yield f"{name}:{number}: a path of one machine: {line.strip()[:100]}"
        if not name.startswith(UNFINISHED_EXEMPT) and UNFINISHED.search(line):
            yield f"{name}:{number}: a mark of unfinished work: {line.strip()[:100]}"
    if text and not text.endswith("\n"):
        yield f"{name}: the last line has no newline"
    lines = text.count("\n")
    if name.startswith("src/") and lines > MAX_LINES:
        yield f"{name}: {lines} lines, at most {MAX_LINES} are allowed"


def find_clang_format():
    for name in ("clang-format-14", "clang-format"):
        path = shutil.which(name)
        if path:
            version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
            if f"version {CLANG_FORMAT_VERSION}" in version:
                return path
    return None


def check_format(root, names):
    sources = [name for name in names if name.startswith("src/") and name.endswith((".h", ".cc", ".cu", ".cuh"))]
    clang_format = find_clang_format()
    if not clang_format or not sources:
        return []
    command = [clang_format, "--dry-run", "-Werror", "--ferror-limit=1", *sources]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return [line for line in result.stderr.splitlines() if ": error:" in line] if result.returncode else []


def check(root):
    root, findings = pathlib.Path(root), []
    names = tracked_files(root)
    for name in names:
        if name.startswith(NOT_TEXT) or name.endswith(NOT_TEXT_SUFFIXES):
            continue
        data = (root / name).read_bytes()
        if b"\0" in data:
            continue
        try:
            findings += check_text(name, data.decode("utf-8"))
        except UnicodeDecodeError as error:
            findings.append(f"{name}: not UTF-8 at byte {error.start}")
    return findings + check_format(root, names)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    findings = check(root)
    print("\n".join(findings) or "The files of the repository are in order.")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
