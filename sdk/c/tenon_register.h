/*
 * tenon_register.h - registrations in C, each said once: the definition that the host gets and the line of the
 * manifest that it is compared with are made of the same words. Included by tenon_plugin.h. In C++,
 * TENON_REGISTER of tenon.hpp does the same.
 *
 *     TENON_OP("Cube", inputs("x: T"), outputs("y: T"), attrs("T: {float, double}"),
 *              shape(tenon_shape_of_first), summary("The third power."));
 *     TENON_TABLE(cube_table, .compute = cube);
 *     TENON_KERNEL("Cube", "CPU", cube_table, types(T, float), numerics(tenon_exact));
 *     TENON_KERNEL("Cube", "CPU", cube_avx2_table, types(T, float), numerics(tenon_exact),
 *                  label("avx2"), priority(1), features("avx2", "fma"), in_place((0, 0)));
 *
 * After what is required come words, in any order, each at most once and at most 16 of them. None is needed.
 *
 *   of an op:      inputs(TEXT, ...)  outputs(TEXT, ...)  attrs(TEXT, ...)  cases(TEXT, ...)  summary(TEXT)
 *                  bench(TEXT, ...)  flops(TEXT)  bytes(TEXT)  description(TEXT)  shape(FUNCTION)  flags(TENON_OP_FLAG_...)  stateful  commutative
 *                  facts(.FIELD = VALUE, ...)  ext(LINK)
 *   of a kernel:   types(ATTRIBUTE, TYPE, ...)  type_lists((ATTRIBUTE, TYPE, ...), ...)  label(TEXT)
 *                  priority(NUMBER)  on_request  features(TEXT, ...)  host_memory(TEXT, ...)
 *                  keeps_denormals  checks_shapes  in_place((INPUT, OUTPUT), ...)  numerics(CONTRACT)  cost(FIXED_NS, PER_ELEMENT_NS)  ext(LINK)
 *   of a device:   priority(NUMBER)  ext(LINK)
 *
 * A list of texts or types has at most 24 items, one of lists or pairs 8. A TEXT is a string literal without
 * quotation marks and backslashes; a NUMBER is written as digits, with a sign or without: both go into the manifest
 * as they are. ATTRIBUTE and TYPE are plain words: T, float. Of `flags`, `stateful` and `commutative` there is at most
 * one. The FIELDs of `facts` are those of TenonFacts: `facts(.flags = TENON_FACT_ELEMENTWISE, .refusal =
 * TENON_REFUSES_NOTHING)`. `ext` is the address of the header of a link of your own; `facts`, `cases`, `bench`
 * with `flops` and `bytes`, and `cost` are links before it.
 */
#ifndef TENON_REGISTER_H
#define TENON_REGISTER_H

/* The number of arguments, 1 to 25, as digits to paste. */
#define TENON_COUNT(...) \
    TENON_COUNT_OF(__VA_ARGS__, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, \
                   2, 1, 0)
#define TENON_COUNT_OF(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, count, ...) count

/* Each word with a prefix pasted to it. A list of words ends in the word `end`. */
#define TENON_WORDS(p, ...) TENON_JOIN(TENON_WORDS_, TENON_COUNT(__VA_ARGS__))(p, __VA_ARGS__)
#define TENON_WORDS_1(p, w) p##w
#define TENON_WORDS_2(p, w, ...) p##w TENON_WORDS_1(p, __VA_ARGS__)
#define TENON_WORDS_3(p, w, ...) p##w TENON_WORDS_2(p, __VA_ARGS__)
#define TENON_WORDS_4(p, w, ...) p##w TENON_WORDS_3(p, __VA_ARGS__)
#define TENON_WORDS_5(p, w, ...) p##w TENON_WORDS_4(p, __VA_ARGS__)
#define TENON_WORDS_6(p, w, ...) p##w TENON_WORDS_5(p, __VA_ARGS__)
#define TENON_WORDS_7(p, w, ...) p##w TENON_WORDS_6(p, __VA_ARGS__)
#define TENON_WORDS_8(p, w, ...) p##w TENON_WORDS_7(p, __VA_ARGS__)
#define TENON_WORDS_9(p, w, ...) p##w TENON_WORDS_8(p, __VA_ARGS__)
#define TENON_WORDS_10(p, w, ...) p##w TENON_WORDS_9(p, __VA_ARGS__)
#define TENON_WORDS_11(p, w, ...) p##w TENON_WORDS_10(p, __VA_ARGS__)
#define TENON_WORDS_12(p, w, ...) p##w TENON_WORDS_11(p, __VA_ARGS__)
#define TENON_WORDS_13(p, w, ...) p##w TENON_WORDS_12(p, __VA_ARGS__)
#define TENON_WORDS_14(p, w, ...) p##w TENON_WORDS_13(p, __VA_ARGS__)
#define TENON_WORDS_15(p, w, ...) p##w TENON_WORDS_14(p, __VA_ARGS__)
#define TENON_WORDS_16(p, w, ...) p##w TENON_WORDS_15(p, __VA_ARGS__)
#define TENON_WORDS_17(p, w, ...) p##w TENON_WORDS_16(p, __VA_ARGS__)

