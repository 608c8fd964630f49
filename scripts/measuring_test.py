#!/usr/bin/env python3
"""The scripts that measure: what they make of counts and rates, with programs that answer made-up ones."""
import argparse
import json
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

import check_instructions
import compare_peer


class Instructions(unittest.TestCase):
    def test_a_count_above_the_tolerance_fails(self):
        lines, fine = check_instructions.compare("avx2", {"norm": 1040}, {("avx2", "norm"): 1000}, 0.03)
        self.assertFalse(fine)
        self.assertIn("+4.0 %  MORE", lines[0])

    def test_counts_within_or_below_it_pass(self):
        for count, told in ((1020, "ok"), (900, "fewer")):
            lines, fine = check_instructions.compare("avx2", {"norm": count}, {("avx2", "norm"): 1000}, 0.03)
            self.assertTrue(fine)
            self.assertIn(told, lines[0])

    def test_a_case_of_another_instruction_set_is_no_reference(self):
        lines, fine = check_instructions.compare("avx512", {"norm": 2000}, {("avx2", "norm"): 1000}, 0.03)
        self.assertTrue(fine)
        self.assertIn("not in the table", lines[0])

    def test_the_table_reads_back(self):
        table = {("avx2", "norm"): 12, ("avx2", "delta"): 5}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "table.txt"
            check_instructions.write_table(path, table)
            self.assertEqual(check_instructions.read_table(path), table)

    def test_the_difference_of_two_counts_is_the_kernel_alone(self):
        counted = check_instructions.instructions(lambda command: 500 + 7 * command[2], "driver", "norm")
        self.assertEqual(counted, 7)


PROGRAM = """#!/usr/bin/env python3
import json, sys
if len(sys.argv) == 1:
    sys.exit("usage: {usage}")
assert sys.argv[1] == "bench"
print(json.dumps({answer}))
"""


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def program(self, name, answer, usage=""):
        path = self.folder / name
        path.write_text(PROGRAM.format(usage=usage, answer=answer))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def run_script(self, *arguments):
        return subprocess.run([sys.executable, compare_peer.__file__, *arguments], capture_output=True, text=True, check=False)

    def test_without_a_peer_it_says_what_is_wanted(self):
        result = self.run_script()
        self.assertEqual(result.returncode, 1)
        self.assertIn("make compare PEER=", result.stderr)

    def test_a_program_that_is_not_there_is_named(self):
        self.assertIn("/no/such is no program", self.run_script("--peer", "/no/such").stderr)

    def test_the_table_holds_the_median_of_the_ratios(self):
        ours = self.program("ours", json.dumps({"tests": [{"tokens_per_second": 30.0, "share_of_bandwidth": 0.5}]}))
        peer = self.program("peer", json.dumps({"pp_tokens_per_s": 0, "tg_tokens_per_s": 12.0, "library": "x"}))
        output = self.folder / "table.md"
        result = self.run_script("--peer", peer, "--tilewright", ours, "--rounds", "3", "--only", "fable", "--output", str(output))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, output.read_text())
        self.assertIn("| 30.00 | 12.00 | 2.50 | 2.50 to 2.50 | 2.00 | 50 % | yes |", result.stdout)

    def test_a_peer_without_batches_is_said_so(self):
        row = compare_peer.Row(compare_peer.Model("a", "Q8_0"), "batch", 1.5, [30.0], [25.0], [0.5])
        args = argparse.Namespace(peer_batches=False)
        self.assertIn("(peer: one sequence)", compare_peer.line(row, args))
        self.assertIn("| no |", compare_peer.line(row, args))


if __name__ == "__main__":
    unittest.main()
