"""Tests of the checker, on what ptxas 12.9 and cuobjdump 13.5 printed of small kernels (testdata/; excerpts of the
instructions, without their encodings). Run: python3 -m unittest discover plugins/cuda/tools

- `elementwise`: `vec_relu` moves 16 bytes at once; `scalar_exp` takes a sine, whose slow path is in double.
- `mma`: one product by tensor cores, of halves and of bytes.
- `spill`: `spills` keeps more values than its registers hold, `dbl` computes in double, `stack` does neither.
- `function`: `calls` calls a function that is not inlined.
"""

import argparse
import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import check_kernels
import expectations
import register_record
from notes import Notes
from expectations import ExpectationError
from listing import Function, ListingError, Usage, Variant, assembled, disassembled, joined

LIMITS = "limits = { registers = 255, growth = 8, shared = 49152 }\n"


def text(name: str) -> str:
    """A captured text."""
    return (HERE / "testdata" / f"{name}.txt").read_text(encoding="utf-8")


def functions(name: str, arch: int) -> list[Function]:
    """What both tools say of one variant."""
    ptxas, cuobjdump = text(f"ptxas-{name}.sm_{arch}"), text(f"cuobjdump-{name}.sm_{arch}")
    defines = {"T": "f32"} if name == "elementwise" else {}
    return list(joined(Variant(name, f"{name}.cu", defines), arch, assembled(ptxas).functions, disassembled(cuobjdump)))


def judged(rules: str, name: str, arch: int) -> list[str]:
    """What is wrong with one variant by these rules."""
    told = expectations.parse(f"archs = [{arch}]\n{LIMITS}{rules}")
    return [*told.judge(functions(name, arch)), *told.stale([arch])]


class Ptxas(unittest.TestCase):
    """Reading what ptxas prints."""

    def test_registers_and_shared_memory_of_each_entry(self):
        said = assembled(text("ptxas-elementwise.sm_100"))
        self.assertEqual(said.functions["scalar_exp"], Usage("scalar_exp", registers=24, shared=256))
        self.assertEqual(said.functions["vec_relu"], Usage("vec_relu", registers=32))
        self.assertEqual(said.warnings, [])

    def test_spills_stack_and_warnings(self):
        said = assembled(text("ptxas-spill.sm_75"))
        spilling = Usage("spills", registers=64, stack=560, spill_stores=2368, spill_loads=2400)
        self.assertEqual(said.functions["spills"], spilling)
        self.assertEqual(said.functions["spills"].spills, 4768)
        self.assertEqual(said.functions["stack"].spills, 0)
        self.assertEqual(len(said.warnings), 1)
        self.assertIn("minnctapersm will be ignored", said.warnings[0])

    def test_a_device_function_has_no_registers_of_its_own(self):
        said = assembled(text("ptxas-function.sm_80"))
        self.assertIsNone(said.functions["_Z4helpfi"].registers)
        self.assertEqual(said.functions["calls"].registers, 11)

    def test_resources_of_nothing_are_refused(self):
        with self.assertRaisesRegex(ListingError, "before it named a function"):
            assembled("ptxas info    : Used 15 registers, used 0 barriers")


class Cuobjdump(unittest.TestCase):
    """Reading what cuobjdump prints."""

    def test_operations_without_predicates_and_operands(self):
        code = disassembled(text("cuobjdump-mma.sm_75"))
        self.assertEqual(list(code), ["mma_s8", "mma_f16"])
        self.assertEqual(code["mma_s8"].operations[-5:-2], ["IMMA.8816.S8.S8", "STG.E.SYS", "STG.E.SYS"])
        self.assertEqual((code["mma_f16"].registers, code["mma_f16"].stack), (16, 0))
        self.assertEqual(disassembled(text("cuobjdump-spill.sm_75"))["dbl"].operations[-2], "DMUL")

    def test_uniform_predicates(self):
        lines = "\t\tFunction : f\n        /*0010*/   @!UP0 UIADD3 UR4, UR4 ;\n        /*0020*/   @UPT EXIT ;\n"
        self.assertEqual(disassembled(lines)["f"].operations, ["UIADD3", "EXIT"])

    def test_the_tools_must_speak_of_the_same_code(self):
        usages = assembled(text("ptxas-elementwise.sm_100")).functions
        code = disassembled(text("cuobjdump-elementwise.sm_100"))
        usages["vec_relu"].registers = 40
        with self.assertRaisesRegex(ListingError, "ptxas uses 40 registers, the cubin 32"):
            list(joined(Variant("v"), 100, usages, code))
        with self.assertRaisesRegex(ListingError, "the cubin has no instruction of it"):
            list(joined(Variant("v"), 100, usages | {"gone": Usage("gone", 8)}, {}))
        with self.assertRaisesRegex(ListingError, "a function that ptxas does not name"):
            list(joined(Variant("v"), 100, {}, code))

    def test_a_function_that_is_not_inlined_needs_no_code_of_its_own(self):
        found = {function.name: function for function in functions("function", 80)}
        self.assertEqual(sorted(found), ["_Z4helpfi", "calls", "prnt"])
        self.assertIn("CALL.REL.NOINC", found["calls"].operations)