/* A macro over each item, with `s` between them; `s` is TENON_COMMA or TENON_COMMA_TEXT. */
#define TENON_MAP(m, s, ...) TENON_JOIN(TENON_MAP_, TENON_COUNT(__VA_ARGS__))(m, s, __VA_ARGS__)
#define TENON_COMMA() ,
#define TENON_COMMA_TEXT() ","
#define TENON_MAP_1(m, s, a) m(a)
#define TENON_MAP_2(m, s, a, ...) m(a) s() TENON_MAP_1(m, s, __VA_ARGS__)
#define TENON_MAP_3(m, s, a, ...) m(a) s() TENON_MAP_2(m, s, __VA_ARGS__)
#define TENON_MAP_4(m, s, a, ...) m(a) s() TENON_MAP_3(m, s, __VA_ARGS__)
#define TENON_MAP_5(m, s, a, ...) m(a) s() TENON_MAP_4(m, s, __VA_ARGS__)
#define TENON_MAP_6(m, s, a, ...) m(a) s() TENON_MAP_5(m, s, __VA_ARGS__)
#define TENON_MAP_7(m, s, a, ...) m(a) s() TENON_MAP_6(m, s, __VA_ARGS__)
#define TENON_MAP_8(m, s, a, ...) m(a) s() TENON_MAP_7(m, s, __VA_ARGS__)
#define TENON_MAP_9(m, s, a, ...) m(a) s() TENON_MAP_8(m, s, __VA_ARGS__)
#define TENON_MAP_10(m, s, a, ...) m(a) s() TENON_MAP_9(m, s, __VA_ARGS__)
#define TENON_MAP_11(m, s, a, ...) m(a) s() TENON_MAP_10(m, s, __VA_ARGS__)
#define TENON_MAP_12(m, s, a, ...) m(a) s() TENON_MAP_11(m, s, __VA_ARGS__)
#define TENON_MAP_13(m, s, a, ...) m(a) s() TENON_MAP_12(m, s, __VA_ARGS__)
#define TENON_MAP_14(m, s, a, ...) m(a) s() TENON_MAP_13(m, s, __VA_ARGS__)
#define TENON_MAP_15(m, s, a, ...) m(a) s() TENON_MAP_14(m, s, __VA_ARGS__)
#define TENON_MAP_16(m, s, a, ...) m(a) s() TENON_MAP_15(m, s, __VA_ARGS__)
#define TENON_MAP_17(m, s, a, ...) m(a) s() TENON_MAP_16(m, s, __VA_ARGS__)
#define TENON_MAP_18(m, s, a, ...) m(a) s() TENON_MAP_17(m, s, __VA_ARGS__)
#define TENON_MAP_19(m, s, a, ...) m(a) s() TENON_MAP_18(m, s, __VA_ARGS__)
#define TENON_MAP_20(m, s, a, ...) m(a) s() TENON_MAP_19(m, s, __VA_ARGS__)
#define TENON_MAP_21(m, s, a, ...) m(a) s() TENON_MAP_20(m, s, __VA_ARGS__)
#define TENON_MAP_22(m, s, a, ...) m(a) s() TENON_MAP_21(m, s, __VA_ARGS__)
#define TENON_MAP_23(m, s, a, ...) m(a) s() TENON_MAP_22(m, s, __VA_ARGS__)
#define TENON_MAP_24(m, s, a, ...) m(a) s() TENON_MAP_23(m, s, __VA_ARGS__)

