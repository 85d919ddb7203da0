"""Records of bytes and text, names of files, and messages. What reads or writes files has tests of its own."""

import numpy as np

from .data import seeded, strings
from .suite import Suite
from .text import EMPTY, word, words

RAW = ["half", "bfloat16", "float", "double", "bool", "uint8", "int8", "int16", "uint16", "int32", "int64", "complex64", "complex128"]


def raw(folder):
    """DecodeRaw."""
    suite = Suite(folder, "io", "DecodeRaw")
    rng = seeded("raw")

    def text(length, dtype):
        # TensorFlow copies what is no truth value too; the last byte must not be NUL.
        if dtype == "bool":
            return bytes(rng.integers(0, 2, length - 1).astype(np.uint8)) + b"\1"
        return bytes(rng.integers(1, 256, length).astype(np.uint8))

    for dtype in RAW:
        for little in (True, False):
            attrs = {"out_type": dtype, "little_endian": little}
            suite.case(f"{dtype}_{little}", [words(*(text(48, dtype) for _ in range(6)), shape=(2, 3))], attrs)
            suite.case(f"{dtype}_{little}_scalar", [word(text(16, dtype))], attrs)
            suite.case(f"{dtype}_{little}_empty", [EMPTY.reshape(0, 2)], attrs)
            suite.case(f"{dtype}_{little}_nothing", [words("", "")], attrs)
    suite.error("lengths", [words("abcd", "abc")], {"out_type": "uint8"})
    suite.error("part", [words("abc")], {"out_type": "int16"})
    suite.error("dtype", [words("abc")], {"out_type": "string"})
    yield suite.finish()


INTEGER, NO_INTEGER, FLOAT, TEXT, NO_TEXT = np.int32([7]), np.zeros(0, np.int32), np.float32([1.5]), words("d"), EMPTY


def csv(folder):
    """DecodeCSV."""
    suite = Suite(folder, "io", "DecodeCSV")

    def add(name, records, defaults, **given):
        records = records if isinstance(records, np.ndarray) else words(*records)
        suite.case(name, [records, *defaults], given)

    def refuse(name, records, defaults, **given):
        suite.error(name, [words(*records), *defaults], given)

    add("integers", ["1,2", "3,", " 4 , 5", '"6","7"', ",8"], [INTEGER, INTEGER])
    add("types", ['1,2.5,1e300,-9,"a ""q"" b"', ",,,,"], [INTEGER, FLOAT, np.float64([2.0]), np.int64([3]), TEXT])
    add("scalar_defaults", [","], [np.int32(5), np.float32(0.5)])
    add("scalar", word("1,2"), [INTEGER, INTEGER])
    add("matrix", words("1,a", "2,b", "3,c", "4,d", shape=(2, 2)), [INTEGER, TEXT])
    add("empty", EMPTY, [INTEGER, TEXT])
    add("required", ["1,a"], [NO_INTEGER, NO_TEXT])
    add("quotes", ['"a,b",c', '"",""', '"a\nb",c', '"a",'], [TEXT, TEXT])
    add("no_quotes", ['a"b,"c"', '",'], [TEXT, TEXT], use_quote_delim=False)
    add("not_available", ["NA,NA", '"NA",x', "1,NA"], [words("q"), TEXT], na_value="NA")
    add("semicolon", ["a;b,c", ";"], [TEXT, TEXT], field_delim=";")
    add("tab", ["1\tb"], [INTEGER, TEXT], field_delim="\t")
    add("some", ["1,2,3", "4,x,"], [INTEGER, INTEGER], select_cols=[0, 2])
    add("some_first", ['1,2,x"y'], [INTEGER, INTEGER], select_cols=[0, 1])
    add("last_empty", ["1,2,"], [INTEGER], select_cols=[2])
    add("floats", ["inf,nan,0x10,1e400"], [FLOAT] * 4)
    add("leading_line", ["\na,\r\nb"], [TEXT, TEXT])
    refuse("few", ["1"], [INTEGER, INTEGER])
    refuse("many", ["1,2,3"], [INTEGER, INTEGER])
    refuse("nothing", [""], [TEXT])
    refuse("letter", ["1,x"], [INTEGER, INTEGER])
    refuse("large", ["3000000000"], [INTEGER])
    refuse("missing", [",2"], [NO_INTEGER, INTEGER])
    refuse("missing_text", ["a,"], [TEXT, NO_TEXT])
    refuse("open_quote", ['1,"a'], [INTEGER, TEXT])
    refuse("only_quote", ['"'], [TEXT])
    refuse("quote_inside", ['1,"a"b'], [INTEGER, TEXT])
    refuse("quote_in_plain", ['1,a"b'], [INTEGER, TEXT])
    refuse("after_quote", ['a,"b" '], [TEXT, TEXT])
    refuse("line", ["a\nb,c"], [TEXT, TEXT])
    refuse("last_line", ["a,b\r\n"], [TEXT, TEXT])
    refuse("two_defaults", ["1,2"], [np.int32([1, 2]), INTEGER])
    refuse("matrix_default", ["1"], [np.int32([[1]])])
    refuse("delimiters", ["a"], [TEXT], field_delim="ab")
    refuse("no_delimiter", ["a"], [TEXT], field_delim="")
    refuse("columns_backwards", ["1,2,3"], [INTEGER, INTEGER], select_cols=[2, 0])
    refuse("columns_twice", ["1,2,3"], [INTEGER, INTEGER], select_cols=[1, 1])
    refuse("columns_negative", ["1,2,3"], [INTEGER, INTEGER], select_cols=[-1, 0])
    refuse("columns_few", ["1,2,3"], [INTEGER, INTEGER], select_cols=[0])
    refuse("column_absent", ["1,2"], [INTEGER], select_cols=[5])
    yield suite.finish()


def names(folder):
    """ShardedFilename and ShardedFilespec."""
    suite = Suite(folder, "io", "ShardedFilename")
    for shard, count in ((0, 1), (3, 123456), (-3, -1), (99999, 100000)):
        suite.case(f"{shard}_{count}".replace("-", "m"), [word("a/b é"), np.int32(shard), np.int32(count)])
    suite.error("names", [words("a"), np.int32(0), np.int32(1)])
    suite.error("shards", [word("a"), np.int32([0]), np.int32(1)])
    yield suite.finish()
    suite = Suite(folder, "io", "ShardedFilespec")
    for count in (1, 12, 123456, -1):
        suite.case(str(count).replace("-", "m"), [word("a/b"), np.int32(count)])
    suite.error("names", [words("a"), np.int32(1)])
    yield suite.finish()


def messages(folder):
    """Assert, Print and Timestamp; what PrintV2 writes has a test of its own."""
    suite = Suite(folder, "logging", "Assert")
    suite.case("holds", [np.bool_(True), np.float32([1])])
    suite.error("fails", [np.bool_(False), np.float32([1])])
    suite.error("vector", [np.array([True]), np.float32([1])])
    yield suite.finish()
    suite = Suite(folder, "logging", "Print")
    for name, x in {"float": np.float32([[1, 2]]), "string": strings(seeded("print"), (3,)), "bool": np.bool_(True)}.items():
        suite.case(name, [x, np.int32([1, 2])], {"message": "golden ", "first_n": 0})
    suite.case("alone", [np.zeros((0, 2), np.int64)], {"first_n": 0})
    yield suite.finish()
    suite = Suite(folder, "logging", "Timestamp")
    suite.case("now", [], shape_only=(0,))
    yield suite.finish()


GROUPS = [raw, csv, names, messages]
