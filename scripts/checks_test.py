#!/usr/bin/env python3
"""Feeds the repository checks good and broken trees: each check finds exactly what it is for."""
import pathlib
import tempfile
import unittest

import check_flags
import check_layering
import check_names
import check_repo

HEADER = "#pragma once\n"


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, **files):
        for name, text in files.items():
            self.add(name, text)

    def add(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Names(Tree):
    def names(self, **sources):
        """Findings for a folder of sources, each with those lines in an anonymous namespace."""
        for name, lines in sources.items():
            self.add(f"src/graph/{name}.cc", "namespace tw::graph {\nnamespace {\n\n" + lines + "\n}  // namespace\n}\n")
        return check_names.check(self.root)

    def test_own_names_pass(self):
        self.assertEqual(self.names(a="int f(int x) {\n  return g(x);\n}\nint f(double x) {", b="int g(int x) {"), [])

    def test_a_function_of_two_sources_is_found(self):
        self.assertEqual(self.names(a="int f(int x) {", b="const std::map<int, int>& f(double x) {"),
                         ["src/graph/b.cc:4: f is also in src/graph/a.cc, which may be compiled together with it; name one "
                          "after what it is for, or share it in a header"])

    def test_a_type_and_a_constant_are_found(self):
        self.assertEqual(len(self.names(a="struct Case {\n  int x;\n};\nconstexpr int kMost[] = {1};",
                                        b="class Case;\nconst std::array<int, kMost> kAll = {};\nstruct Case : Base {",
                                        c="constexpr size_t kMost = 2;")), 2)

    def test_tests_are_a_program_of_their_own(self):
        self.assertEqual(self.names(a="int f(int x) {", a_test="int f(int x) {", a_bench="int f(int x) {"), [])

    def test_outside_of_an_anonymous_namespace_is_free(self):
        self.add("src/graph/c.cc", "namespace tw::graph {\nint f(int x) {\n}\n}\n")
        self.assertEqual(self.names(a="int f(int x) {"), [])


class Layering(Tree):
    def includes(self, source, *targets):
        """Findings for a file that includes headers, each of which exists and includes nothing."""
        for target in targets:
            self.add(f"src/{target}", HEADER)
        self.add(f"src/{source}", "".join(f'#include "{t}"\n' for t in targets))
        return check_layering.check(self.root)

    def test_downward_includes_pass(self):
        self.assertEqual(self.includes("lane/cpu/a.cc", "base/b.h", "gguf/g.h", "graph/x.h", "lane/l.h", "lane/cpu/c.h"), [])

    def test_upward_include_is_found(self):
        self.assertEqual(self.includes("gguf/a.cc", "graph/x.h"),
                         ["src/gguf/a.cc:1: gguf may not include graph (graph/x.h)"])

    def test_lane_and_spatial_are_apart(self):
        self.assertIn("lane may not include spatial", self.includes("lane/a.cc", "spatial/x.h")[0])

    def test_spatial_subfolder_is_spatial(self):
        self.assertIn("spatial may not include lane", self.includes("spatial/lower/a.cc", "lane/x.h")[0])

    def test_lane_may_not_include_its_kernels(self):
        self.assertIn("lane may not include lane/cpu", self.includes("lane/a.cc", "lane/cpu/x.h")[0])

    def test_the_two_lanes_are_apart(self):
        self.assertIn("lane/cpu may not include lane/cuda", self.includes("lane/cpu/a.cc", "lane/cuda/x.h")[0])

    def test_model_may_not_include_text(self):
        self.assertIn("model may not include text", self.includes("model/a.cc", "text/x.h")[0])

    def test_tests_follow_the_layering_too(self):
        self.assertIn("text may not include graph", self.includes("text/a_test.cc", "graph/x.h")[0])

    def test_unknown_component_is_found(self):
        self.assertEqual(self.includes("misc/a.cc"), ["src/misc/a.cc:1: its folder is no component of the layering"])

    def test_include_from_the_own_folder_is_found(self):
        self.write(**{"src/base/x.h": HEADER, "src/base/a.cc": '#include "x.h"\n'})
        self.assertIn('"x.h" is no file of src/', check_layering.check(self.root)[0])

    def test_angle_include_of_an_own_header_is_found(self):
        self.write(**{"src/base/x.h": HEADER, "src/base/a.cc": "#include <base/x.h>\n#include <vector>\n"})
        self.assertEqual(len(check_layering.check(self.root)), 1)

    def test_missing_pragma_once_is_found(self):
        self.write(**{"src/base/x.h": "// #pragma once\n"})
        self.assertEqual(check_layering.check(self.root), ["src/base/x.h:1: the header has no #pragma once"])

    def test_cycle_is_found(self):
        self.write(**{"src/base/x.h": HEADER + '#include "base/y.h"\n', "src/base/y.h": HEADER + '#include "base/x.h"\n'})
        self.assertEqual(check_layering.check(self.root), ["src/base/y.h:2: including base/x.h closes a cycle of includes"])

    def test_upward_link_is_found(self):
        self.write(**{"src/gguf/CMakeLists.txt": "tw_component(gguf DEPENDS tw_base\n             tw_lane_cpu fmt::fmt)\n"})
        self.assertEqual(check_layering.check(self.root), ["src/gguf/CMakeLists.txt:1: gguf may not depend on lane/cpu"])

    def test_component_within_a_component_links_as_it(self):
        self.add("src/lane/cpu/reference/CMakeLists.txt", "tw_component(lane/cpu/reference DEPENDS tw_lane_cpu tw_lane)\n")
        self.assertEqual(check_layering.check(self.root), [])
        self.add("src/lane/cpu/reference/CMakeLists.txt", "tw_component(lane/cpu/reference DEPENDS tw_text)\n")
        self.assertIn("lane/cpu/reference may not depend on text", check_layering.check(self.root)[0])

    def test_unknown_component_call_is_found(self):
        self.add("src/misc/CMakeLists.txt", "tw_component(misc)\n")
        self.assertIn("tw_component(misc) is no component", check_layering.check(self.root)[0])


class Flags(Tree):
    def found(self, flags, name="src/base/a.cc"):
        entry = {"directory": str(self.root), "file": name, "command": f"c++ {flags} -c {name}"}
        return check_flags.check([entry], self.root)

    def test_contract_flags_pass(self):
        self.assertEqual(self.found("-O3 -ffp-contract=off -fno-fast-math"), [])

    def test_missing_contraction_flag_is_found(self):
        self.assertEqual(self.found("-O3"), ["src/base/a.cc: compiled without -ffp-contract=off"])

    def test_last_contraction_flag_counts(self):
        self.assertIn("expected -ffp-contract=off", self.found("-ffp-contract=off -ffp-contract=fast")[0])

    def test_every_inexact_flag_is_found(self):
        for flag in check_flags.INEXACT | {"-mrecip=all"}:
            with self.subTest(flag=flag):
                self.assertIn(flag, self.found(f"-ffp-contract=off {flag}")[0])

    def test_instruction_sets_only_in_the_cpu_lane(self):
        self.assertIn("-mavx2", self.found("-ffp-contract=off -mavx2")[0])
        self.assertIn("-march=native", self.found("-ffp-contract=off -march=native")[0])
        self.assertEqual(self.found("-ffp-contract=off -mavx2 -mfma", "src/lane/cpu/dot_avx2.cc"), [])

    def test_argument_lists_are_read(self):
        entry = {"directory": str(self.root), "file": "src/a.cc", "arguments": ["c++", "-c", "src/a.cc"]}
        self.assertEqual(len(check_flags.check([entry], self.root)), 1)

    def test_empty_database_is_found(self):
        self.assertEqual(len(check_flags.check([], self.root)), 1)


class Repository(Tree):
    def found(self, name, text):
        self.add(name, text)
        return check_repo.check(self.root)

    def test_plain_file_passes(self):
        self.assertEqual(self.found("docs/a.md", "See src/base/half.h, https://example.org/work/x and /usr/include/x.\n"), [])

    def test_machine_paths_are_found(self):
        for path in ("/home" + "/ann/x", "/root" + "/x", "/work" + "/x", "/Users" + "/ann"):
            with self.subTest(path=path):
                self.assertIn("docs/a.md:1: a path of one machine", self.found("docs/a.md", f"at {path}\n")[0])

    def test_unfinished_marks_are_found(self):
        for mark in ("TO" + "DO", "FIX" + "ME: x", "XX" + "X", "is not " + "implemented"):
            with self.subTest(mark=mark):
                self.assertIn("src/base/a.txt:1: a mark of unfinished", self.found("src/base/a.txt", f"// {mark}\n")[0])

    def test_missing_newline_is_found(self):
        self.assertEqual(self.found("a.txt", "x"), ["a.txt: the last line has no newline"])

    def test_long_source_is_found_from_801_lines_on(self):
        self.assertEqual(self.found("src/base/a.txt", "\n" * 800), [])
        self.assertEqual(self.found("src/base/a.txt", "\n" * 801), ["src/base/a.txt: 801 lines, at most 800 are allowed"])

    def test_binary_files_are_left_alone(self):
        (self.root / "a.gguf").write_bytes(b"GGUF\xff\0")
        self.assertEqual(check_repo.check(self.root), [])

    def test_bytes_that_are_no_text_are_found(self):
        (self.root / "a.txt").write_bytes(b"ab\xff\n")
        self.assertEqual(check_repo.check(self.root), ["a.txt: not UTF-8 at byte 2"])

    @unittest.skipUnless(check_repo.find_clang_format(), "clang-format 14 is not installed")
    def test_format_is_found(self):
        self.add(".clang-format", "BasedOnStyle: Google\n")
        self.assertIn("src/base/a.cc:1", self.found("src/base/a.cc", "int  x ;\n")[0])


if __name__ == "__main__":
    unittest.main()