/* The same again, for a list within a list: a macro is not expanded within itself. */
#define TENON_EACH(m, s, ...) TENON_JOIN(TENON_EACH_, TENON_COUNT(__VA_ARGS__))(m, s, __VA_ARGS__)
#define TENON_EACH_1(m, s, a) m a
#define TENON_EACH_2(m, s, a, ...) m a s() TENON_EACH_1(m, s, __VA_ARGS__)
#define TENON_EACH_3(m, s, a, ...) m a s() TENON_EACH_2(m, s, __VA_ARGS__)
#define TENON_EACH_4(m, s, a, ...) m a s() TENON_EACH_3(m, s, __VA_ARGS__)
#define TENON_EACH_5(m, s, a, ...) m a s() TENON_EACH_4(m, s, __VA_ARGS__)
#define TENON_EACH_6(m, s, a, ...) m a s() TENON_EACH_5(m, s, __VA_ARGS__)
#define TENON_EACH_7(m, s, a, ...) m a s() TENON_EACH_6(m, s, __VA_ARGS__)
#define TENON_EACH_8(m, s, a, ...) m a s() TENON_EACH_7(m, s, __VA_ARGS__)

/* A list of texts, as the tables have it and as JSON. */
#define TENON_TEXTS(...) \
    { (const TenonStr[]){ TENON_MAP(TENON_STR, TENON_COMMA, __VA_ARGS__) }, TENON_COUNT(__VA_ARGS__) }
#define TENON_QUOTED(text) "\"" text "\""
#define TENON_QUOTED_LIST(...) "[" TENON_MAP(TENON_QUOTED, TENON_COMMA_TEXT, __VA_ARGS__) "]"

/* A plain word or a number as text, after macros in it are expanded. */
#define TENON_TEXT(word) TENON_TEXT_OF(word)
#define TENON_TEXT_OF(word) #word

/* The element type of a name in lower case, as ops write it, and that name. `bool` may be a macro of C's. */
#define TENON_TYPE_OF(type) TENON_TYPE_OF_##type
#define TENON_NAME_OF(type) TENON_QUOTED(TENON_NAME_OF_##type)
#define TENON_TYPE_OF_float TENON_FLOAT
#define TENON_NAME_OF_float "float"
#define TENON_TYPE_OF_double TENON_DOUBLE
#define TENON_NAME_OF_double "double"
#define TENON_TYPE_OF_half TENON_HALF
#define TENON_NAME_OF_half "half"
#define TENON_TYPE_OF_bfloat16 TENON_BFLOAT16
#define TENON_NAME_OF_bfloat16 "bfloat16"
#define TENON_TYPE_OF_bool TENON_BOOL
#define TENON_NAME_OF_bool "bool"
#define TENON_TYPE_OF__Bool TENON_BOOL
#define TENON_NAME_OF__Bool "bool"
#define TENON_TYPE_OF_int8 TENON_INT8
#define TENON_NAME_OF_int8 "int8"
#define TENON_TYPE_OF_int16 TENON_INT16
#define TENON_NAME_OF_int16 "int16"
#define TENON_TYPE_OF_int32 TENON_INT32
#define TENON_NAME_OF_int32 "int32"
#define TENON_TYPE_OF_int64 TENON_INT64
#define TENON_NAME_OF_int64 "int64"
#define TENON_TYPE_OF_uint8 TENON_UINT8
#define TENON_NAME_OF_uint8 "uint8"
#define TENON_TYPE_OF_uint16 TENON_UINT16
#define TENON_NAME_OF_uint16 "uint16"
#define TENON_TYPE_OF_uint32 TENON_UINT32
#define TENON_NAME_OF_uint32 "uint32"
#define TENON_TYPE_OF_uint64 TENON_UINT64
#define TENON_NAME_OF_uint64 "uint64"
#define TENON_TYPE_OF_complex64 TENON_COMPLEX64
#define TENON_NAME_OF_complex64 "complex64"
#define TENON_TYPE_OF_complex128 TENON_COMPLEX128
#define TENON_NAME_OF_complex128 "complex128"
#define TENON_TYPE_OF_qint8 TENON_QINT8
#define TENON_NAME_OF_qint8 "qint8"
#define TENON_TYPE_OF_quint8 TENON_QUINT8
#define TENON_NAME_OF_quint8 "quint8"
#define TENON_TYPE_OF_qint16 TENON_QINT16
#define TENON_NAME_OF_qint16 "qint16"
#define TENON_TYPE_OF_quint16 TENON_QUINT16
#define TENON_NAME_OF_quint16 "quint16"
#define TENON_TYPE_OF_qint32 TENON_QINT32
#define TENON_NAME_OF_qint32 "qint32"
#define TENON_TYPE_OF_string TENON_STRING
#define TENON_NAME_OF_string "string"
#define TENON_TYPE_OF_resource TENON_RESOURCE
#define TENON_NAME_OF_resource "resource"
#define TENON_TYPE_OF_variant TENON_VARIANT
#define TENON_NAME_OF_variant "variant"

