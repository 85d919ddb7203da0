"""What ptxas and cuobjdump print, as values.

A function is an entry (`__global__`) or a device function that was not inlined. ptxas gives registers of entries only:
what an entry calls is part of its count.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

ENTRY = re.compile(r"Compiling entry function '([^']+)' for 'sm_(\d+)a?'")
PROPERTIES = re.compile(r"Function properties for (\S+)")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")
WARNING = re.compile(r"ptxas (?:.*: )?(?:warning|error)\s*:\s*(.*)")

RESOURCES_OF = re.compile(r"^ Function (\S+):$")
RESOURCES = re.compile(r"^\s+REG:(\d+) STACK:(\d+) ")
DISASSEMBLED = re.compile(r"^\s+Function : (\S+)$")
# An address, perhaps a predicate (of a thread or uniform), the operation with its modifiers.
INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P[T0-9]+\s+)?([A-Z][A-Z0-9_.a-z]*)")


class ListingError(Exception):
    """A tool printed something else than this module knows."""


@dataclass
class Usage:
    """What one function of a PTX file takes, in registers a thread and bytes. `registers` is None for a device function
    that is not an entry; `shared` is what is declared, not what a launch adds."""

    name: str
    registers: int | None = None
    shared: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0

    @property
    def spills(self) -> int:
        """Bytes of spill stores and loads."""
        return self.spill_stores + self.spill_loads


@dataclass
class Assembled:
    """What ptxas said of a PTX file."""

    functions: dict[str, Usage] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def assembled(text: str) -> Assembled:
    """Reads the output of `ptxas -v`."""
    all_of = Assembled()
    entry = function = None
    for line in text.splitlines():
        if found := ENTRY.search(line):
            entry = all_of.functions.setdefault(found[1], Usage(found[1]))
        elif found := PROPERTIES.search(line):
            function = all_of.functions.setdefault(found[1], Usage(found[1]))
        elif found := FRAME.search(line):
            expect(function, line)
            function.stack, function.spill_stores, function.spill_loads = map(int, found.groups())
        elif found := USED.search(line):
            expect(entry, line)
            entry.registers = int(found[1])
            entry.shared = int(shared[1]) if (shared := SHARED.search(line)) else 0
        elif found := WARNING.search(line):
            all_of.warnings.append(found[1].strip())
    return all_of


def expect(function: Usage | None, line: str) -> None:
    """A line about a function has one to be about."""
    if function is None:
        raise ListingError(f"ptxas printed resources before it named a function: {line.strip()}")


@dataclass
class Code:
    """One function of a cubin. `operations` are its instructions in order, with modifiers, without predicates and
    operands: `LDG.E.128.CONSTANT`. `registers` and `stack` are None where the cubin does not tell."""

    name: str
    operations: list[str] = field(default_factory=list)
    registers: int | None = None
    stack: int | None = None


def disassembled(text: str) -> dict[str, Code]:
    """Reads the output of `cuobjdump -res-usage -sass`."""
    functions: dict[str, Code] = {}
    current = None
    for line in text.splitlines():
        if found := RESOURCES_OF.match(line) or DISASSEMBLED.match(line):
            current = functions.setdefault(found[1], Code(found[1]))
        elif found := RESOURCES.match(line):
            if current is not None:
                current.registers, current.stack = int(found[1]), int(found[2])
        elif found := INSTRUCTION.match(line):
            if current is None:
                raise ListingError(f"cuobjdump printed an instruction before it named a function: {line.strip()}")
            current.operations.append(found[1])
    return functions


@dataclass(frozen=True)
class Variant:
    """One text that the plugin compiles: a source with defines, perhaps with a generated part."""

    name: str
    source: str = ""
    defines: dict[str, str] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return self.name


@dataclass
class Function:
    """A function of one variant for one architecture: what ptxas and cuobjdump say of it."""

    variant: Variant
    arch: int
    usage: Usage
    operations: list[str]

    @property
    def name(self) -> str:
        """As the source has it: entries are `extern "C"`."""
        return self.usage.name

    def __str__(self) -> str:
        return f"{self.variant}: {self.name} (sm_{self.arch})"


def joined(variant: Variant, arch: int, usages: dict[str, Usage], codes: dict[str, Code]) -> Iterator[Function]:
    """Brings both tools' words on one file together. They must agree: the PTX is what the cubin was made of."""
    for name, usage in usages.items():
        code = codes.get(name)
        if code is None and usage.registers is None:
            # A device function that was not inlined is in the text of its callers.
            yield Function(variant, arch, usage, [])
            continue
        what = f"{variant}: {name} (sm_{arch})"
        if code is None or not code.operations:
            raise ListingError(f"{what}: ptxas compiles this entry, and the cubin has no instruction of it")
        if usage.registers is not None and code.registers not in (None, usage.registers):
            raise ListingError(
                f"{what}: ptxas uses {usage.registers} registers, the cubin {code.registers}: "
                "they were not made of one PTX with the same options"
            )
        yield Function(variant, arch, usage, code.operations)
    for name in codes.keys() - usages.keys():
        raise ListingError(f"{variant}: {name} (sm_{arch}): the cubin has a function that ptxas does not name")
