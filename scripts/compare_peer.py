#!/usr/bin/env python3
"""Compare Tilewright's speed with that of a peer program, row by row, and write a markdown table.

usage: compare_peer.py --peer PROGRAM [options]

The peer is any program that takes, and answers with one line of JSON that has pp_tokens_per_s and tg_tokens_per_s,
  PROGRAM bench MODEL.gguf --pp P --tg T --depth D --threads N -r 1 --kv f16|f32 [--sequences B]
--sequences is used when PROGRAM's own usage text names it. Each row is measured in pairs: ours, then the peer's, the same
file, threads and type of cache, each a process of its own that warms up first. A ratio is taken pair by pair; the table
shows the median of the ratios, their range, and the medians of both rates. Checkpoints are made with `tilewright synth`
at real shapes and kept in the cache folder.
"""
import argparse
import json
import os
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "tilewright" / "compare"
SHIPPED = "models/fable-3m-q8_0.gguf"


@dataclass(frozen=True)
class Model:
    """A synthetic checkpoint, or (format empty) a file of this repository."""

    shape: str
    format: str

    @property
    def label(self):
        return f"{self.shape} {self.format}".strip() if self.format else pathlib.Path(self.shape).stem


@dataclass
class Row:
    model: Model
    work: str  # "decode", "prefill", "batch"
    at_least: float
    ours: list = field(default_factory=list)
    peer: list = field(default_factory=list)
    share_of_read: list = field(default_factory=list)

    @property
    def name(self):
        return {"decode": "decode 128 after 512", "prefill": "prefill 512", "batch": "batch of 8, 64 steps"}[self.work]

    @property
    def ratios(self):
        return [a / b for a, b in zip(self.ours, self.peer)]


# What is timed: prompt and decoded tokens, tokens in the cache before, sequences in lock step. The shipped model holds
# 512 positions.
WORK = {"prefill": (512, 0, 0, 1), "decode": (0, 128, 512, 1), "batch": (0, 64, 0, 8)}
SMALL_WORK = {"prefill": (384, 0, 0, 1), "decode": (0, 128, 256, 1)}


def rows():
    qwen3 = {f: Model("qwen3-0.6b", f) for f in ("Q8_0", "Q4_0", "Q4_K")}
    for format, least in (("Q8_0", 1.05), ("Q4_0", 1.25), ("Q4_K", 1.25)):
        yield Row(qwen3[format], "decode", least)
        yield Row(qwen3[format], "prefill", 2.0)
    for format in ("Q4_K", "Q8_0"):
        yield Row(Model("qwen3next-1b", format), "decode", 1.5)
        yield Row(Model("qwen3next-1b", format), "prefill", 2.5)
    yield Row(Model("gpt-oss-1b", "MXFP4_MOE"), "decode", 1.25)
    yield Row(Model("gpt-oss-1b", "MXFP4_MOE"), "prefill", 2.0)
    yield Row(qwen3["Q8_0"], "batch", 1.5)
    yield Row(Model(SHIPPED, ""), "decode", 2.0)


def run(command, prefix):
    result = subprocess.run(prefix + [str(c) for c in command], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"compare: {shlex.join(map(str, command))} failed:\n{result.stderr.strip()}")
    return result.stdout


def checkpoint(model, args):
    if not model.format:
        return ROOT / model.shape
    path = args.cache_folder / f"{model.shape}-{model.format}.gguf"
    if not path.exists():
        print(f"making {path}", file=sys.stderr)
        args.cache_folder.mkdir(parents=True, exist_ok=True)
        made = path.with_suffix(".part")
        run([args.tilewright, "synth", "--shape", model.shape, "--format", model.format, "-o", made], [])
        made.rename(path)
    return path


def work_of(row):
    return (WORK if row.model.format else SMALL_WORK)[row.work]


def measure_ours(row, path, args):
    prompt, decode, depth, sequences = work_of(row)
    out = run([args.tilewright, "bench", path, "--pp", prompt, "--tg", decode, "-d", depth, "--sequences", sequences, "-r", 1,
               "-t", args.threads, "--cache", args.kv, "--numerics", args.numerics, "--json"], args.prefix)
    test = json.loads(out)["tests"][0]
    return test["tokens_per_second"], test["share_of_bandwidth"]


