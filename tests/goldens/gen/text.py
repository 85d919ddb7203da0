"""Strings: joining, splitting, searching, formatting, encoding."""

import numpy as np

from .data import COMPLEX, FLOATS, INTS, array, full, normal, seeded, strings
from .suite import Suite


def words(*texts, shape=None):
    """A tensor of strings; text is written as UTF-8."""
    raw = [text.encode() if isinstance(text, str) else text for text in texts]
    return np.array(raw, object).astype("S").reshape((len(raw),) if shape is None else shape)


def word(text):
    """A scalar."""
    return words(text, shape=())


EMPTY = np.zeros(0, "S1")
TEXTS = words("", "a", "Hello, World", "ÀÉΣ ΑΣ ẞ ß ﬁ", "naïve café €", b"\xff\xfeA", b"a\xc3", b"b\xf0\x9fc", b"\x80\x80a\x80b")


def elementwise(folder):
    """Ops that take each string by itself."""
    for op in ("StringLower", "StringUpper"):
        suite = Suite(folder, "string", op)
        for encoding in ("", "utf-8"):
            suite.case(f"encoding_{encoding or 'none'}", [TEXTS], {"encoding": encoding})
            suite.case(f"empty_{encoding or 'none'}", [EMPTY], {"encoding": encoding})
            suite.case(f"scalar_{encoding or 'none'}", [word("aBcÄ")], {"encoding": encoding})
        suite.case("matrix", [strings(seeded(op), (5, 7))])
        suite.error("encoding", [TEXTS], {"encoding": "latin"})
        suite.error("dtype", [np.int32([1])])
        yield suite.finish()
    suite = Suite(folder, "string", "StringLength")
    for unit in ("BYTE", "UTF8_CHAR"):
        suite.case(unit, [TEXTS], {"unit": unit})
        suite.case(f"{unit}_empty", [EMPTY.reshape(2, 0)], {"unit": unit})
        suite.case(f"{unit}_scalar", [word("naïve")], {"unit": unit})
        suite.case(f"{unit}_many", [strings(seeded(unit), (101,))], {"unit": unit})
    suite.error("unit", [TEXTS], {"unit": "WORD"})
    yield suite.finish()
    suite = Suite(folder, "string", "StringToHashBucketFast")
    rng = seeded("hash")
    long = words(*(bytes(rng.integers(1, 256, length).astype(np.uint8)) for length in range(140)))
    for buckets in (1, 10, 2**62):
        suite.case(f"buckets_{buckets}", [long], {"num_buckets": buckets})
    suite.case("scalar", [word("x")], {"num_buckets": 7})
    suite.case("empty", [EMPTY], {"num_buckets": 7})
    suite.error("no_buckets", [long], {"num_buckets": 0})
    yield suite.finish()


def base64(folder):
    """EncodeBase64 and DecodeBase64."""
    rng = seeded("base64")
    raw = words(*(bytes(rng.integers(1, 256, length).astype(np.uint8)) for length in range(40)))
    suite = Suite(folder, "string", "EncodeBase64")
    for pad in (False, True):
        suite.case(f"pad_{pad}", [raw], {"pad": pad})
        suite.case(f"pad_{pad}_scalar", [word(b"\xfb\xff\xbf\x01")], {"pad": pad})
        suite.case(f"pad_{pad}_empty", [EMPTY], {"pad": pad})
    yield suite.finish()
    suite = Suite(folder, "string", "DecodeBase64")
    suite.case("texts", [words("", "YQ", "YQ==", "YWI", "YWI=", "YWJj", "-_-_", "YR", "YWJjYQ", "_v8B", "YWJjYQ==")])
    suite.case("scalar", [word("YWJj")])
    suite.case("empty", [EMPTY.reshape(0, 3)])
    wrong = {"one": "a", "one_pad": "YQ=", "pad_after_all": "YWJj=", "standard": "+/+/", "inside": "YQ==YQ=="}
    wrong |= {"space": "Y Q", "line": "YQ\n", "three_pads": "YQ===", "pad": "=", "pads": "====", "one_and_pads": "Y==="}
    for name, text in (wrong | {"bytes": b"\xff\xff"}).items():
        suite.error(name, [words("YWJj", text)])
    yield suite.finish()


