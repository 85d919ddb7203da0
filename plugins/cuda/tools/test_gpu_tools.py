"""Tests of what `.ci/gpu` runs, as far as there need be no GPU. Those of the models want PyTorch, and are skipped where it
is not. Run: python3 -m unittest discover plugins/cuda/tools
"""

import contextlib
import importlib.util
import io
import json
import sys
import tarfile
import tempfile
import time
import unittest
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import bench_tenon
import golden_graphs
import gpu_machine
import gpu_pack
import gpu_procs
import gpu_report
import graphdef
import sanitize
import train_graphs
from gpu_rows import MEMORY, MODELS, failed, line, target_of

HAS_TORCH = importlib.util.find_spec("torch") is not None


def told(bench: str, size: str, peer: str, ns: float, rate: float = 1.0) -> dict:
    """A line as a side prints it."""
    return line(bench, peer, size, "1", [ns], rate * ns, "GB/s")


class Report(unittest.TestCase):
    """The table."""

    def verdict(self, lines: list[dict], bench: str, size: str) -> gpu_report.Verdict:
        """One row of the table of these lines."""
        return next(row for row in gpu_report.table(lines) if (row.bench, row.size) == (bench, size))

    def test_products_are_judged_by_their_ratio(self):
        peer = told("product_f16", "4096", "torch", 100.0)
        self.assertTrue(self.verdict([peer, told("product_f16", "4096", "tenon", 100.0)], "product_f16", "4096").reached)
        missed = self.verdict([peer, told("product_f16", "4096", "tenon", 101.0)], "product_f16", "4096")
        self.assertIs(missed.reached, False)
        self.assertIn("MISSED", str(missed))

    def test_memory_is_judged_by_the_copy_of_its_size(self):
        lines = [told("copy_device", "1GiB", "torch", 5.0, 4000.0), told("memory_relu", "1GiB", "tenon", 5.0, 3600.0)]
        self.assertTrue(self.verdict(lines, "memory_relu", "1GiB").reached)
        lines[1] = told("memory_relu", "1GiB", "tenon", 5.0, 3599.0)
        self.assertIs(self.verdict(lines, "memory_relu", "1GiB").reached, False)
        # The copy of another size says nothing.
        lines[0]["size"] = "256MiB"
        self.assertIsNone(self.verdict(lines, "memory_relu", "1GiB").reached)

    def test_nodes_are_judged_by_their_cost(self):
        self.assertTrue(self.verdict([told("nodes_eager", "1000", "tenon", 3e6)], "nodes_eager", "1000").reached)
        slow = self.verdict([told("nodes_captured", "1000", "tenon", 1.01e6)], "nodes_captured", "1000")
        self.assertEqual((slow.reached, slow.figure), (False, "1.01"))

    def test_a_model_counts_with_its_best_form_and_tells_the_captured_peer(self):
        lines = [told("model_resnet50_f32", "b1", peer, ns) for peer, ns in
                 (("tenon", 95.0), ("tenon_searched", 80.0), ("torch", 100.0), ("torch_graph", 60.0))]
        verdict = self.verdict(lines, "model_resnet50_f32", "b1")
        self.assertEqual((verdict.reached, verdict.figure), (True, "0.800 (1.333 graph)"))
        self.assertEqual(verdict.why, "with algorithms searched for")
        # PyTorch searches for no products.
        lines = [line | {"bench": "product_f32", "size": "1024"} for line in lines]
        self.assertIs(self.verdict(lines, "product_f32", "1024").figure.startswith("0.950"), True)

    def test_what_failed_is_not_measured_and_says_why(self):
        lines = [failed("copy_to_device", "tenon", "256MiB", "no such knob"), told("copy_to_device", "256MiB", "torch", 1.0)]
        verdict = self.verdict(lines, "copy_to_device", "256MiB")
        self.assertEqual((verdict.reached, verdict.why), (None, "tenon: no such knob"))
        lines = [told("memory_relu", "1GiB", "tenon", 1.0), failed("copy_device", "torch", "1GiB", "out of memory")]
        verdict = self.verdict(lines, "memory_relu", "1GiB")
        self.assertEqual((verdict.reached, verdict.why), (None, "torch: out of memory"))
        self.assertEqual(self.verdict([], "nodes_eager", "1000").why, "tenon: there is no line of it")

    def test_what_nobody_compared_is_said(self):
        ours = told("product_f32", "1024", "tenon", 1.0) | {"checked": "not compared: there is no reference for it"}
        verdict = self.verdict([ours, told("product_f32", "1024", "torch", 1.0)], "product_f32", "1024")
        self.assertEqual((verdict.reached, verdict.why), (True, ours["checked"]))

    def test_failures_without_a_row_stand_beside_the_table(self):
        lines = [failed("product_f32", "tenon_other", "", "off by 1"), failed("product_f32", "tenon", "1024", "in the table")]
        self.assertEqual(gpu_report.beside(lines), ["failed: tenon_other product_f32 : off by 1"])

    def test_a_gpu_that_was_not_idle_is_said(self):
        state = {"bench": "state", "peer": "machine", "size": "before", "memory_used": "4 MiB", "busy": "0 %"}
        self.assertEqual(gpu_report.beside([state]), ["state before: memory_used 4 MiB, busy 0 %"])
        self.assertIn("not idle", gpu_report.beside([state | {"memory_used": "40000 MiB"}])[1])
        self.assertIn("not idle", gpu_report.beside([state | {"busy": "93 %"}])[1])
        self.assertEqual(gpu_report.figure({"busy": "[N/A]"}, "busy"), 0.0)

    def test_rates_are_told_in_units_that_are_read(self):
        self.assertEqual(gpu_report.time(line("product_f16", "torch", "8192", "1", [2e6], 2e12, "GFLOP/s")), "2 ms 1000 TFLOP/s")
        self.assertEqual(gpu_report.time(line("model_x", "torch", "b32", "1", [8e6], 32, "Gimage/s")), "8 ms 4000 image/s")

    def test_every_row_has_a_target(self):
        self.assertTrue(all(target_of(bench) for bench, _ in gpu_report.expected()))
        self.assertIsNone(target_of("copy_device"))

    def test_half_a_line_is_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "a.jsonl")
            file.write_text('{"bench": "x"}\n{"bench": "y', encoding="utf-8")
            self.assertEqual(gpu_report.read([file, Path(folder, "none")]), [{"bench": "x"}])


