"""Strings by their characters and parts: hashes, encodings, older forms of splitting."""

import numpy as np

from .suite import Suite
from .text import EMPTY, TEXTS, word, words

LINES = words("", " ", "a", " a b ", "a,,b", ",a;b,", ";,", "tab\tand\nline\v", "\u00e9 ,\u20ac")
LONG = words(*("x" * n for n in range(1, 34)), "TensorFlow", b"\xff\xfe", "naïve")
ENCODED = {
    "UTF-8": [b"", b"plain", "h\u00e9\u20ac\U0001f600\u4f60".encode(), b"\xff", b"a\xe2\x82b", b"\xf0\x9f\x98", b"\xc3(", b"\xed\xa0\x80x", b"\xf4\x90\x80\x80y", b"a\x01\tb\nc", b"\xc0\xafz"],
    "UTF-16-BE": ["h\u00e9\u20ac\U0001f600\u4f60".encode("utf-16-be"), b"\xd8\x3d\x01a", b"\x01a\xdc\x01\x01b"],
    "UTF-32-BE": ["h\u00e9\u20ac\U0001f600\u4f60".encode("utf-32-be"), b"\0\0\xd8\x01\0\0\1a"],
    "ISO-8859-1": [b"caf\xe9 \x85\xff"],
    "US-ASCII": [b"plain", b"caf\xe9!"],
}


def parts(folder):
    """StringStrip, StringSplit and StaticRegexReplace."""
    suite = Suite(folder, "string", "StringStrip")
    suite.case("lines", [LINES])
    suite.case("texts", [TEXTS])
    suite.case("empty", [EMPTY])
    suite.case("scalar", [word("  both  ")])
    yield suite.finish()
    suite = Suite(folder, "string", "StringSplit")
    for name, delimiter in {"space": " ", "comma": ",", "several": ",;", "none": ""}.items():
        for skips in (True, False):
            suite.case(f"{name}_{skips}", [LINES, word(delimiter)], {"skip_empty": skips}, const=[1])
            suite.case(f"{name}_{skips}_empty", [EMPTY, word(delimiter)], {"skip_empty": skips}, const=[1])
    suite.error("scalar", [word("a b"), word(" ")])
    suite.error("delimiters", [LINES, words(" ", ",")])
    yield suite.finish()
    suite = Suite(folder, "string", "StaticRegexReplace")
    for name, (pattern, rewrite) in {"words": ("[a-z]+", "<\\0>"), "groups": ("(\\w)(\\w)", "\\2\\1"), "empty": ("", "-"), "no_group": ("a", "\\1"), "spaces": ("\\s+", " ")}.items():
        for everywhere in (True, False):
            suite.case(f"{name}_{everywhere}", [LINES], {"pattern": pattern, "rewrite": rewrite, "replace_global": everywhere})
    suite.error("pattern", [LINES], {"pattern": "(", "rewrite": ""})
    yield suite.finish()


def hashes(folder):
    """StringToHashBucket and StringToHashBucketStrong."""
    suite = Suite(folder, "string", "StringToHashBucket")
    for buckets in (1, 10, 2**62):
        suite.case(f"buckets_{buckets}", [LONG], {"num_buckets": buckets})
    suite.case("empty_text", [word("")], {"num_buckets": 1000})
    yield suite.finish()
    suite = Suite(folder, "string", "StringToHashBucketStrong")
    for name, key in {"zero": [0, 0], "small": [123, 456], "negative": [-1, 2**62]}.items():
        for buckets in (10, 2**62):
            suite.case(f"{name}_{buckets}", [LONG], {"num_buckets": buckets, "key": key})
    suite.case("empty_text", [word("")], {"num_buckets": 1000, "key": [1, 2]})
    suite.error("short_key", [LONG], {"num_buckets": 10, "key": [1]})
    yield suite.finish()


def decoding(folder):
    """UnicodeDecode, UnicodeDecodeWithOffsets and UnicodeTranscode."""
    for op in ("UnicodeDecode", "UnicodeDecodeWithOffsets", "UnicodeTranscode"):
        suite = Suite(folder, "string", op)
        outputs = ("UTF-8", "UTF-16-BE", "UTF-32-BE") if op == "UnicodeTranscode" else ("",)
        for encoding, texts in ENCODED.items():
            for output in outputs:
                for errors in ("replace", "ignore"):
                    for control in (False, True) if encoding == "UTF-8" else (False,):
                        attrs = {"input_encoding": encoding, "errors": errors, "replace_control_characters": control}
                        attrs |= {"output_encoding": output} if output else {}
                        name = "_".join(filter(None, (encoding, output, errors, str(control)))).replace("-", "")
                        suite.case(name, [words(*texts)], attrs)
        attrs = {"input_encoding": "UTF-8", "errors": "strict", "replacement_char": 33}
        attrs |= {"output_encoding": "UTF-8"} if op == "UnicodeTranscode" else {}
        good = [text for text in ENCODED["UTF-8"][:3]]
        suite.case("strict", [words(*good)], attrs)
        suite.case("replaced_by_a_mark", [words(*ENCODED["UTF-8"])], attrs | {"errors": "replace"})
        suite.case("scalar", [word(good[2])], attrs)
        suite.case("matrix", [words(*good[1:], *good[1:], shape=(2, 2))], attrs)
        suite.case("empty", [EMPTY], attrs)
        suite.error("invalid", [words(*ENCODED["UTF-8"])], attrs)
        suite.error("encoding", [words("a")], attrs | {"input_encoding": "no such encoding"})
        yield suite.finish()


def encoding(folder):
    """UnicodeEncode."""
    suite = Suite(folder, "string", "UnicodeEncode")
    codes = np.int32([104, 0xE9, 0x20AC, 0x1F600, 0x4F60, 0xD800, 0x110000, -1, 0xFDD0, 0x1FFFE, 33])
    for output in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
        for errors in ("replace", "ignore"):
            for splits in (np.int64, np.int32):
                attrs = {"output_encoding": output, "errors": errors}
                suite.case(f"{output}_{errors}_{splits.__name__}".replace("-", ""), [codes, splits([0, 2, 2, 7, 11])], attrs, const=[1])
    attrs = {"output_encoding": "UTF-8", "errors": "strict"}
    suite.case("strict", [codes[:5], np.int64([0, 5])], attrs)
    suite.case("none", [codes[:0], np.int64([0])], attrs)
    suite.error("invalid", [codes, np.int64([0, 11])], attrs)
    suite.error("falling", [codes[:5], np.int64([0, 3, 2, 5])], attrs)
    suite.error("beyond", [codes[:5], np.int64([0, 6])], attrs)
    suite.error("no_splits", [codes[:5], np.int64([])], attrs)
    yield suite.finish()


GROUPS = [parts, hashes, decoding, encoding]