def numbers(folder):
    """AsString and StringToNumber."""
    suite = Suite(folder, "string", "AsString")
    forms = {"plain": {}, "width": {"width": 12}, "zeros": {"width": 12, "fill": "0"}, "left": {"width": 12, "fill": "-"}}
    forms |= {"plus": {"fill": "+"}, "space": {"fill": " "}, "hash": {"fill": "#"}}
    float_forms = {"scientific": {"scientific": True}, "shortest": {"shortest": True}, "none": {"precision": 0}}
    float_forms |= {"two": {"precision": 2}, "many": {"precision": 40}, "short": {"precision": 3, "shortest": True}}
    float_forms |= {"short_zeros": {"shortest": True, "fill": "0", "width": 9}, "few": {"scientific": True, "precision": 0}}
    float_forms |= {"short_hash": {"shortest": True, "fill": "#"}, "no_point": {"precision": 0, "fill": "#"}}
    for dtype in FLOATS:
        x = np.concatenate([[0.0, -0.0, 1.5, -0.1, 1 / 3, 12345.678, 0.5, 2.5, 0.0001, 0.00001234, 99999.95, 6e4], [np.nan, np.inf, -np.inf]])
        x = array(np.concatenate([x, normal(seeded(dtype), "double", (9,), 100.0)]), dtype)
        for name, attrs in (forms | float_forms).items():
            suite.case(f"{dtype}_{name}", [x], attrs)
    suite.case("double_large", [np.float64([1e300, -1e-300, 1e22, 123456789012345678, 5e-324])])
    suite.case("double_large_shortest", [np.float64([1e300, -1e-300, 1e22, 123456789012345678])], {"shortest": True})
    for dtype in COMPLEX:
        x = normal(seeded(dtype), dtype, (5,))
        for name in ("plain", "width", "plus", "shortest", "two"):
            suite.case(f"{dtype}_{name}", [x], (forms | float_forms)[name])
    for dtype in INTS:
        info = np.iinfo(dtype)
        x = np.array([0, 1, info.min, info.max, 42], dtype)
        for name, attrs in forms.items():
            suite.case(f"{dtype}_{name}", [x], attrs)
    for name, attrs in forms.items():
        suite.case(f"bool_{name}", [np.array([True, False])], attrs)
        suite.case(f"string_{name}", [words("", "abc", "longer than twelve")], attrs)
    suite.case("scalar", [np.float32(2.5)])
    suite.case("empty", [np.zeros((2, 0), np.float32)])
    suite.case("many", [full(seeded("many"), "int32", (7, 11))])
    one = [np.float32([1])]
    suite.error("both", one, {"scientific": True, "shortest": True})
    suite.error("fill", one, {"fill": "x"})
    suite.error("two_fills", one, {"fill": "-0"})
    suite.error("precise_integer", [np.int32([1])], {"precision": 2})
    suite.error("scientific_integer", [np.int64([1])], {"scientific": True})
    suite.error("shortest_bool", [np.array([True])], {"shortest": True})
    yield suite.finish()
    suite = Suite(folder, "string", "StringToNumber")
    whole = ["0", "1", " 42 ", "+7", "\t5\n", "007"]
    fractions = ["1.", ".5", "-0", "1e3", "1E-5", "2.5e+2", "inf", "-Infinity", "nan", "NaN", "0x1F", "-0x1p3", "0x1.8p1", "1e400", "1e-400"]
    fractions += ["0.1", "3.4028235e38", "1.17549435e-38", "123456789.123456789", "16777217", "9007199254740993", "-1e-30"]
    limits = {"int32": ["-2147483648", "2147483647"], "uint32": ["4294967295"], "uint64": ["18446744073709551615"]}
    limits |= {"int64": ["-9223372036854775808", "9223372036854775807"], "float": fractions, "double": fractions}
    for dtype, more in limits.items():
        suite.case(dtype, [words(*whole, *more)], {"out_type": dtype})
        suite.case(f"{dtype}_scalar", [word("12")], {"out_type": dtype})
        suite.case(f"{dtype}_empty", [EMPTY.reshape(3, 0)], {"out_type": dtype})
        for name, text in {"nothing": "", "letter": "1x", "blank": " ", "sign": "-", "two": "1 2", "signs": "--1", "apart": "+ 1"}.items():
            suite.error(f"{dtype}_{name}", [words("1", text)], {"out_type": dtype})
    for dtype, text in {"int32": "2147483648", "uint32": "-1", "int64": "9223372036854775808", "uint64": "-0"}.items():
        suite.error(f"{dtype}_too_large", [words(text)], {"out_type": dtype})
        suite.error(f"{dtype}_fraction", [words("1.5")], {"out_type": dtype})
        suite.error(f"{dtype}_hexadecimal", [words("0x1F")], {"out_type": dtype})
    for name, text in {"point": ".", "exponent": "1e", "hexadecimal": "0x", "suffix": "1f", "underscore": "1_0"}.items():
        suite.error(f"float_{name}", [words(text)], {"out_type": "float"})
    yield suite.finish()