class Rules(unittest.TestCase):
    """expectations.toml."""

    WIDE = "[[require]]\nentries = 'vec_*'\ninstructions = ['LDG\\.E\\.128', 'STG\\.E\\.128']\nreason = 'wide'\n"
    DOUBLE = "[[forbid]]\ninstructions = ['D(ADD|MUL|FMA)', '.*\\.F64']\nreason = 'no double'\n"

    def test_instructions_that_are_there(self):
        self.assertEqual(judged(self.WIDE, "elementwise", 100), [])

    def test_an_instruction_that_is_missing(self):
        wrong = judged(self.WIDE.replace("vec_*", "scalar_*"), "elementwise", 100)
        self.assertEqual(len(wrong), 2)
        self.assertIn(r"elementwise: scalar_exp (sm_100): no instruction LDG\.E\.128", wrong[0])
        self.assertIn("(wide)", wrong[0])

    def test_a_rule_that_matches_no_entry_is_stale(self):
        wrong = judged(self.WIDE.replace("vec_*", "vector_*"), "elementwise", 100)
        self.assertEqual(len(wrong), 1)
        self.assertIn("[[require]] 1 (entries vector_*) is stale: no entry matches it at sm_100", wrong[0])

    def test_rules_go_by_source_and_defines(self):
        for more, applies in (
            ("sources = 'elementwise.cu'\ndefines = { T = ['f16', 'f32'] }\n", True),
            ("sources = 'mma.cu'\n", False),
            ("defines = { T = 'f16' }\n", False),
            ("defines = { U = '*' }\n", False),
        ):
            with self.subTest(more):
                self.assertEqual(judged(self.WIDE + more, "elementwise", 100) == [], applies)

    def test_a_pattern_matches_from_the_start_of_the_operation(self):
        wrong = judged(self.WIDE.replace(r"'LDG\.E\.128', ", "'G', "), "elementwise", 100)
        self.assertEqual(len(wrong), 1)

    def test_an_instruction_that_is_forbidden(self):
        wrong = judged(self.DOUBLE, "elementwise", 100)
        self.assertEqual(len(wrong), 1)
        self.assertIn("scalar_exp (sm_100): DMUL, F2F.F32.F64, I2F.F64.S64 (3 in all), forbidden by", wrong[0])

    def test_an_exception_excuses_what_it_covers(self):
        excused = self.DOUBLE + "[[forbid.except]]\nentries = 'scalar_*'\nreason = 'slow path'\n"
        self.assertEqual(judged(excused, "elementwise", 100), [])
        self.assertTrue(any("dbl (sm_75)" in each and "forbidden by" in each for each in judged(excused, "spill", 75)))

    def test_an_exception_that_nothing_needs_is_stale(self):
        rules = self.DOUBLE + "[[forbid.except]]\nentries = 'vec_*'\nreason = 'slow path'\n"
        wrong = judged(rules, "elementwise", 100)
        self.assertEqual(len(wrong), 2)
        self.assertIn("exception 1 (entries vec_*) is stale", wrong[1])

    def test_spills_and_stack_are_refused_by_default(self):
        wrong = judged("", "spill", 75)
        self.assertEqual(len(wrong), 2)
        self.assertIn("spills (sm_75): 560 bytes of stack, 0 allowed", wrong[0])
        self.assertIn("spills (sm_75): 4768 bytes of spills, 0 allowed", wrong[1])

    def test_spills_are_allowed_with_a_reason_and_up_to_a_size(self):
        rule = "[[allow]]\nentries = 'spills'\nstack = 560\nspills = {}\nreason = 'a test'\n"
        self.assertEqual(judged(rule.format(4768), "spill", 75), [])
        self.assertIn("4768 bytes of spills, 4767 allowed", judged(rule.format(4767), "spill", 75)[0])
        self.assertIn("[[allow]] 1 (entries dbl) is stale", judged(rule.format(1).replace("'spills'", "'dbl'"), "spill", 75)[-1])

    def test_limits(self):
        told = expectations.parse("archs = [75]\nlimits = { registers = 63, growth = 0, shared = 0 }\n")
        wrong = list(told.judge(functions("spill", 75)))
        self.assertTrue(any("spills (sm_75): 64 registers, more than 63" in each for each in wrong))

    def test_rules_that_nobody_could_follow_are_refused(self):
        for rules, message in (
            ("[[require]]\ninstructions = 'X'\n", "1 has no reason"),
            ("[[require]]\nreason = 'x'\n", "expected a text or a list of texts `instructions`"),
            ("[[require]]\ninstruction = 'X'\nreason = 'x'\n", "unknown key instruction"),
            ("[[require]]\ninstructions = '('\nreason = 'x'\n", "not a regular expression"),
            ("[[require]]\narchs = [70]\ninstructions = 'X'\nreason = 'x'\n", "sm_70 is not among"),
            ("[[allow]]\nreason = 'x'\n", "allows nothing"),
            ("[[requires]]\nreason = 'x'\n", "unknown section requires"),
        ):
            with self.subTest(rules), self.assertRaisesRegex(ExpectationError, message):
                expectations.parse(f"archs = [80]\n{LIMITS}{rules}")

    def test_the_committed_rules_are_read(self):
        told = expectations.load(HERE / "expectations.toml")
        self.assertEqual(told.archs, [75, 80, 90, 100])
        self.assertTrue(told.required and told.forbidden)