def measure_peer(row, path, args):
    prompt, decode, depth, sequences = work_of(row)
    command = [args.peer, "bench", path, "--pp", prompt, "--tg", decode, "--depth", depth, "--threads", args.threads,
               "-r", 1, "--kv", args.kv]
    if sequences > 1 and args.peer_batches:
        command += ["--sequences", sequences]
    answer = json.loads(run(command, args.prefix))
    args.peer_settings.update({k: v for k, v in answer.items() if k in ("flash_attention", "repack", "library", "cpu")})
    return answer["pp_tokens_per_s" if prompt else "tg_tokens_per_s"]


def measure(row, args):
    path = checkpoint(row.model, args)
    for number in range(args.rounds):
        rate, share = measure_ours(row, path, args)
        row.ours.append(rate)
        row.share_of_read.append(share)
        row.peer.append(measure_peer(row, path, args))
        print(f"{row.model.label} {row.name} {number + 1}/{args.rounds}: {row.ours[-1]:.2f} / {row.peer[-1]:.2f} "
              f"= {row.ratios[-1]:.3f}", file=sys.stderr)


def line(row, args):
    middle = statistics.median(row.ratios)
    note = " (peer: one sequence)" if row.work == "batch" and not args.peer_batches else ""
    prompt, decode, depth, _ = work_of(row)
    name = row.name if row.model.format else f"decode {decode} after {depth}"
    return (f"| {name}{note} | {row.model.label} | {statistics.median(row.ours):.2f} | {statistics.median(row.peer):.2f} "
            f"| {middle:.2f} | {min(row.ratios):.2f} to {max(row.ratios):.2f} | {row.at_least:.2f} "
            f"| {100 * statistics.median(row.share_of_read):.0f} % | {'yes' if middle >= row.at_least else 'no'} |")


def table(measured, args):
    settings = args.peer_settings
    text = [
        f"{args.threads} threads, cache {args.kv}, numerics {args.numerics}; medians of {args.rounds} pairs; rates in tokens/s.",
        f"Machine: {platform.machine()}, {os.cpu_count()} processors, {settings.get('cpu', 'unknown features')}.",
        f"Peer: {settings.get('library', 'unknown version')}, flash attention {settings.get('flash_attention', 'unknown')}, "
        f"weights repacked: {settings.get('repack', 'unknown')}.",
        "",
        "| work | model | ours | peer | ratio | range | at least | of the streaming read | reached |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join(text + [line(row, args) for row in measured]) + "\n"


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="the peer's program")
    parser.add_argument("--tilewright", default=str(ROOT / "build/release/bin/tilewright"), help="ours (%(default)s)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of both (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="pairs a row (%(default)s)")
    parser.add_argument("--kv", default="f16", choices=("f16", "f32"), help="storage of keys and values in both (%(default)s)")
    parser.add_argument("--numerics", default="int8", help="of ours (%(default)s)")
    parser.add_argument("--only", default="", help="rows whose model and work hold this text")
    parser.add_argument("--prefix", default="", help='put before every timed command: "taskset -c 0,1"')
    parser.add_argument("--cache-folder", type=pathlib.Path, default=CACHE, help="of the checkpoints (%(default)s)")
    parser.add_argument("--output", type=pathlib.Path, help="also write the table here")
    args = parser.parse_args(arguments)
    args.prefix = shlex.split(args.prefix)
    return args


def check_programs(args):
    if not args.peer:
        return ("no peer was given. It is a program outside this repository around another runtime; "
                "name it with --peer PROGRAM (make compare PEER=PROGRAM). scripts/compare_peer.py says what it must answer.")
    for program in (args.peer, args.tilewright):
        if not os.access(program, os.X_OK):
            return f"{program} is no program that can be run"
    return None


def main():
    args = parse_arguments(sys.argv[1:])
    wrong = check_programs(args)
    if wrong:
        sys.exit(f"compare: {wrong}")
    usage = subprocess.run([args.peer], capture_output=True, text=True)
    args.peer_batches = "--sequences" in usage.stdout + usage.stderr
    args.peer_settings = {}
    wanted = [row for row in rows() if args.only in f"{row.model.label} {row.name}"]
    if not wanted:
        sys.exit(f"compare: no row holds the text {args.only!r}")
    for row in wanted:
        measure(row, args)
    text = table(wanted, args)
    print(text, end="")
    if args.output:
        args.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