def joining(folder):
    """StringJoin, ReduceJoin and StringSplitV2."""
    suite = Suite(folder, "string", "StringJoin")
    a, b = strings(seeded("a"), (3, 2)), strings(seeded("b"), (3, 2))
    suite.case("two", [a, b], {"separator": "-"})
    suite.case("three_with_scalars", [word("x"), a, word("é")], {"separator": ", "})
    suite.case("scalars", [word("a"), word("b"), word("")])
    suite.case("one", [a])
    suite.case("none", [], {"N": 0})
    suite.case("empty", [EMPTY, EMPTY])
    suite.case("empty_and_scalar", [EMPTY, word("a")])
    suite.error("shapes", [words("a"), words("b", "c")])
    suite.error("ranks", [words("a"), words("b", shape=(1, 1))])
    yield suite.finish()
    suite = Suite(folder, "string", "ReduceJoin")
    x = strings(seeded("reduce"), (2, 3, 4))
    for keep in (False, True):
        for axes in ([0], [1], [2], [-1], [0, 1], [1, 0], [2, 0, 1], [-1, 0], []):
            name = "_".join(str(axis).replace("-", "m") for axis in axes) or "none"
            suite.case(f"axes_{name}_{keep}", [x, np.int32(axes)], {"keep_dims": keep, "separator": "."}, const=[1])
        suite.case(f"empty_{keep}", [EMPTY.reshape(2, 0), np.int32([1])], {"keep_dims": keep}, const=[1])
    suite.case("no_rows", [EMPTY.reshape(0, 2), np.int32([1])], const=[1])
    suite.case("scalar", [word("a"), np.zeros(0, np.int32)], const=[1])
    suite.case("scalar_axis", [x, np.int32(1)], const=[1])
    for name, axes in {"twice": [0, 0], "twice_mixed": [0, -3], "too_large": [3], "too_small": [-4]}.items():
        suite.error(name, [x, np.int32(axes)], const=[1])
    yield suite.finish()
    suite = Suite(folder, "string", "StringSplitV2")
    spaced = words("a b  c", "", " x ", "a\tb\nc\x0bd\x0ce\rf", "  ", "one", b"\xa0 \xff")
    listed = words("a,b,,c", "", ",", "abc", "a, b", ",,")
    for most in (-1, 0, 1, 2, -2):
        suite.case(f"words_{most}".replace("-", "m"), [spaced, word("")], {"maxsplit": most})
        suite.case(f"commas_{most}".replace("-", "m"), [listed, word(",")], {"maxsplit": most})
    suite.case("long_separator", [words("a--b--", "---", "aaa"), word("--")])
    suite.case("overlapping", [words("aaa", "aaaa"), word("aa")])
    suite.case("unicode", [words("1€2€", "€"), word("€")])
    suite.case("empty", [EMPTY, word(",")])
    suite.error("matrix", [listed.reshape(2, 3), word(",")])
    suite.error("separators", [listed, words(",")])
    yield suite.finish()