class Tenon(unittest.TestCase):
    """Our side."""

    def test_only_chosen_kernels_on_the_gpu_and_steps_that_used_it_count(self):
        kernel = {"variant": {"plugin": "tenon-cuda", "device": "CUDA", "chosen": True}}
        step = {"variant": {"plugin": "session", "device": "CPU"}, "profile": {"nodes": [{"device": "/job:x/device:CUDA:0"}]}}
        self.assertTrue(bench_tenon.counts(kernel) and bench_tenon.counts(step))
        kernel["variant"]["device"] = "CPU"
        step["profile"]["nodes"][0]["device"] = "/job:x/device:CPU:0"
        self.assertFalse(bench_tenon.counts(kernel) or bench_tenon.counts(step))

    def test_an_option_that_the_program_does_not_have_is_found(self):
        commands = [["tenon", "bench", "Relu", "--time", "1", "--fast"]]
        self.assertEqual(list(bench_tenon.unknown_options(commands, "  --time <S>  Seconds")), ["--fast"])

    def test_a_program_that_fails_gives_a_failed_row(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
            program = Path(folder, "tenon")
            program.write_text("#!/bin/sh\necho 'error: no device' >&2\nexit 1\n", encoding="utf-8")
            program.chmod(0o755)
            tenon = bench_tenon.Tenon(program, 10.0, "a GPU")
            bench_tenon.nodes(tenon, "0.1", Path(folder))
        rows = [json.loads(text) for text in out.getvalue().splitlines()]
        peers = ["tenon", "tenon_apart"]
        expected = [(bench, peer) for bench in ("nodes_eager", "nodes_captured") for peer in peers]
        self.assertEqual([(row["bench"], row["peer"]) for row in rows], expected)
        self.assertEqual((rows[0]["failed"], tenon.failures), ("error: no device", 4))

    def test_shapes_have_the_elements_that_are_asked_for(self):
        sweeps = {op.name: op.sweep() for op in MEMORY}
        self.assertEqual(sweeps["softmax"], "n=65536..262144:+196608")
        self.assertEqual(sweeps["transpose"], "n=8192..32768:+24576")

    def program(self, folder: str, report: dict) -> bench_tenon.Tenon:
        """A program that prints this report."""
        program = Path(folder, "tenon")
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(report)}\nEND\n", encoding="utf-8")
        program.chmod(0o755)
        return bench_tenon.Tenon(program, 10.0, "a GPU")

    def record(self, at: int, label: str, chosen: bool) -> dict:
        """As `tenon bench --json` has one."""
        variant = {"plugin": "tenon-cuda", "device": "CUDA", "chosen": chosen, "label": label}
        return {"variant": variant, "case": {"at": at}, "version": "1", "kernel": {"ns": [2.0, 1.0, 3.0]},
                "checked": "the reference", "sampled": {"what": "rows", "judged": 2, "of": 64}}

    def swept(self, report: dict) -> list[dict]:
        """The lines of two sizes."""
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
            tenon = self.program(folder, report)
            tenon.attempt("b", ["a", "c"], lambda: bench_tenon.swept(
                tenon, "b", {1: "a", 2: "c"}, lambda at: 6.0 * at, "GB/s", "Relu"))
        lines = [json.loads(text) for text in out.getvalue().splitlines()]
        self.assertEqual(tenon.failures, sum("failed" in line for line in lines))
        return lines

    def test_sizes_of_one_process_are_rows_and_what_is_missing_failed(self):
        wrong = {"kind": "wrong", "message": "off by 1"}
        lines = self.swept({"records": [self.record(1, "", True), self.record(1, "slow", False)], "problems": [wrong]})
        self.assertEqual([(line["peer"], line["size"]) for line in lines],
                         [("tenon", "a"), ("tenon_slow", "a"), ("tenon", "c")])
        self.assertEqual((lines[0]["median_ns"], lines[0]["rate"]), (2.0, 3.0))
        self.assertEqual(lines[0]["checked"], "the reference, 2 of 64 rows")
        self.assertEqual(lines[2]["failed"], "off by 1")

    def test_another_kernel_that_is_wrong_is_a_failure_and_takes_no_row_away(self):
        records = [self.record(1, "", True), self.record(2, "", True)]
        lines = self.swept({"records": records, "problems": [{"kind": "wrong", "message": "own is off"}]})
        self.assertEqual([line.get("failed") for line in lines], [None, None, "own is off"])
        lines = self.swept({"records": records, "problems": [{"kind": "unverified", "message": "no oracle"}]})
        self.assertEqual([line.get("failed") for line in lines], [None, None])

    def test_results_that_changed_while_they_were_timed_are_no_rows(self):
        records = [self.record(1, "", True), self.record(2, "", True)]
        lines = self.swept({"records": records, "problems": [{"kind": "changed", "message": "right before, wrong after"}]})
        self.assertEqual([line["failed"] for line in lines], ["right before, wrong after"] * 2)

    def test_a_knob_that_the_program_does_not_have_is_found(self):
        commands = [["tenon", "bench", "x.pb", "--set", "runtime.record_after=0", "--set", "cuda.fast=true"]]
        self.assertEqual(list(bench_tenon.unknown_knobs(commands, "runtime.record_after  8")), ["cuda.fast"])