/* The types that a kernel takes for one attribute. */
#define TENON_LIMIT(attr, ...) \
    { TENON_STR(TENON_TEXT(attr)), (const TenonDType[]){ TENON_MAP(TENON_TYPE_OF, TENON_COMMA, __VA_ARGS__) }, \
      TENON_COUNT(__VA_ARGS__) }
#define TENON_LIMIT_TEXT(attr, ...) \
    TENON_QUOTED(TENON_TEXT(attr)) ":[" TENON_MAP(TENON_NAME_OF, TENON_COMMA_TEXT, __VA_ARGS__) "]"
#define TENON_PAIR(input_argument, output_argument) { input_argument, output_argument }

/* An op and a kernel as their words say them, before their links are made. */
typedef struct TenonOpWords {
    TenonOpDef def;
    TenonStrs cases;
    TenonStrs bench;
    TenonStr flops;
    TenonStr bytes;
    TenonFacts facts;
    int has_facts;
    TenonGradientFn gradient;
} TenonOpWords;
typedef struct TenonKernelWords {
    TenonKernelDef def;
    int keeps_denormals;
    int checks_shapes;
    int has_cost;
    double fixed_ns;
    double per_element_ns;
} TenonKernelWords;

/* Gives them to the host, which copies what it keeps. */
TENON_HELPER TenonCode tenon_give_op(const TenonOpWords *words, TenonRegistrar *registrar,
                                     const TenonRegistrarTable *table)
{
    TenonOpDef def = words->def;
    const TenonExtFacts facts = { TENON_EXT_FACTS_HEADER(def.ext), words->facts };
    TenonExtGradient gradient = { TENON_EXT_GRADIENT_HEADER(NULL), words->gradient };
    TenonExtCases cases = { TENON_EXT_CASES_HEADER(NULL), words->cases };
    TenonExtBench bench = { TENON_EXT_BENCH_HEADER(NULL), words->bench, words->flops, words->bytes };
    if (words->has_facts) {
        def.ext = &facts.header;
    }
    if (words->gradient != NULL) {
        gradient.header.next = def.ext;
        def.ext = &gradient.header;
    }
    if (words->cases.len > 0) {
        cases.header.next = def.ext;
        def.ext = &cases.header;
    }
    if (words->bench.len > 0 || words->flops.len > 0 || words->bytes.len > 0) {
        bench.header.next = def.ext;
        def.ext = &bench.header;
    }
    return table->op(registrar, &def);
}

TENON_HELPER TenonCode tenon_give_kernel(const TenonKernelWords *words, TenonRegistrar *registrar,
                                         const TenonRegistrarTable *table)
{
    TenonKernelDef def = words->def;
    const TenonExtCost cost = { TENON_EXT_COST_HEADER(def.ext), words->fixed_ns, words->per_element_ns };
    if (words->keeps_denormals) {
        def.flags |= TENON_KERNEL_DEF_FLAG_KEEPS_DENORMALS;
    }
    if (words->checks_shapes) {
        def.flags |= TENON_KERNEL_DEF_FLAG_CHECKS_SHAPES;
    }
    if (words->has_cost) {
        def.ext = &cost.header;
    }
    return table->kernel(registrar, &def);
}

