"""Tests of check_libraries.py, with headers and libraries of their own."""

import subprocess
import tempfile
import unittest
from pathlib import Path

import check_libraries
from check_libraries import belief, differences, exports, source
from toolchain import ToolError

LINES = [
    "value\tcudnn.h\tCUDNN_FMA_MATH\t3",
    "size\tcudnn.h\tPerformance\t16",
    "offset\tcudnn.h\tPerformance\tmemory\t8",
    "function\tcudnn.h\tcudnn\tcudnnSetStream\ti4,p,p",
    "symbol\tcublasLt\tcublasLtMatmul",
]

CUDNN_H = """
enum Status { OK };
enum { CUDNN_FMA_MATH = 3 };
struct Performance { int algo; size_t memory; };
extern "C" Status cudnnSetStream(void*, void*);
"""


class Beliefs(unittest.TestCase):
    """Lines, and what they are compared with."""

    def setUp(self):
        self.beliefs = [belief(line) for line in LINES]
        self.exported = {"cudnn": {"cudnnSetStream"}, "cublasLt": {"cublasLtMatmul"}}

    def test_a_line_of_another_kind_is_an_error(self):
        with self.assertRaisesRegex(ToolError, "not understood: 'colour"):
            belief("colour\tcudnn.h\tblue")

    def test_what_is_true_is_no_difference(self):
        truth = {0: "3", 1: "16", 2: "8", 3: "i4,p,p"}
        self.assertEqual(differences(self.beliefs, truth, self.exported), [])

    def test_each_difference_is_named(self):
        truth = {0: "2", 1: "16", 2: "4", 3: "i4,p"}
        wrong = differences(self.beliefs, truth, self.exported | {"cublasLt": set()})
        self.assertEqual(wrong, [
            "CUDNN_FMA_MATH: the plugin has 3, the headers have 2",
            "Performance.memory: the plugin has 8, the headers have 4",
            "signature of cudnnSetStream: the plugin has i4,p,p, the headers have i4,p",
            "libcublasLt.so does not export cublasLtMatmul",
        ])

    def test_the_compiler_tells_the_truth_of_headers(self):
        with tempfile.TemporaryDirectory() as name:
            work = Path(name)
            include = work / "packages/nvidia/some/include"
            include.mkdir(parents=True)
            (include / "cublasLt.h").write_text("#include <cstddef>\n")
            (include / "cudnn.h").write_text(CUDNN_H)
            truth = check_libraries.compiled(work, work / "packages", source(self.beliefs))
            self.assertEqual(truth, {0: "3", 1: "16", 2: "8", 3: "i4,p,p"})
            (include / "cudnn.h").write_text(CUDNN_H.replace("CUDNN_FMA_MATH", "CUDNN_OTHER"))
            with self.assertRaisesRegex(ToolError, "CUDNN_FMA_MATH"):
                check_libraries.compiled(work, work / "packages", source(self.beliefs))

    def test_exports_are_names_without_versions(self):
        with tempfile.TemporaryDirectory() as name:
            file, code = Path(name) / "liba.so", Path(name) / "a.c"
            code.write_text("int seen(void) { return 1; }\nstatic int hidden(void) { return 2; }\nint (*f)(void) = hidden;\n")
            script = Path(name) / "map"
            script.write_text("LIB_9 { global: seen; f; local: *; };\n")
            command = ["gcc", "-shared", "-fPIC", f"-Wl,--version-script={script}", str(code), "-o", str(file)]
            subprocess.run(command, check=True)
            names = exports(file)
            self.assertIn("seen", names)
            self.assertNotIn("hidden", names)


if __name__ == "__main__":
    unittest.main()
