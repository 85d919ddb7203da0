"""Tests of check_summary.py: `python3 -m unittest discover -s plugins/cuda/tools`."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

import check_summary

REASON = "labels lie on the device"


def tally(failed=(), skipped=None):
    failures = [{"case": case, "message": message} for case, message in failed]
    return {"passed": 1, "failed": len(failures), "failures": failures, "skipped": skipped or {}}


def subject(op, clauses, dtype="float"):
    return {"name": f"{op}[T={dtype}] on CUDA", "op": op, "cases": 12, "clauses": clauses}


def report(*subjects):
    right = not any(tally["failed"] for each in subjects for tally in each["clauses"].values())
    return {"right": right, "subjects": list(subjects), "cases": 12 * len(subjects), "seconds": 7.4,
            "problems": [], "notes": []}


def verdicts(*subjects):
    return {name: op.verdict() for name, op in check_summary.ops_of(report(*subjects), {REASON}).items()}


class Summary(unittest.TestCase):
    def test_each_verdict(self):
        late = [("", "did not return within 20 s (leak)")]
        self.assertEqual(
            verdicts(
                subject("Abs", {"values": tally(skipped={"the case is one that is to be refused": 2})}),
                subject("Loss", {"values": tally(skipped={REASON: 1})}),
                subject("Mean", {"values": tally(skipped={f"expected failure: {REASON}": 1})}),
                subject("Sum", {"values": tally([("golden.a", "got 1, expected 2")])}),
                subject("Top", {"progress": tally(late)}),
                subject("Exp", {}),
            ),
            {"Abs": "right", "Loss": "excepted", "Mean": "excepted", "Sum": "wrong", "Top": "no verdict",
             "Exp": "no verdict"},
        )

    def test_one_wrong_kernel_makes_its_op_wrong(self):
        wrong = subject("Sum", {"values": tally([("golden.a", "got 1, expected 2")])}, "half")
        ops = check_summary.ops_of(report(subject("Sum", {"values": tally()}), wrong), set())
        self.assertEqual((ops["Sum"].kernels, ops["Sum"].verdict()), (2, "wrong"))
        text = "\n".join(check_summary.lines(ops))
        self.assertIn("Sum[T=half] on CUDA, values in golden.a: got 1, expected 2", text)

    def run_main(self, made):
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder, "report.json"), Path(folder, "exceptions.toml")]
            files[0].write_text(json.dumps(made))
            files[1].write_text(f'[[unsupported]]\nop = "Loss"\nreason = "{REASON}"\n')
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                status = check_summary.main([str(file) for file in files])
            return status, out.getvalue()

    def test_the_exit_status_is_the_reports(self):
        made = report(subject("Abs", {"values": tally()}), subject("Loss", {"values": tally(skipped={REASON: 3})}))
        status, text = self.run_main(made)
        self.assertEqual(status, 0)
        self.assertIn(f"excepted, 3 findings: {REASON}", text)
        self.assertTrue(text.endswith("2 ops and devices, 2 kernels, 24 cases in 7 s: 1 right, 1 excepted\n"), text)
        made["right"] = False
        made["problems"] = ["time is up: 1 of 2 kernels were not looked at"]
        status, text = self.run_main(made)
        self.assertEqual(status, 1)
        self.assertIn("problem: time is up", text)


if __name__ == "__main__":
    unittest.main()