/* What a word of an op is there ... */
#define TENON_OP_D_inputs(...) .def.inputs = TENON_TEXTS(__VA_ARGS__),
#define TENON_OP_D_outputs(...) .def.outputs = TENON_TEXTS(__VA_ARGS__),
#define TENON_OP_D_attrs(...) .def.attrs = TENON_TEXTS(__VA_ARGS__),
#define TENON_OP_D_cases(...) .cases = TENON_TEXTS(__VA_ARGS__),
#define TENON_OP_D_bench(...) .bench = TENON_TEXTS(__VA_ARGS__),
#define TENON_OP_D_flops(text) .flops = TENON_STR(text),
#define TENON_OP_D_bytes(text) .bytes = TENON_STR(text),
#define TENON_OP_D_facts(...) .facts = { __VA_ARGS__ }, .has_facts = 1,
#define TENON_OP_D_gradient(function) .gradient = (function),
#define TENON_OP_D_summary(text) .def.summary = TENON_STR(text),
#define TENON_OP_D_description(text) .def.description = TENON_STR(text),
#define TENON_OP_D_shape(function) .def.shape = (function),
#define TENON_OP_D_flags(bits) .def.flags = (bits),
#define TENON_OP_D_stateful .def.flags = TENON_OP_FLAG_STATEFUL,
#define TENON_OP_D_commutative .def.flags = TENON_OP_FLAG_COMMUTATIVE,
#define TENON_OP_D_ext(link) .def.ext = (link),
#define TENON_OP_D_end
/* ... and in its line of the manifest. */
#define TENON_OP_M_inputs(...) ",\"inputs\":" TENON_QUOTED_LIST(__VA_ARGS__)
#define TENON_OP_M_outputs(...) ",\"outputs\":" TENON_QUOTED_LIST(__VA_ARGS__)
#define TENON_OP_M_attrs(...) ",\"attrs\":" TENON_QUOTED_LIST(__VA_ARGS__)
#define TENON_OP_M_cases(...) ",\"cases\":" TENON_QUOTED_LIST(__VA_ARGS__)
#define TENON_OP_M_bench(...)
#define TENON_OP_M_flops(text)
#define TENON_OP_M_bytes(text)
#define TENON_OP_M_facts(...)
#define TENON_OP_M_gradient(function)
#define TENON_OP_M_summary(text)
#define TENON_OP_M_description(text)
#define TENON_OP_M_shape(function)
#define TENON_OP_M_flags(bits)
#define TENON_OP_M_stateful
#define TENON_OP_M_commutative
#define TENON_OP_M_ext(link)
#define TENON_OP_M_end

/* The same of a kernel's words. */
#define TENON_KERNEL_D_types(...) \
    .def.constraints = (const TenonTypeConstraint[]){ TENON_LIMIT(__VA_ARGS__) }, .def.constraint_count = 1,
#define TENON_KERNEL_D_type_lists(...) \
    .def.constraints = (const TenonTypeConstraint[]){ TENON_EACH(TENON_LIMIT, TENON_COMMA, __VA_ARGS__) }, \
    .def.constraint_count = TENON_COUNT(__VA_ARGS__),
#define TENON_KERNEL_D_label(text) .def.label = TENON_STR(text),
#define TENON_KERNEL_D_priority(number) .def.priority = (number),
#define TENON_KERNEL_D_on_request .def.flags = TENON_KERNEL_DEF_FLAG_ON_REQUEST,
#define TENON_KERNEL_D_keeps_denormals .keeps_denormals = 1,
#define TENON_KERNEL_D_checks_shapes .checks_shapes = 1,
#define TENON_KERNEL_D_features(...) .def.features = TENON_TEXTS(__VA_ARGS__),
#define TENON_KERNEL_D_host_memory(...) .def.host_memory = TENON_TEXTS(__VA_ARGS__),
#define TENON_KERNEL_D_in_place(...) \
    .def.in_place = (const TenonInPlace[]){ TENON_EACH(TENON_PAIR, TENON_COMMA, __VA_ARGS__) }, \
    .def.in_place_count = TENON_COUNT(__VA_ARGS__),
