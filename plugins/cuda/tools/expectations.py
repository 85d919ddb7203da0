"""What the compiled kernels have to be: expectations.toml, read and judged. The form of that file is told at its head.

Every rule must apply to something: one that does not is reported as stale, since the kernels it was written for have
been renamed or have gone.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from listing import Function

# What a rule covers, and why: keys of every rule.
COVERAGE = {"variants", "sources", "defines", "entries", "archs", "reason"}
KEYS = {
    "require": {*COVERAGE, "instructions"},
    "forbid": {*COVERAGE, "instructions", "except"},
    "except": COVERAGE,
    "allow": {*COVERAGE, "stack", "spills"},
    "limits": {"registers", "growth", "shared"},
}
SECTIONS = {"archs", "limits", "require", "forbid", "allow"}


class ExpectationError(Exception):
    """expectations.toml does not have the form that its head tells."""


@dataclass(frozen=True)
class Limits:
    """What no entry may exceed: registers a thread, registers more than recorded, bytes of declared shared memory."""

    registers: int
    growth: int
    shared: int


@dataclass
class Rule:
    """One table of the file. `what` names it in messages; `used` collects the architectures at which it mattered."""

    what: str
    variants: list[str]
    sources: list[str]
    defines: dict[str, list[str]]
    entries: list[str]
    archs: list[int]
    reason: str
    instructions: list[re.Pattern[str]] = field(default_factory=list)
    exceptions: list["Rule"] = field(default_factory=list)
    stack: int = 0
    spills: int = 0
    used: set[int] = field(default_factory=set)

    def covers(self, function: Function) -> bool:
        """Whether the rule speaks of a function."""
        variant = function.variant
        return (
            function.arch in self.archs
            and matches(variant.name, self.variants)
            and matches(variant.source, self.sources)
            and matches(function.name, self.entries)
            and all(matches(variant.defines.get(name), patterns) for name, patterns in self.defines.items())
        )

    def unused(self, archs: Iterable[int]) -> list[int]:
        """Architectures, of those that were looked at, at which the rule has not mattered."""
        return [arch for arch in self.archs if arch in archs and arch not in self.used]


def matches(text: str | None, patterns: list[str]) -> bool:
    """Whether one of the patterns is of this text; none is of a define that is not there."""
    return text is not None and any(fnmatchcase(text, pattern) for pattern in patterns)


@dataclass
class Expectations:
    """The whole file."""

    archs: list[int]
    limits: Limits
    required: list[Rule]
    forbidden: list[Rule]
    allowed: list[Rule]

    def judge(self, functions: Iterable[Function]) -> Iterator[str]:
        """What is wrong with functions, in their order."""
        for function in functions:
            yield from self.resources(function)
            yield from self.required_of(function)
            yield from self.forbidden_to(function)

    def resources(self, function: Function) -> Iterator[str]:
        """Spills, stack frames, registers and shared memory."""
        usage = function.usage
        rules = [rule for rule in self.allowed if rule.covers(function)]
        for kind, bytes_of in (("stack", usage.stack), ("spills", usage.spills)):
            granting = [rule for rule in rules if getattr(rule, kind) > 0]
            if bytes_of > 0:
                for rule in granting:
                    rule.used.add(function.arch)
            limit = max((getattr(rule, kind) for rule in granting), default=0)
            if bytes_of > limit:
                yield f"{function}: {bytes_of} bytes of {kind}, {limit} allowed: {ADVICE[kind]}"
        if (usage.registers or 0) > self.limits.registers:
            yield f"{function}: {usage.registers} registers, more than {self.limits.registers}"
        if usage.shared > self.limits.shared:
            yield f"{function}: {usage.shared} bytes of shared memory declared, more than {self.limits.shared}"

    def required_of(self, function: Function) -> Iterator[str]:
        """Instructions that are missing."""
        for rule in self.required:
            if rule.covers(function):
                rule.used.add(function.arch)
                for pattern in rule.instructions:
                    if not any(pattern.match(operation) for operation in function.operations):
                        yield f"{function}: no instruction {pattern.pattern}, expected by {rule.what} ({rule.reason})"

    def forbidden_to(self, function: Function) -> Iterator[str]:
        """Instructions that must not be there."""
        for rule in self.forbidden:
            if not rule.covers(function):
                continue
            rule.used.add(function.arch)
            found = [x for x in function.operations if any(pattern.match(x) for pattern in rule.instructions)]
            excused = [exception for exception in rule.exceptions if exception.covers(function)]
            if found:
                for exception in excused:
                    exception.used.add(function.arch)
                if not excused:
                    seen = ", ".join(sorted(set(found)))
                    yield f"{function}: {seen} ({len(found)} in all), forbidden by {rule.what} ({rule.reason})"

    def stale(self, archs: list[int]) -> Iterator[str]:
        """Rules that applied to nothing of all that was judged: at one architecture for what must or must not be, at all of them for what is
        allowed, which compilers may do without at some."""
        for rule in [*self.required, *self.forbidden]:
            for arch in rule.unused(archs):
                yield f"{rule.what} is stale: no entry matches it at sm_{arch}: correct or remove it"
        whole = set(archs) == set(self.archs)
        for rule in [*self.allowed, *(exception for rule in self.forbidden for exception in rule.exceptions)]:
            if whole and not rule.used:
                yield f"{rule.what} is stale: nothing it covers needs it: remove it"


ADVICE = {
    "stack": "index arrays by constants only, or give a reason in expectations.toml",
    "spills": "hold fewer values at once or allow more registers, or give a reason in expectations.toml",
}


def load(path: Path) -> Expectations:
    """Reads the file."""
    return parse(path.read_text(encoding="utf-8"))


def parse(text: str) -> Expectations:
    """Reads the text of the file."""
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ExpectationError(f"not TOML: {error}") from error
    if unknown := told.keys() - SECTIONS:
        raise ExpectationError(f"unknown section {sorted(unknown)[0]}, expected one of {sorted(SECTIONS)}")
    archs = told.get("archs", [])
    if not archs or not all(isinstance(arch, int) for arch in archs):
        raise ExpectationError(f"expected a list `archs` of architectures such as 80, found {archs}")
    limits = table(told.get("limits", {}), "limits", "[limits]")
    if missing := KEYS["limits"] - limits.keys():
        raise ExpectationError(f"[limits] lacks {sorted(missing)[0]}")
    rules = {kind: list(rules_of(told, kind, archs)) for kind in ("require", "forbid", "allow")}
    return Expectations(archs, Limits(**limits), rules["require"], rules["forbid"], rules["allow"])


def rules_of(told: dict, kind: str, archs: list[int]) -> Iterator[Rule]:
    """The tables of one kind, numbered from 1 as a reader counts them."""
    for number, each in enumerate(told.get(kind, []), 1):
        what = f"[[{kind}]] {number}"
        rule = rule_of(each, kind, what, archs)
        for place, exception in enumerate(each.get("except", []), 1):
            rule.exceptions.append(rule_of(exception, "except", f"{what}, exception {place}", rule.archs))
        yield rule


def rule_of(told: dict, kind: str, what: str, archs: list[int]) -> Rule:
    """One table."""
    table(told, kind, what)
    if not str(told.get("reason", "")).strip():
        raise ExpectationError(f"{what} has no reason")
    defines = told.get("defines", {})
    if not isinstance(defines, dict):
        raise ExpectationError(f"{what}: expected a table `defines` such as {{ T = \"f32\" }}, found {defines!r}")
    rule = Rule(
        what=f"{what} ({covered(told)})",
        variants=listed(told, "variants", what),
        sources=listed(told, "sources", what),
        defines={name: listed(defines, name, what) for name in defines},
        entries=listed(told, "entries", what),
        archs=told.get("archs", archs),
        reason=told["reason"],
        stack=told.get("stack", 0),
        spills=told.get("spills", 0),
    )
    if unknown := set(rule.archs) - set(archs):
        raise ExpectationError(f"{what}: sm_{sorted(unknown)[0]} is not among the architectures {archs}")
    if kind in ("require", "forbid"):
        rule.instructions = [compiled(text, what) for text in listed(told, "instructions", what)]
    if kind == "allow" and not (rule.stack or rule.spills):
        raise ExpectationError(f"{what} allows nothing: give bytes of `stack` or `spills`")
    return rule


def covered(told: dict) -> str:
    """What a rule covers, as the file has it, for messages."""
    keys = [key for key in ("variants", "sources", "defines", "entries") if key in told]
    return ", ".join(f"{key} {told[key]}" for key in keys) or "everything"


def table(told: dict, kind: str, what: str) -> dict:
    """A table without keys that nobody reads."""
    if unknown := told.keys() - KEYS[kind]:
        raise ExpectationError(f"{what}: unknown key {sorted(unknown)[0]}, expected {sorted(KEYS[kind])}")
    return told


def listed(told: dict, key: str, what: str) -> list[str]:
    """One text or a list of them; patterns match everything where they are not given."""
    default = None if key == "instructions" else "*"
    value = told.get(key, default)
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not values or not all(isinstance(text, str) for text in values):
        raise ExpectationError(f"{what}: expected a text or a list of texts `{key}`, found {value!r}")
    return values


def compiled(text: str, what: str) -> re.Pattern[str]:
    """A pattern of operations."""
    try:
        return re.compile(text)
    except re.error as error:
        raise ExpectationError(f"{what}: {text!r} is not a regular expression: {error}") from error