class Sanitizer(unittest.TestCase):
    """What compute-sanitizer wrote."""

    CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
    RACES = "========= COMPUTE-SANITIZER\n========= Error: Race reported between Write access\n" \
        "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n"

    def test_nothing_found(self):
        self.assertIsNone(sanitize.finding("memcheck", 0, self.CLEAN, ""))

    def test_a_finding_names_the_first(self):
        said = sanitize.finding("racecheck", 86, self.RACES, "")
        self.assertEqual(said, "1 found by racecheck: Error: Race reported between Write access")

    def test_a_device_that_the_tool_does_not_support_is_no_finding(self):
        said = "========= COMPUTE-SANITIZER\n========= Error: Device not supported. Please refer to the documentation\n"
        self.assertEqual(sanitize.refused(said), "Error: Device not supported. Please refer to the documentation")
        self.assertIsNone(sanitize.refused(self.CLEAN + self.RACES))

    def test_without_the_tool_nothing_is_run_and_the_reason_is_the_last_line(self):
        with tempfile.TemporaryDirectory() as folder:
            script = [sys.executable, str(HERE / "sanitize.py"), "/no/compute-sanitizer", "/no/tenon", folder]
            done = gpu_procs.run(script, 30)
        self.assertEqual((done.status, done.out), (75, "not run: there is no compute-sanitizer: it comes with the CUDA toolkit\n"))

    def test_no_summary_and_a_failed_program_are_wrong(self):
        self.assertIn("wrote no summary (exit 1): boom", sanitize.finding("memcheck", 1, "", "boom"))
        self.assertIn("tenon bench ended with 1: boom", sanitize.finding("memcheck", 1, self.CLEAN, "boom"))

    def test_a_call_that_takes_too_long_to_be_timed_is_right(self):
        said = "TOO SLOW, not timed: ordinary of tenon-cuda on CUDA: one call takes 3.2 s"
        self.assertIsNone(sanitize.finding("racecheck", 1, self.CLEAN, said))
        self.assertIn("1 found", sanitize.finding("racecheck", 1, self.RACES, said))