#define TENON_KERNEL_D_numerics(...) .def.numerics = __VA_ARGS__,
#define TENON_KERNEL_D_cost(fixed, per_element) \
    .has_cost = 1, .fixed_ns = (fixed), .per_element_ns = (per_element),
#define TENON_KERNEL_D_ext(link) .def.ext = (link),
#define TENON_KERNEL_D_end
#define TENON_KERNEL_M_types(...) ",\"types\":{" TENON_LIMIT_TEXT(__VA_ARGS__) "}"
#define TENON_KERNEL_M_type_lists(...) \
    ",\"types\":{" TENON_EACH(TENON_LIMIT_TEXT, TENON_COMMA_TEXT, __VA_ARGS__) "}"
#define TENON_KERNEL_M_label(text) ",\"label\":" TENON_QUOTED(text)
#define TENON_KERNEL_M_priority(number) ",\"priority\":" TENON_TEXT(number)
#define TENON_KERNEL_M_on_request ",\"on_request\":true"
#define TENON_KERNEL_M_keeps_denormals
#define TENON_KERNEL_M_checks_shapes
#define TENON_KERNEL_M_features(...) ",\"features\":" TENON_QUOTED_LIST(__VA_ARGS__)
#define TENON_KERNEL_M_host_memory(...)
#define TENON_KERNEL_M_in_place(...)
#define TENON_KERNEL_M_numerics(...)
#define TENON_KERNEL_M_cost(fixed, per_element)
#define TENON_KERNEL_M_ext(link)
#define TENON_KERNEL_M_end

/* And of a device's. */
#define TENON_DEVICE_D_priority(number) .priority = (number),
#define TENON_DEVICE_D_ext(link) .ext = (link),
#define TENON_DEVICE_D_end
#define TENON_DEVICE_M_priority(number) ",\"priority\":" TENON_TEXT(number)
#define TENON_DEVICE_M_ext(link)
#define TENON_DEVICE_M_end

/* Numerics contracts. The first says nothing, and is what a kernel without the word `numerics` has. */
#define tenon_unspecified \
    { TENON_TOLERANCE_UNSPECIFIED, TENON_DETERMINISM_NONE, 0.0, 0.0, 0.0, TENON_INVALID, 0 }
#define tenon_exact \
    { TENON_TOLERANCE_EXACT, TENON_DETERMINISM_BITWISE, 0.0, 0.0, 0.0, TENON_INVALID, 0 }
#define tenon_within_ulps(count) \
    { TENON_TOLERANCE_ULPS, TENON_DETERMINISM_RUN_TO_RUN, count, 0.0, 0.0, TENON_INVALID, 0 }
#define tenon_within(abs_error, rel_error) \
    { TENON_TOLERANCE_ABSOLUTE_RELATIVE, TENON_DETERMINISM_RUN_TO_RUN, 0.0, abs_error, rel_error, \
      TENON_INVALID, 0 }

/* A kernel's entries in the order of TenonKernelTable: `.create = ...`, `.compute = ...`, `.destroy = ...`. */
#define TENON_TABLE(id, ...) \
    static const TenonKernelTable id = { .struct_size = sizeof(TenonKernelTable), __VA_ARGS__ }

