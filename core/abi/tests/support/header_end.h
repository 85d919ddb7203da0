
/* ---------------------------------------------------------------------------------------------- */
/* Conveniences                                                                                   */
/* ---------------------------------------------------------------------------------------------- */

/**
 * Whether a plugin compiled with this header can serve a host of that version. Before 1.0 only an
 * equal one; from 1.0 on every one with the same major number.
 */
#define TENON_ABI_ACCEPTS(host_major, host_minor) \
    ((host_major) == TENON_ABI_MAJOR && (TENON_ABI_MAJOR != 0u || (host_minor) == TENON_ABI_MINOR))

/** Exports a function from the library. */
#if defined(_WIN32)
#define TENON_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define TENON_EXPORT __attribute__((visibility("default")))
#else
#define TENON_EXPORT
#endif

/** Device type of a kernel that serves devices of every type. */
#define TENON_DEFAULT_DEVICE "DEFAULT"

/** What the plugin exports; null declines the host's version. Defined by the plugin. */
TENON_EXPORT const TenonPluginV1 *tenon_plugin_v1(uint32_t host_major, uint32_t host_minor);

/** Initialiser of a TenonStr from a string literal, for tables in static memory. */
#define TENON_STR(literal) { (const uint8_t *)("" literal), sizeof("" literal) - 1 }

/** A string that ends in a zero byte, as TenonStr. It is borrowed, not copied. */
static inline TenonStr tenon_str(const char *text)
{
    TenonStr result;
    result.ptr = (const uint8_t *)text;
    result.len = text == NULL ? 0 : strlen(text);
    return result;
}

/**
 * The link with this tag that is at least `min_size` bytes long; null when there is none. `chain` is
 * the `ext` of a table and may be null.
 */
static inline const TenonExtHeader *tenon_find_ext(const TenonExtHeader *chain, uint32_t tag,
                                                   size_t min_size)
{
    uint32_t followed;
    for (followed = 0; chain != NULL && followed < TENON_MAX_LINKS; followed++) {
        if (chain->tag == tag && chain->size >= min_size) {
            return chain;
        }
        chain = chain->next;
    }
    return NULL;
}

/** The resource in element `at` of a slot, without a new reference; null when the element has none. */
static inline TenonResource *tenon_resource_at(const TenonSlot *slot, uint64_t at)
{
    if (slot->dtype != TENON_RESOURCE || at >= slot->elements || slot->data == NULL) {
        return NULL;
    }
    return ((const TenonResourceElement *)slot->data)[at].resource;
}

/** The value in element `at` of a slot; null when the element has no value of this type. */
static inline void *tenon_variant_at(const TenonSlot *slot, uint64_t at,
                                     const TenonVariantTable *table)
{
    const TenonVariantElement *elements = (const TenonVariantElement *)slot->data;
    if (slot->dtype != TENON_VARIANT || at >= slot->elements || elements == NULL) {
        return NULL;
    }
    return elements[at].table == table ? elements[at].value : NULL;
}

/**
 * Defines `id`, a link with the cases of an op, each a TENON_STR in the grammar of TenonExtCases. At
 * file scope; the op's `ext` is the address of its `header`, and the op's line of the manifest repeats
 * the texts (the word `cases` of tenon_plugin.h's TENON_OP does all of it):
 *
 *     TENON_CASES(my_cases, TENON_STR("one; x: [1]"), TENON_STR("any; x: [n]"));
 */
#define TENON_CASES(id, ...) \
    static const TenonStr id##_texts[] = { __VA_ARGS__ }; \
    static const TenonExtCases id = { \
        TENON_EXT_CASES_HEADER(NULL), { id##_texts, sizeof(id##_texts) / sizeof(id##_texts[0]) } \
    }

/**
 * Defines `id`, a link with the calls of an op that are worth measuring, each a TENON_STR in the grammar of
 * TenonExtBench, and formulas of the operations and bytes of a call ("" if they are not known). `next_link` is NULL,
 * or the header of another link of the op. At file scope; the op's `ext` is the address of its `header`:
 *
 *     TENON_BENCH(my_bench, &my_cases.header, "4 * x", "", TENON_STR("rows; n in {64, 4096}; x: [n, 768]"));
 */
#define TENON_BENCH(id, next_link, flops_text, bytes_text, ...) \
    static const TenonStr id##_calls[] = { __VA_ARGS__ }; \
    static const TenonExtBench id = { \
        TENON_EXT_BENCH_HEADER(next_link), { id##_calls, sizeof(id##_calls) / sizeof(id##_calls[0]) }, \
        TENON_STR(flops_text), TENON_STR(bytes_text) \
    }

/**
 * Defines `id`, a link with the facts of an op, each a field of TenonFacts. `next_link` is NULL, or the header of another
 * link of the op. At file scope; the op's `ext` is the address of its `header` (the word `facts` of tenon_plugin.h's
 * TENON_OP does all of it):
 *
 *     TENON_FACTS(my_facts, NULL, .flags = TENON_FACT_ELEMENTWISE, .refusal = TENON_REFUSES_NOTHING);
 */
#define TENON_FACTS(id, next_link, ...) \
    static const TenonExtFacts id = { TENON_EXT_FACTS_HEADER(next_link), { __VA_ARGS__ } }

#if defined(__GNUC__)
/** Whether the step of this call is cancelled, or its deadline has passed. A long computation asks from time to time. */
static inline int tenon_cancelled(const TenonCall *call)
{
    const TenonStep *step = call->step;
    return __atomic_load_n(step->cancelled, __ATOMIC_RELAXED) != 0
        || (step->deadline_ns != TENON_NO_DEADLINE && call->services->now_ns() >= step->deadline_ns);
}
#endif

/*
 * TENON_MANIFEST("{...}") puts one record, a line of JSON, into the library's manifest, which the host
 * reads before it runs anything of the library. At file scope, any number of them on a line of source:
 *
 *     TENON_MANIFEST("{\"...\": \"...\"}");
 *
 * After loading, the host compares the manifest with what was registered; a difference is an error.
 */
#if defined(__has_attribute)
#if __has_attribute(retain)
#define TENON_RETAIN , retain
#endif
#endif
#ifndef TENON_RETAIN
#define TENON_RETAIN
#endif
#if defined(__APPLE__)
#define TENON_MANIFEST_SECTION "__DATA,__tenon"
#elif defined(_WIN32)
#define TENON_MANIFEST_SECTION ".tenon"
#else
#define TENON_MANIFEST_SECTION "tenon_manifest"
#endif
#define TENON_JOIN_(a, b) a##b
#define TENON_JOIN(a, b) TENON_JOIN_(a, b)
#if defined(__GNUC__)
#define TENON_IN_MANIFEST __attribute__((section(TENON_MANIFEST_SECTION), used TENON_RETAIN, aligned(1)))
#define TENON_MANIFEST(json) TENON_RECORD(__COUNTER__, json)
/** As TENON_MANIFEST, under a number that no other record of the file has. */
#define TENON_RECORD(number, json) \
    static const char TENON_JOIN(tenon_manifest_, number)[] TENON_IN_MANIFEST = json "\n"
#endif

#ifdef __cplusplus
}
#endif

#endif /* TENON_H */