class Record(unittest.TestCase):
    """registers.tsv."""

    def test_written_and_read_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path, told = Path(folder, "r.tsv"), register_record.rows(functions("function", 80))
            register_record.write(path, told)
            self.assertEqual(register_record.read(path), told)
            # A device function is no entry, so it has no row.
            self.assertEqual(list(told), [("function", "calls", 80), ("function", "prnt", 80)])
            path.write_text(path.read_text(encoding="utf-8") + "a\tb\t80\n", encoding="utf-8")
            with self.assertRaisesRegex(register_record.RecordError, "r.tsv:4: expected 7 fields"):
                register_record.read(path)

    def test_differences_are_told_and_growth_is_refused(self):
        was = {("v", "kept", 80): (20, 0, 0, 0), ("v", "gone", 80): (20, 0, 0, 0), ("v", "other", 90): (1, 0, 0, 0)}
        now = {("v", "kept", 80): (29, 0, 0, 0), ("v", "new", 80): (20, 64, 0, 0)}
        told = list(register_record.differences(was, now, [80]))
        self.assertEqual(told[0], "v: gone (sm_80): gone")
        self.assertEqual(told[1], "v: kept (sm_80): 20 registers recorded, 29 registers found")
        self.assertEqual(told[2], "v: new (sm_80): new, 20 registers, 64 bytes of shared memory")
        self.assertEqual(len(told), 3)
        self.assertEqual(list(register_record.grown(was, now, 9)), [])
        self.assertEqual(len(list(register_record.grown(was, now, 8))), 1)


class Remembered(unittest.TestCase):
    """What a tool said is asked for once, and again where the note or the file is another."""

    def test_an_answer_is_kept_for_a_file_as_it_is(self):
        with tempfile.TemporaryDirectory() as place:
            folder, file, asked = Path(place) / "notes", Path(place) / "a.cubin", []

            def ask() -> str:
                asked.append(file.read_bytes())
                return f"answer {len(asked)}"

            file.write_bytes(b"one")
            self.assertEqual(Notes(folder).remembered(file, ask), "answer 1")
            self.assertEqual(Notes(folder).remembered(file, ask), "answer 1")
            file.write_bytes(b"two")
            self.assertEqual(Notes(folder).remembered(file, ask), "answer 2")
            for note in folder.iterdir():
                note.write_bytes(note.read_bytes()[:5])
            self.assertEqual(Notes(folder).remembered(file, ask), "answer 3")
            self.assertEqual(asked, [b"one", b"two", b"two"])


