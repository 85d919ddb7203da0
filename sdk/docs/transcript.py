#!/usr/bin/env python3
"""Takes transcript.md: what a new user types and sees, from an empty folder to a checked and timed plugin.

    cargo build --release -p tenon-cli
    sdk/docs/transcript.py > sdk/docs/transcript.md

Run it on a quiet machine: the times stand in the page. It builds in a folder of its own, with nothing of the
plugin or of the SDK built for it before, and needs a compiler for C and make. The exit code is 1 where a command
fails or a limit is not kept.
"""

import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
RELEASE = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
# Lines of output that are shown: so many of the beginning, and of the end.
HEAD, TAIL = 6, 14
# Seconds: what a plugin's build takes once the SDK is built, and the whole way.
BUILD_LIMIT, WAY_LIMIT = 30, 120

# Title, and commands with the folder they run in; `*` marks those of the whole way, `+` a second build of the plugin.
WAYS = [
    (
        "An op in Rust",
        [
            ("", "tenon new leaky", "*"),
            ("leaky", "cargo build --release --offline", "*"),
            ("leaky", "tenon check target/release/libleaky.so", "*"),
            ("leaky", "tenon bench --plugin target/release/libleaky.so Leaky --dtype float", "*"),
            ("leaky", "touch src/lib.rs && cargo build --release --offline", "+"),
            ("leaky", "cargo test --offline", ""),
        ],
    ),
    (
        "An op in C",
        [
            ("", "tenon new sharp --lang c", "*"),
            ("sharp", "make", "*+"),
            ("sharp", "make test", "*"),
            ("sharp", "make bench", "*"),
        ],
    ),
    (
        "A device in C++",
        [
            ("", "tenon new card --kind device --lang cpp", "*"),
            ("card", "make", "*+"),
            ("card", "make test", "*"),
            ("card", "make bench", "*"),
        ],
    ),
]


def environment(home):
    dropped = ("CARGO_TARGET_DIR", "RUSTFLAGS", "CFLAGS", "CXXFLAGS")
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in dropped and not name.startswith(("TENON_", "CARGO_PROFILE_"))
    }
    kept["PATH"] = f"{RELEASE}:{kept['PATH']}"
    kept["TENON_SDK"] = str(ROOT)
    kept["XDG_DATA_HOME"] = kept["XDG_CACHE_HOME"] = f"{home}/.tenon"
    kept["CARGO_TERM_COLOR"] = "never"
    return kept


def shown(output, home):
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output)
    lines = [line.rsplit("\r", 1)[-1].rstrip() for line in text.replace("\r\n", "\n").splitlines()]
    text = "\n".join(lines).strip("\n")
    text = text.replace(str(home), "~").replace(str(ROOT), "~/tenon").replace(str(RELEASE), "~/tenon/target/release")
    lines = text.split("\n")
    if len(lines) > HEAD + TAIL + 1:
        lines[HEAD:-TAIL] = [f"… {len(lines) - HEAD - TAIL} lines …"]
    return "\n".join(lines)


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()


def machine():
    names = re.findall(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    name = names[0] if names else platform.machine()
    return f"{name}, {len(os.sched_getaffinity(0))} cores"


def follow(steps, home):
    """The page's part, and the seconds of each command."""
    page, seconds, failed = [], [], []
    for folder, command, _ in steps:
        begin = time.monotonic()
        done = subprocess.run(
            ["bash", "-c", f"exec 2>&1\n{command}"],
            cwd=home / folder, env=environment(home), stdout=subprocess.PIPE, text=True, errors="replace",
        )
        seconds.append(time.monotonic() - begin)
        place = f"~/{folder}" if folder else "~"
        page += [
            f"`{command}` in {seconds[-1]:.1f} s",
            "",
            "<!-- skip: taken by sdk/docs/transcript.py -->",
            "```text",
            f"{place}$ {command}",
            shown(done.stdout, home),
            "```",
            "",
        ]
        if done.returncode != 0:
            failed.append(f"{command}: exit code {done.returncode}\n{done.stdout}")
    return page, seconds, failed


def main():
    if not (RELEASE / "tenon").is_file():
        sys.exit(f"{RELEASE}/tenon: build it first: cargo build --release -p tenon-cli")
    parts, table, problems = [], [], []
    for title, steps in WAYS:
        with tempfile.TemporaryDirectory() as home:
            page, seconds, failed = follow(steps, pathlib.Path(home))
        way = sum(took for took, (_, _, marks) in zip(seconds, steps) if "*" in marks)
        build = sum(took for took, (_, _, marks) in zip(seconds, steps) if "+" in marks)
        table.append(f"| {title} | {way:.0f} s | {build:.1f} s |")
        problems += failed
        if way > WAY_LIMIT or build > BUILD_LIMIT:
            problems.append(f"{title}: new to bench took {way:.0f} s, the build {build:.1f} s")
        parts += [f"## {title}", ""] + page
    print("\n".join([
        "# A transcript",
        "",
        "What a new user types and sees, from an empty folder to a plugin that is checked and timed, as"
        " [the guide](guide.md) says. `sdk/docs/transcript.py` types it and writes this page.",
        "",
        f"{said('date', '-u', '+%Y-%m-%d')}, {machine()}, {said('rustc', '--version')}, "
        f"{said(str(RELEASE / 'tenon'), '--version')}. `tenon` is a release build; nothing that the plugin needs was"
        " built for it before.",
        "",
        f"| | new, build, check, bench (limit {WAY_LIMIT} s) | build once the SDK is built (limit {BUILD_LIMIT} s) |",
        "|---|---|---|",
        *table,
        "",
        *parts,
    ]).rstrip())
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
