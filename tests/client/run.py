"""Runs TensorFlow's client against TensorFlow's server and ours.

    python run.py TENON [--only PATTERN] [-- OPTIONS OF tenon serve]
"""

import argparse
import sys

import harness

if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("tenon")
    arguments.add_argument("--only", default="*")
    arguments.add_argument("options", nargs="*")
    given = arguments.parse_args()
    sys.exit(1 if harness.main(given.tenon, given.only, given.options) else 0)