class FakeTools:
    """The captured texts in place of the tools, for `examine`."""

    def registers(self, ptx: Path, arch: int) -> str:
        """What ptxas said."""
        return text(f"ptxas-{ptx.stem}")

    def disassembly(self, cubin: Path) -> str:
        """What cuobjdump said."""
        return text(f"cuobjdump-{cubin.stem}")


class Whole(unittest.TestCase):
    """What the example writes, through to the record and the exit status."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name)
        self.expected = self.folder / "expectations.toml"

    def lay(self, name: str, arch: int) -> None:
        """A folder as the example writes it."""
        files = {"ptx": f"{name}.sm_{arch}.ptx", "cubin": f"{name}.sm_{arch}.cubin"}
        told = [{"name": name, "source": f"{name}.cu", "defines": {"T": "f32"}, "files": {str(arch): files}}]
        (self.folder / "variants.json").write_text(json.dumps(told), encoding="utf-8")
        for file in files.values():
            (self.folder / file).touch()

    def run_check(self, rules: str, arch: int, write: bool = False, match: str = "") -> tuple[int, str]:
        """Exit status and what was printed."""
        self.expected.write_text(f"archs = [{arch}]\n{LIMITS}{rules}", encoding="utf-8")
        options = argparse.Namespace(
            work=self.folder, compiled=self.folder, arch=None, match=match, write=write, quiet=False,
            record=self.folder / "registers.tsv", expectations=self.expected, sources=self.folder,
        )
        prepare = check_kernels.toolchain.prepare
        check_kernels.toolchain.prepare = lambda work: FakeTools()
        self.addCleanup(setattr, check_kernels.toolchain, "prepare", prepare)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            return check_kernels.check(options), out.getvalue()

    def test_right_kernels_pass_and_the_record_is_compared(self):
        self.lay("elementwise", 100)
        status, said = self.run_check(Rules.WIDE, 100)
        self.assertEqual(status, 0)
        self.assertIn("differs: elementwise: vec_relu (sm_100): new, 32 registers", said)
        self.assertIn("check_kernels: 2 entries for sm_100: all as expected", said)
        self.assertEqual(self.run_check(Rules.WIDE, 100, write=True)[0], 0)
        self.assertNotIn("differs", self.run_check(Rules.WIDE, 100)[1])

    def test_a_part_is_judged_without_rules_about_the_rest(self):
        self.lay("elementwise", 100)
        (self.folder / "other.cu").touch()
        other = "[[require]]\nvariants = 'mma'\ninstructions = 'HMMA'\nreason = 'of another variant'\n"
        self.assertEqual(self.run_check(other, 100)[0], 1)
        self.assertEqual(self.run_check(other, 100, match="element")[0], 0)
        with self.assertRaisesRegex(register_record.RecordError, "leave out --arch and --match"):
            self.run_check(other, 100, write=True, match="element")
        with self.assertRaisesRegex(check_kernels.CompiledError, "or none with 'mma'"):
            self.run_check(other, 100, match="mma")

    def test_a_spill_fails_the_check(self):
        self.lay("spill", 75)
        status, said = self.run_check("", 75)
        self.assertEqual(status, 1)
        self.assertIn("wrong: spill: spills (sm_75): 4768 bytes of spills", said)
        self.assertIn("wrong: spill (sm_75): ptxas warns:", said)

    def test_a_source_that_nothing_compiles_is_named(self):
        self.lay("elementwise", 100)
        for name in ("elementwise.cu", "forgotten.cu", "header.cuh"):
            (self.folder / name).touch()
        status, said = self.run_check("", 100)
        self.assertEqual((status, said.count("wrong:")), (1, 1))
        self.assertIn("wrong: forgotten.cu: no variant of this source is compiled", said)

    def test_a_variant_without_files_is_named(self):
        self.lay("elementwise", 90)
        with self.assertRaisesRegex(check_kernels.CompiledError, "elementwise has no PTX and cubin for sm_100"):
            self.run_check("", 100)


if __name__ == "__main__":
    unittest.main()
