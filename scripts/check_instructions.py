#!/usr/bin/env python3
"""Compare the instructions that the main kernels execute with a committed table.

usage: check_instructions.py DRIVER [--table FILE] [--tolerance SHARE] [--update] [--counter perf|callgrind]

DRIVER is tilewright_kernel_counts. A case is run a few times and many times; the difference of the two counts, divided by
the runs between, is the kernel's own. Counts come from `perf stat -e instructions:u` where the machine lets it count, else
from callgrind (Debian package valgrind). They say nothing of time, but hardly change from run to run or with load, so that
a kernel that a change made longer is found where no quiet machine is at hand. A count above its line in the table by more
than the tolerance fails; one below it is told, so that the table can be brought up to date with --update.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TABLE = pathlib.Path(__file__).resolve().parent / "instructions.txt"
FEW, MANY = 1, 11


def run(command):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"instructions: {' '.join(map(str, command))} failed:\n{result.stderr.strip()}")
    return result.stdout, result.stderr


def count_with_perf(command):
    with tempfile.NamedTemporaryFile("r") as out:
        run(["perf", "stat", "-x,", "-e", "instructions:u", "-o", out.name, "--", *command])
        for line in out:
            fields = line.split(",")
            if len(fields) > 2 and fields[2].startswith("instructions"):
                return int(fields[0])
    sys.exit("instructions: perf stat gave no count")


def count_with_callgrind(command):
    with tempfile.NamedTemporaryFile("r") as out:
        _, messages = run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", *command])
    return int(re.search(r"Collected : (\d+)", messages).group(1))


COUNTERS = {"perf": count_with_perf, "callgrind": count_with_callgrind}


def perf_counts():
    if not shutil.which("perf"):
        return False
    result = subprocess.run(["perf", "stat", "-x,", "-e", "instructions:u", "true"], capture_output=True, text=True)
    return result.returncode == 0 and bool(re.search(r"^\d+,", result.stderr, re.M))


def pick_counter(wanted):
    if wanted:
        return wanted
    if perf_counts():
        return "perf"
    if shutil.which("valgrind"):
        return "callgrind"
    sys.exit("instructions: neither perf can count here nor is valgrind installed (apt-get install valgrind)")


def instructions(count, driver, case):
    few = count([driver, case, FEW])
    many = count([driver, case, MANY])
    return round((many - few) / (MANY - FEW))


def read_table(path):
    """{(instruction set, case): count}"""
    table = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            fields = line.split("#")[0].split()
            if fields:
                table[fields[0], fields[1]] = int(fields[2])
    return table


def write_table(path, table):
    lines = ["# Instructions of each kernel case (src/lane/cpu/kernel_counts_main.cc): instruction set, case, count.",
             "# Checked by `make instructions`, written by scripts/check_instructions.py --update."]
    lines += [f"{isa} {case} {count}" for (isa, case), count in table.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def compare(isa, counted, table, tolerance):
    """(lines to show, whether all is within the tolerance)"""
    lines, fine = [], True
    for case, count in counted.items():
        want = table.get((isa, case))
        if want is None:
            lines.append(f"{isa} {case}: {count}, not in the table yet (--update)")
            continue
        change = count / want - 1
        verdict = "ok"
        if change > tolerance:
            verdict, fine = "MORE", False
        elif change < -tolerance:
            verdict = "fewer: bring the table up to date with --update"
        lines.append(f"{isa} {case}: {count}, {want} in the table, {100 * change:+.1f} %  {verdict}")
    return lines, fine


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("driver")
    parser.add_argument("--table", type=pathlib.Path, default=TABLE)
    parser.add_argument("--tolerance", type=float, default=0.03, help="share that a count may grow by (%(default)s)")
    parser.add_argument("--update", action="store_true", help="write the counts into the table")
    parser.add_argument("--counter", choices=COUNTERS)
    args = parser.parse_args()
    name = pick_counter(args.counter)
    isa, *cases = run([args.driver])[0].split()
    print(f"counting with {name}, {isa}")
    counted = {case: instructions(COUNTERS[name], args.driver, case) for case in cases}
    table = read_table(args.table)
    if args.update:
        table.update({(isa, case): count for case, count in counted.items()})
        write_table(args.table, table)
    lines, fine = compare(isa, counted, table, args.tolerance)
    print("\n".join(lines))
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