def substrings(folder):
    """Substr."""
    suite = Suite(folder, "string", "Substr")
    texts = words("hello", "naïve", "€uro", b"\x80\x80a\x80b", "abcdef", shape=(5, 1))
    for dtype in ("int32", "int64"):
        for unit in ("BYTE", "UTF8_CHAR"):

            def add(name, text, pos, length):
                inputs = [text, np.array(pos, dtype), np.array(length, dtype)]
                suite.case(f"{dtype}_{unit}_{name}", inputs, {"unit": unit})

            add("scalar", texts, 1, 2)
            add("negative", texts, -2, 2)
            add("all", texts, 0, 1000)
            add("nothing", texts, 2, 0)
            add("negative_length", texts, 1, -1)
            add("each", texts, [[0], [1], [2], [-1], [3]], [[1], [3], [2], [1], [9]])
            add("broadcast", texts, [0, 1, -1], [2, 1, 4])
            add("one_text", word("abc"), [[0, 1], [2, 3]], [[1, 1], [1, 1]])
            add("end", words("abc"), 3, 1)
            add("empty", EMPTY, 0, 1)
            add("empty_text", words("", ""), 0, 5)
            for name, pos in {"after": 7, "before": -7}.items():
                inputs = [texts, np.array(pos, dtype), np.array(1, dtype)]
                suite.error(f"{dtype}_{unit}_{name}", inputs, {"unit": unit})
    suite.error("shapes", [texts, np.int32(0), np.int32([1])])
    suite.error("broadcast", [words("a", "b", "c"), np.int32([0, 1]), np.int32([1, 1])])
    yield suite.finish()


# Pattern, rewriting, texts.
REWRITES = [
    (r"b*", "-", ["abcabc", "", "bbb"]),
    (r"(a)(b)", r"\2\1\0\\", ["abc", "xabab"]),
    (r"(a)", r"\2", ["abc"]),
    (r"a", r"x\y", ["abc", "aa"]),
    (r"a", "x\\", ["abca"]),
    (r"\w", "x", ["aé1 b٣_"]),
    (r"\W", "x", ["aéb-"]),
    (r"[\W]", "x", ["aéb-"]),
    (r"\d+", "#", ["a12é٣4"]),
    (r"\D", "#", ["a12"]),
    (r"\s", "_", ["a b\tc\x0bd\n"]),
    (r"\S+", "_", ["a b\tc\x0bd\n"]),
    (r".", "x", [b"a\xffb", "é", "a\nb"]),
    (r"(?s).", "x", ["a\nb"]),
    (r"\b", "|", ["éa b", "", "abc"]),
    (r"\B", "|", ["abc"]),
    (r"a{", "x", ["a{b"]),
    (r"a{,3}", "x", ["a{,3}"]),
    (r"a{2,3}?", "x", ["aaaaa"]),
    (r"\<", "x", ["a<b"]),
    (r"[a&&b]", "x", ["a&&bc"]),
    (r"[[a]", "x", ["a[b"]),
    (r"[]a]", "x", ["a]b"]),
    (r"[\^a-]", "x", ["^a-b"]),
    (r"[a~~b]", "x", ["a~~b"]),
    (r"[^a]", "x", ["abc\n"]),
    (r"[[:space:]]|[[:^alpha:]]", "x", ["a b1"]),
    (r"[\v\d]", "x", ["a\x0b1"]),
    (r"\Qa.b\E+", "x", ["a.bb axb"]),
    (r"\C", "x", ["é"]),
    (r"(?i)x", "-", ["aXbx"]),
    ("(?i)\u212a", "x", ["kK"]),
    ("(?i)σ", "x", ["Σσς"]),
    (r"b$", "x", ["ab\n", "ab"]),
    (r"(?m)^a|b$", "x", ["a\nab\n"]),
    (r"\x20|\x{3b1}|\001|\n", "x", ["a α\x01\nb"]),
    (r"\p{Greek}+|\pN|\P{L}", "x", ["αβ1-a"]),
    (r"(?P<n>a+)b", r"[\1]", ["aab"]),
    (r"(?:a|ab)(c)?", r"<\1>", ["abac"]),
    ("", "-", ["éé", "", b"\xff\xfe", "ab"]),
    (r"a|", "-", ["ab", "ba"]),
    (r"(a*)*", "x", ["aab"]),
    (r"(?U)a+", "x", ["aa"]),
    (r"b\z", "x", ["bab"]),
    (r"\_\#\-", "x", ["_#-"]),
    (r"a.*?c", "<\\0>", ["abcabc"]),
    (r"^", ">", ["ab"]),
]
REFUSED = ["(", ")", "a**", "*", "a*+", "a{2}{3}", "a{1001}", "a{3,2}", r"\1", r"\Z", r"\e", "\\é", "(?=a)", "(?<=a)", "(?x)a", "[a--b]", "[a", "a\\", "[b-a]", r"\pX"]