class Goldens(unittest.TestCase):
    """Golden graphs."""

    def report(self, device: str, problems: list[dict]) -> str:
        """As `tenon bench --json` prints one."""
        record = {"profile": {"nodes": [{"device": device}]}}
        return json.dumps({"records": [record], "problems": problems})

    def test_results(self):
        problem = {"kind": "wrong", "message": "off by 1"}
        self.assertIsNone(golden_graphs.judged(self.report("/device:CUDA:0", []), "", True))
        self.assertEqual(golden_graphs.judged(self.report("/device:CUDA:0", [problem]), "", True), "wrong: off by 1")
        self.assertEqual(golden_graphs.judged(self.report("/device:CPU:0", []), "", True), "no node ran on the GPU")
        self.assertIsNone(golden_graphs.judged(self.report("/device:CPU:0", []), "", False))
        self.assertEqual(golden_graphs.judged("", "error: no file", True), "error: no file")

    def test_arrays_get_the_names_of_tensors(self):
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "a.npz"), Path(folder, "b.npz")
            with zipfile.ZipFile(source, "w") as archive:
                archive.writestr("run0.feed0.npy", b"feed")
                archive.writestr("run0.out0.npy", b"result")
            run = {"feeds": [{"tensor": "x:0", "array": "run0.feed0"}], "fetches": [{"tensor": "y:0", "array": "run0.out0"}]}
            golden_graphs.repack(source, run, target)
            with zipfile.ZipFile(target) as archive:
                self.assertEqual({name: archive.read(name) for name in archive.namelist()}, {"x.npy": b"feed", "y.npy": b"result"})


