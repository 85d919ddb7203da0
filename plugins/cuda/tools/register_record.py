"""registers.tsv: what each entry takes, as last recorded, and what differs from it now."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from listing import Function

FIELDS = ("variant", "entry", "arch", "registers", "shared", "stack", "spills")
Key = tuple[str, str, int]
Row = tuple[int, int, int, int]


class RecordError(Exception):
    """The record does not have its form."""


def rows(functions: Iterable[Function]) -> dict[Key, Row]:
    """The record of these functions, entries only, in order."""
    entries = [function for function in functions if function.usage.registers is not None]
    told = {}
    for function in sorted(entries, key=lambda function: (function.variant.name, function.name, function.arch)):
        usage = function.usage
        told[function.variant.name, function.name, function.arch] = (
            usage.registers, usage.shared, usage.stack, usage.spills,
        )
    return told


def write(path: Path, told: dict[Key, Row]) -> None:
    """Lays the record down."""
    lines = ["\t".join(FIELDS), *("\t".join(map(str, key + row)) for key, row in told.items())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read(path: Path) -> dict[Key, Row]:
    """Reads the record."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines or lines[0] != "\t".join(FIELDS):
        raise RecordError(f"{path}: expected the head {' '.join(FIELDS)}: write it anew by --write")
    told = {}
    for number, line in enumerate(lines[1:], 2):
        try:
            variant, entry, *values = line.split("\t")
            arch, registers, shared, stack, spills = map(int, values)
        except ValueError as error:
            raise RecordError(f"{path}:{number}: expected {len(FIELDS)} fields: {line!r}") from error
        told[variant, entry, arch] = (registers, shared, stack, spills)
    return told


def differences(was: dict[Key, Row], now: dict[Key, Row], archs: list[int]) -> Iterator[str]:
    """What a reader of the record would be told wrong; of the architectures looked at."""
    for key in sorted({key for key in was.keys() | now.keys() if key[2] in archs}):
        variant, entry, arch = key
        what = f"{variant}: {entry} (sm_{arch})"
        if key not in was:
            yield f"{what}: new, {described(now[key])}"
        elif key not in now:
            yield f"{what}: gone"
        elif was[key] != now[key]:
            yield f"{what}: {described(was[key])} recorded, {described(now[key])} found"


def described(row: Row) -> str:
    """A row in words."""
    names = ("registers", "bytes of shared memory", "of stack", "of spills")
    parts = [f"{value} {name}" for value, name in zip(row, names, strict=True) if value or name == "registers"]
    return ", ".join(parts)


def grown(was: dict[Key, Row], now: dict[Key, Row], limit: int) -> Iterator[str]:
    """Entries that need many more registers than recorded."""
    for key in sorted(was.keys() & now.keys()):
        if now[key][0] > was[key][0] + limit:
            variant, entry, arch = key
            yield (
                f"{variant}: {entry} (sm_{arch}): {now[key][0]} registers, {was[key][0]} recorded: more than "
                f"{limit} above it; look at the change, and if it is meant record it by --write"
            )
