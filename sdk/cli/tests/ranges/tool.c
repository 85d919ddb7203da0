/* A profiler in small, by its own declarations of what NVTX 3 and ITT are: it writes every range that begins or ends to
 * the file that RANGES_TO names, a line each, with tabs between interface, what happens, thread, domain and name.
 *
 * RANGES_TOOL changes it: "no" says no to NVTX, "none" takes no ranges, "texts" takes no names beforehand. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is(const char *mode)
{
    const char *set = getenv("RANGES_TOOL");
    return set != NULL && strcmp(set, mode) == 0;
}

static void note(const char *interface, const char *what, const char *domain, const char *name)
{
    const char *file = getenv("RANGES_TO");
    char line[4096];
    int length = snprintf(line, sizeof line, "%s\t%s\t%lx\t%s\t%s\n", interface, what, (unsigned long)pthread_self(),
                          domain, name);
    int to = file == NULL ? -1 : open(file, O_WRONLY | O_CREAT | O_APPEND, 0600);
    /* One write, so that threads do not mix their lines. */
    if (to < 0 || length < 0 || (size_t)length >= sizeof line || write(to, line, (size_t)length) != length) {
        abort();
    }
    close(to);
}

/* NVTX: what NVIDIA's headers nvtxTypes.h and nvToolsExt.h declare. */

typedef void (*function)(void);

struct attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    union {
        const char *text;
        void *registered;
    } message;
};

struct callbacks {
    size_t struct_size;
    int (*module_table)(int module, function ***table, unsigned *count);
};

struct version_info {
    size_t struct_size;
    uint32_t version, reserved;
    void (*set_version)(uint32_t version);
};

static void *nvtx_domain(const char *name)
{
    return strdup(name);
}

static void *nvtx_register(void *domain, const char *name)
{
    (void)domain;
    return strdup(name);
}

static int nvtx_push(void *domain, const struct attributes *event)
{
    if (event->version != 3 || event->size != sizeof *event || event->category != 0 || event->payload_type != 0) {
        abort();
    }
    /* 3 is a registered name, which is a text here; 1 is a text. */
    if (event->message_type != (is("texts") ? 1 : 3)) {
        abort();
    }
    note("nvtx", "push", domain, event->message.text);
    return 0;
}

static int nvtx_pop(void *domain)
{
    note("nvtx", "pop", domain, "");
    return 0;
}

int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t))
{
    static const unsigned counts[] = {16, 9, 15, 7, 16, 7};
    const struct callbacks *calls = export_table(1);
    const struct version_info *version = export_table(3);
    function **table = NULL;
    unsigned count = 0;
    int module;
    if (is("no")) {
        return 0;
    }
    if (calls->struct_size < sizeof *calls || version->struct_size < sizeof *version || version->version != 3) {
        abort();
    }
    version->set_version(3);
    for (module = 1; module <= 6; module++) {
        if (!calls->module_table(module, &table, &count) || count != counts[module - 1]) {
            abort();
        }
    }
    if (calls->module_table(7, &table, &count) || !calls->module_table(5, &table, &count)) {
        abort();
    }
    if (!is("none")) {
        *table[4] = (function)nvtx_push;
        *table[5] = (function)nvtx_pop;
        *table[12] = (function)nvtx_domain;
    }
    if (!is("none") && !is("texts")) {
        *table[10] = (function)nvtx_register;
    }
    return 1;
}

/* ITT: what Intel's headers ittnotify.h and ittnotify_config.h declare. */

struct itt_domain {
    volatile int flags;
    const char *name;
    void *wide;
    int extra1;
    void *extra2;
    struct itt_domain *next;
};

struct itt_string {
    const char *text;
    void *wide;
    int extra1;
    void *extra2;
    struct itt_string *next;
};

struct itt_id {
    unsigned long long d1, d2, d3;
};

struct itt_function {
    const char *name;
    void **place;
    void *begin, *idle;
    int group;
};

/* Its first part. */
struct itt_global {
    unsigned char magic[8];
    unsigned long version_major, version_minor, version_build;
    volatile long api_initialized, mutex_initialized, atomic_counter;
    pthread_mutex_t mutex;
    void *library, *error_handler;
    const char **path;
    struct itt_function *functions;
};

static struct itt_domain *itt_domain(const char *name)
{
    struct itt_domain *made = calloc(1, sizeof *made);
    made->flags = 1;
    made->name = strdup(name);
    return made;
}

static struct itt_string *itt_string(const char *text)
{
    struct itt_string *made = calloc(1, sizeof *made);
    made->text = strdup(text);
    return made;
}

static void itt_begin(const struct itt_domain *domain, struct itt_id id, struct itt_id parent, struct itt_string *name)
{
    if (id.d1 != 0 || id.d2 != 0 || id.d3 != 0 || parent.d1 != 0) {
        abort();
    }
    note("itt", "push", domain->name, name->text);
}

static void itt_end(const struct itt_domain *domain)
{
    note("itt", "pop", domain->name, "");
}

void __itt_api_init(struct itt_global *global, int groups)
{
    static const struct {
        const char *name;
        function function;
    } own[] = {
        {"__itt_domain_create", (function)itt_domain},
        {"__itt_string_handle_create", (function)itt_string},
        {"__itt_task_begin", (function)itt_begin},
        {"__itt_task_end", (function)itt_end},
    };
    struct itt_function *known;
    size_t at;
    (void)groups;
    for (known = global->functions; known->name != NULL && !is("none"); known++) {
        for (at = 0; at < sizeof own / sizeof *own; at++) {
            if (strcmp(known->name, own[at].name) == 0) {
                memcpy(known->place, &own[at].function, sizeof(void *));
            }
        }
    }
}