class Training(unittest.TestCase):
    """Training graphs."""

    def test_losses(self):
        self.assertIsNone(train_graphs.judged(2.0, 1.0, 1.0 + 1e-6, 1e-5))
        self.assertIn("on the CPU", train_graphs.judged(2.0, 1.0, 1.1, 1e-5))
        self.assertIn("on the CPU", train_graphs.judged(2.0, 1.0, float("nan"), 1e-5))
        self.assertIn("learns nothing", train_graphs.judged(2.0, 2.0, 2.0, 1e-5))
        self.assertEqual(train_graphs.judged(2.0, 1.0, "error: no kernel", 1e-5), "error: no kernel")

    def test_numbers_of_each_dtype(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "loss.npy")
            for kind, dtype in (("<f4", graphdef.FLOAT), ("<f2", train_graphs.HALF), ("|V2", graphdef.BFLOAT16)):
                head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': (), }}\n".encode()
                start = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little")
                file.write_bytes(start + head + train_graphs.elements(dtype, [-0.625]))
                self.assertEqual(train_graphs.scalar(file), -0.625)

    def test_a_graph_has_a_variable_for_each_slot(self):
        nodes = train_graphs.Model(graphdef.FLOAT).graph("Adam").nodes
        self.assertEqual(sum(b"VarHandleOp" in node for node in nodes), 3)
        self.assertIn(b"train", nodes[-1])


class GraphDef(unittest.TestCase):
    """The wire format, by hand."""

    def test_integers_and_fields(self):
        self.assertEqual(graphdef.varint(300), b"\xac\x02")
        self.assertEqual(graphdef.varint(-1), b"\xff" * 9 + b"\x01")
        self.assertEqual(graphdef.field(2, b"ab"), b"\x12\x02ab")
        self.assertEqual(graphdef.shape([-1, 3])[:13], b"\x12\x0b\x08" + b"\xff" * 9 + b"\x01")

    def test_attributes(self):
        self.assertEqual(graphdef.attribute(True), b"\x28\x01")
        self.assertEqual(graphdef.attribute(graphdef.Type(1)), b"\x30\x01")
        self.assertEqual(graphdef.attribute(1.0), b"\x25\x00\x00\x80\x3f")
        self.assertEqual(graphdef.attribute([1, 2]), b"\x0a\x04\x18\x01\x18\x02")
        self.assertEqual(graphdef.attribute("SAME"), b"\x12\x04SAME")

    def test_a_node(self):
        graph = graphdef.Graph(graphdef.FLOAT)
        self.assertEqual(graph.node("Neg", ["x"]), "Neg_1")
        self.assertEqual(graph.nodes[0], b"\x0a\x18\x0a\x05Neg_1\x12\x03Neg\x1a\x01x\x2a\x07\x0a\x01T\x12\x02\x30\x01")


class Machine(unittest.TestCase):
    """The machine's line."""

    def test_nvidia_smi(self):
        asked = {"gpu": "name", "driver": "driver_version", "memory": "memory.total"}
        said = gpu_machine.queried("NVIDIA H200, 580.95, 143771 MiB\nNVIDIA H200, 1, 2\n", asked)
        self.assertEqual(said, {"gpu": "NVIDIA H200", "driver": "580.95", "memory": "143771 MiB"})
        self.assertEqual(gpu_machine.queried("No devices were found\n", asked), {})

    def test_libraries_get_plain_names_and_one_folder_each(self):
        with tempfile.TemporaryDirectory() as folder:
            first, second, links = Path(folder, "first"), Path(folder, "second"), Path(folder, "links")
            for place, names in ((first, ("libnvrtc.so.13", "libnvrtc-builtins.so.13.0", "libnvrtc.alt.so.13", "libz.so.1")),
                                 (second, ("libnvrtc.so", "libnvrtc.so.12", "libcudnn.so.9", "libcudnn_ops.so.9"))):
                place.mkdir()
                for name in names:
                    place.joinpath(name).touch()
            taken = gpu_machine.link(links, [first, second])
            self.assertEqual(taken, {"nvrtc": str(first), "cudnn": str(second)})
            names = {file.name: file.resolve().name for file in links.iterdir()}
            self.assertEqual(names["libnvrtc.so"], "libnvrtc.so.13")
            self.assertEqual(names["libcudnn.so"], "libcudnn.so.9")
            self.assertNotIn("libnvrtc.so.12", names)
            self.assertTrue({"libnvrtc-builtins.so.13.0", "libcudnn_ops.so.9"} <= names.keys() and "libz.so.1" not in names)

    def test_what_the_loader_started_is_found(self):
        text = "  12:\tcalling init: /x/libnvrtc.so.13\n  12:\tcalling init: /y/libcudnn_ops.so.9\n  12:\tfind library=libcuda.so\n"
        self.assertEqual(gpu_machine.initialised(text), {"nvrtc": "/x/libnvrtc.so.13"})

    def test_versions_are_told_as_people_do(self):
        self.assertEqual(gpu_machine.number("cublasLt", 130100), "13.1.0")
        self.assertEqual(gpu_machine.number("cudnn", 91900), "9.19.0")