def expressions(folder):
    """RegexReplace and RegexFullMatch."""
    suite = Suite(folder, "string", "RegexReplace")
    for number, (pattern, rewrite, texts) in enumerate(REWRITES):
        for every in (True, False):
            inputs = [words(*texts), word(pattern), word(rewrite)]
            suite.case(f"{number}_{'all' if every else 'first'}", inputs, {"replace_global": every}, const=[1, 2])
    suite.case("scalar", [word("abc"), word("b"), word("")])
    suite.case("empty", [EMPTY, word("b"), word("")])
    for number, pattern in enumerate(REFUSED):
        suite.error(str(number), [words("a"), word(pattern), word("")], const=[1, 2])
    suite.error("patterns", [words("a"), words("a"), word("")])
    suite.error("rewritings", [words("a"), word("a"), words("")])
    yield suite.finish()
    suite = Suite(folder, "string", "RegexFullMatch")
    texts = words("", "a", "ab", "abc", "a\nc", "é", b"\xff", "ABC", "abcabc")
    for number, pattern in enumerate(["a|abc", "", ".*", "(?s).*", "a.c", "(?i)abc", "(abc)+", "[a-c]*", "é|.", "^abc$", r"\w+", "a*?"]):
        suite.case(str(number), [texts, word(pattern)], const=[1])
    suite.case("scalar", [word("a"), word("a")])
    suite.case("empty", [EMPTY.reshape(0, 2), word("a")])
    suite.error("pattern", [texts, word("a(")], const=[1])
    suite.error("patterns", [texts, words("a")])
    yield suite.finish()


def formatting(folder):
    """StringFormat."""
    suite = Suite(folder, "string", "StringFormat")

    def add(name, inputs, **attrs):
        suite.case(name, inputs, attrs)

    rng = seeded("format")
    for dtype in FLOATS:
        x = array([0.1, 1 / 3, 1e4, 1e-4, 123.456, np.nan, np.inf, -np.inf, -0.0, 0.3, 1000000, 1234567.0, 6e4], dtype)
        for summarize in (3, -1):
            add(f"{dtype}_{summarize}".replace("-", "m"), [x], summarize=summarize)
        add(f"{dtype}_many", [normal(rng, dtype, (37,))], summarize=-1)
    for dtype in INTS:
        add(dtype, [full(rng, dtype, (2, 9))])
    for dtype in COMPLEX:
        add(dtype, [normal(rng, dtype, (2, 2))])
        add(f"{dtype}_scalar", [normal(rng, dtype, ())])
        add(f"{dtype}_many", [normal(rng, dtype, (5, 2))])
    add("bool", [np.array([True, False, True])])
    add("string", [words("a", "é\n\"q'\\", b"\xff\x01", "\t\r")])
    add("string_scalar", [word("a")])
    for shape in [(), (1,), (7,), (2, 3), (2, 3, 4), (9, 8), (7, 1, 7), (0,), (0, 3), (2, 0), (1, 2, 1, 3)]:
        x = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
        for summarize in (3, 1, 0, -1):
            add(f"{'x'.join(map(str, shape)) or 'scalar'}_{summarize}".replace("-", "m"), [x], summarize=summarize)
    add("two", [np.int32(1), np.float32([2, 3])], template="a{}b{}c", placeholder="{}")
    add("none", [], template="abc", placeholder="{}")
    add("empty_template", [], template="")
    add("no_placeholder", [np.int32(1)], template="%s", placeholder="")
    add("unicode", [np.int32(1)], template="é€é", placeholder="€")
    suite.error("few", [np.int32(1)], {"template": "a{}b{}", "placeholder": "{}"})
    suite.error("many", [np.int32(1)], {"template": "a"})
    yield suite.finish()


GROUPS = [elementwise, base64, numbers, joining, substrings, expressions, formatting]