/* An op: its name, then words. */
#define TENON_OP(...) TENON_OP_AT(__COUNTER__, __VA_ARGS__, end)
#define TENON_OP_AT(at, name, ...) TENON_OP_AS(at, name, __VA_ARGS__)
#define TENON_OP_AS(at, op_name, ...) \
    TENON_RECORD(at, "{\"kind\":\"op\",\"name\":" TENON_QUOTED(op_name) \
                 TENON_WORDS(TENON_OP_M_, __VA_ARGS__) "}"); \
    static const TenonOpWords tenon_op_##at = { \
        .def.struct_size = sizeof(TenonOpDef), .def.name = TENON_STR(op_name), .def.source = TENON_HERE, \
        TENON_WORDS(TENON_OP_D_, __VA_ARGS__) \
    }; \
    TENON_LISTED(at, tenon_give_op(&tenon_op_##at, registrar, table))

/* A kernel: its op, the device type, its table, then words. */
#define TENON_KERNEL(...) TENON_KERNEL_AT(__COUNTER__, __VA_ARGS__, end)
#define TENON_KERNEL_AT(at, op, device, entries, ...) TENON_KERNEL_AS(at, op, device, entries, __VA_ARGS__)
#define TENON_KERNEL_AS(at, op_name, device_name, entries, ...) \
    TENON_RECORD(at, "{\"kind\":\"kernel\",\"op\":" TENON_QUOTED(op_name) ",\"device\":" \
                 TENON_QUOTED(device_name) TENON_WORDS(TENON_KERNEL_M_, __VA_ARGS__) "}"); \
    static const TenonKernelWords tenon_kernel_##at = { \
        .def.struct_size = sizeof(TenonKernelDef), .def.op = TENON_STR(op_name), \
        .def.device_type = TENON_STR(device_name), .def.table = &(entries), .def.source = TENON_HERE, \
        TENON_WORDS(TENON_KERNEL_D_, __VA_ARGS__) \
    }; \
    TENON_LISTED(at, tenon_give_kernel(&tenon_kernel_##at, registrar, table))

/*
 * A device type: its name, how many devices there are, what opens one, the entries of an open one, then words.
 * Below priority 0 it runs what names it and attracts nothing else.
 */
#define TENON_DEVICE(...) TENON_DEVICE_AT(__COUNTER__, __VA_ARGS__, end)
#define TENON_DEVICE_AT(at, name, probe, create, entries, ...) \
    TENON_DEVICE_AS(at, name, probe, create, entries, __VA_ARGS__)
#define TENON_DEVICE_AS(at, type_name, probe_fn, create_fn, entries, ...) \
    TENON_RECORD(at, "{\"kind\":\"device\",\"name\":" TENON_QUOTED(type_name) \
                 TENON_WORDS(TENON_DEVICE_M_, __VA_ARGS__) "}"); \
    static const TenonDeviceTypeDef tenon_device_##at = { \
        .struct_size = sizeof(TenonDeviceTypeDef), .name = TENON_STR(type_name), .probe = (probe_fn), \
        .create = (create_fn), .table = &(entries), .source = TENON_HERE, \
        TENON_WORDS(TENON_DEVICE_D_, __VA_ARGS__) \
    }; \
    TENON_LISTED(at, table->device_type(registrar, &tenon_device_##at))

/* A knob; `type` is BOOL, INT, FLOAT or STRING, the value a text. */
#define TENON_KNOB(knob_name, type, value, about) TENON_KNOB_AT(__COUNTER__, knob_name, type, value, about)
#define TENON_KNOB_AT(at, knob_name, type, value, about) TENON_KNOB_AS(at, knob_name, type, value, about)
#define TENON_KNOB_AS(at, knob_name, type, value, about) \
    TENON_RECORD(at, "{\"kind\":\"knob\",\"name\":" TENON_QUOTED(knob_name) ",\"default\":" \
                 TENON_QUOTED(value) "}"); \
    static const TenonKnobDef tenon_knob_##at = { \
        .struct_size = sizeof(TenonKnobDef), .kind = TENON_KNOB_##type, .name = TENON_STR(knob_name), \
        .default_value = TENON_STR(value), .help = TENON_STR(about), .source = TENON_HERE, \
    }; \
    TENON_LISTED(at, table->knob(registrar, &tenon_knob_##at))

/* Puts what gives a definition to the host into the list that TENON_PLUGIN goes through. */
#define TENON_LISTED(at, give) \
    static TenonCode tenon_give_##at(TenonRegistrar *registrar, const TenonRegistrarTable *table) \
    { \
        return give; \
    } \
    TENON_LIST(at, tenon_give_##at)

#endif /* TENON_REGISTER_H */