class Processes(unittest.TestCase):
    """Programs that are ended."""

    def test_what_a_program_started_ends_with_it(self):
        with tempfile.TemporaryDirectory() as folder:
            child = Path(folder, "child")
            script = f"sh -c 'echo $$ > {child}; exec sleep 60' & wait"
            began = time.monotonic()
            done = gpu_procs.run(["sh", "-c", script], 1.0)
            self.assertIsNone(done.status)
            self.assertLess(time.monotonic() - began, 30)
            number = int(child.read_text(encoding="utf-8"))
            for _ in range(100):
                if not alive(number):
                    break
                time.sleep(0.05)
            self.assertFalse(alive(number))

    def test_what_it_printed_and_how_it_ended(self):
        self.assertEqual(gpu_procs.run(["sh", "-c", "echo out; echo err >&2; exit 3"], 10.0), gpu_procs.Done(3, "out\n", "err\n"))


def alive(number: int) -> bool:
    """Whether there is such a process, and not only what its parent has yet to collect."""
    try:
        return ") Z " not in Path(f"/proc/{number}/stat").read_text(encoding="utf-8")
    except OSError:
        return False


class Pack(unittest.TestCase):
    """Logs."""

    def test_the_end_of_a_long_file_is_kept_and_too_much_is_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            logs, target = Path(folder, "logs"), Path(folder, "logs.tar.xz")
            logs.joinpath("deep").mkdir(parents=True)
            logs.joinpath("deep", "a.log").write_bytes(b"x" * gpu_pack.ONE + b"end")
            logs.joinpath("b.log").write_text("all of it", encoding="utf-8")
            gpu_pack.pack(logs, target)
            with tarfile.open(target) as archive:
                self.assertEqual(archive.getnames(), ["logs/b.log", "logs/deep/a.log"])
                kept = archive.extractfile("logs/deep/a.log").read()
            self.assertTrue(kept.startswith(b"... the last 1048576 of 1048579 bytes\n") and kept.endswith(b"xend"))
            taken, left = gpu_pack.kept(logs, most=100)
            self.assertEqual([[file.name for file in files] for files in (taken, left)], [["b.log"], ["a.log"]])


@unittest.skipUnless(HAS_TORCH, "PyTorch is not installed")
class Torch(unittest.TestCase):
    """PyTorch's side, on the CPU."""

    def test_ops_that_move_memory_do_what_they_are_named_for(self):
        import torch

        import bench_torch

        x = torch.rand(1 << 14) * 2 - 1
        wanted = {
            "relu": torch.relu(x), "tanh": torch.tanh(x), "gelu": torch.nn.functional.gelu(x),
            "softmax": x.view(-1, 1024).softmax(1), "transpose": x.view(-1, 8192).t(),
        }
        for op in MEMORY:
            with self.subTest(op.name):
                found = bench_torch.mover(op.name, x)()
                self.assertEqual(found.numel(), x.numel())
                if op.name in wanted:
                    self.assertTrue(torch.allclose(found.reshape(-1), wanted[op.name].reshape(-1)))

    def test_models_are_graphs_with_an_output(self):
        import make_graphs
        import torch_models

        for name in MODELS:
            model = torch_models.MODELS[name](**torch_models.SMALL[name]).eval()
            nodes = model.graph(graphdef.FLOAT).nodes
            self.assertIn(b"output", nodes[-1])
            self.assertEqual(list(model(model.feeds(2)[0]).shape)[0], 2)


if __name__ == "__main__":
    unittest.main()
