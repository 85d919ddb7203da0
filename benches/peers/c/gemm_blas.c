/* Matrix products of floats, and of bytes to 32 bits, by a library that is loaded at run time: row-major, nothing
 * packed beforehand, every result compared with plain sums before it is timed.
 *
 * Build: gcc -O2 -pthread gemm_blas.c -o gemm_blas -ldl -lm
 * Usage: gemm_blas SYMBOL PEER VERSION LIBRARY THREADS < gemm_sizes.txt
 * SYMBOL says what is called and how: see `calls`. The number of threads is told to the library by its variable of the
 * environment; here it labels the lines.
 */
#include "bench.h"
#include <dlfcn.h>
#include <math.h>

typedef void (*cblas_f32)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *,
                          int);
typedef int (*dnnl_f32)(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *, int64_t,
                        float, float *, int64_t);
typedef void (*cblas_u8s8)(int, int, int, int, int, int, int, float, const void *, int, signed char, const void *, int,
                           signed char, float, int32_t *, int, const int32_t *);
typedef int (*dnnl_u8s8)(char, char, char, int64_t, int64_t, int64_t, float, const uint8_t *, int64_t, uint8_t,
                         const int8_t *, int64_t, int8_t, float, int32_t *, int64_t, const int32_t *);

/* Of CBLAS: order of the rows, no transposition, one offset for all results. */
enum { ROW_MAJOR = 101, NO_TRANS = 111, FIX_OFFSET = 173 };

static void *function;

struct product {
    int m, n, k;
    float *a, *b, *c;
    uint8_t *bytes_a;
    int8_t *bytes_b;
    int32_t *sums;
};

static void by_cblas_f32(void *with) {
    struct product *p = with;
    cblas_f32 gemm = (cblas_f32)function;
    gemm(ROW_MAJOR, NO_TRANS, NO_TRANS, p->m, p->n, p->k, 1, p->a, p->k, p->b, p->n, 0, p->c, p->n);
}

static void by_dnnl_f32(void *with) {
    struct product *p = with;
    ((dnnl_f32)function)('N', 'N', p->m, p->n, p->k, 1, p->a, p->k, p->b, p->n, 0, p->c, p->n);
}

static void by_cblas_u8s8(void *with) {
    struct product *p = with;
    int32_t zero = 0;
    cblas_u8s8 gemm = (cblas_u8s8)function;
    gemm(ROW_MAJOR, NO_TRANS, NO_TRANS, FIX_OFFSET, p->m, p->n, p->k, 1, p->bytes_a, p->k, 0, p->bytes_b, p->n, 0, 0,
         p->sums, p->n, &zero);
}

static void by_dnnl_u8s8(void *with) {
    struct product *p = with;
    int32_t zero = 0;
    dnnl_u8s8 gemm = (dnnl_u8s8)function;
    gemm('N', 'N', 'F', p->m, p->n, p->k, 1, p->bytes_a, p->k, 0, p->bytes_b, p->n, 0, 0, p->sums, p->n, &zero);
}

static const struct {
    const char *symbol;
    bench_fn call;
    int bytes;
} calls[] = {
    {"cblas_sgemm", by_cblas_f32, 0},
    {"scipy_cblas_sgemm", by_cblas_f32, 0},
    {"dnnl_sgemm", by_dnnl_f32, 0},
    {"cblas_gemm_s8u8s32", by_cblas_u8s8, 1},
    {"dnnl_gemm_u8s8s32", by_dnnl_u8s8, 1},
};
enum { CALLS = sizeof calls / sizeof *calls };

static void *room(size_t bytes) {
    void *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!memory) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return memory;
}

/* Left bytes stay under 128, so that no sum of two products saturates, whatever the library's instruction. */
static struct product make(int m, int n, int k) {
    size_t left = (size_t)m * k, right = (size_t)k * n, out = (size_t)m * n;
    struct product p = {m, n, k};
    p.a = room(left * 4), p.b = room(right * 4), p.c = room(out * 4);
    p.bytes_a = room(left), p.bytes_b = room(right), p.sums = room(out * 4);
    for (size_t i = 0; i < left; i++) {
        unsigned random = (unsigned)(i * 2654435761u) >> 16;
        p.a[i] = (float)(random & 255) / 255 - 0.5f;
        p.bytes_a[i] = (uint8_t)(random & 127);
    }
    for (size_t i = 0; i < right; i++) {
        unsigned random = (unsigned)(i * 2246822519u) >> 16;
        p.b[i] = (float)(random & 255) / 255 - 0.5f;
        p.bytes_b[i] = (int8_t)(random & 255);
    }
    return p;
}

static void drop(struct product *p) {
    free(p->a), free(p->b), free(p->c), free(p->bytes_a), free(p->bytes_b), free(p->sums);
}

/* Whether some results, spread over all, are the sums that they should be. */
static int is_right(const struct product *p, int bytes) {
    for (int t = 0; t < 50; t++) {
        size_t row = (size_t)(t * 7919 % p->m), column = (size_t)(t * 104729 % p->n), place = row * p->n + column;
        double floats = 0;
        int64_t sum = 0;
        for (size_t i = 0; i < (size_t)p->k; i++) {
            size_t left = row * p->k + i, right = i * p->n + column;
            floats += (double)p->a[left] * p->b[right];
            sum += p->bytes_a[left] * p->bytes_b[right];
        }
        if (bytes ? sum != p->sums[place] : fabs(floats - p->c[place]) > 1e-3 * sqrt(p->k)) return 0;
    }
    return 1;
}

int main(int argc, char **argv) {
    int kind = 0, m, n, k;
    while (argc > 1 && kind < CALLS && strcmp(calls[kind].symbol, argv[1])) kind++;
    if (argc < 6 || kind == CALLS) {
        fprintf(stderr, "usage: gemm_blas SYMBOL PEER VERSION LIBRARY THREADS < sizes\n");
        return 2;
    }
    void *library = dlopen(argv[4], RTLD_NOW | RTLD_GLOBAL);
    function = library ? dlsym(library, argv[1]) : NULL;
    if (!function) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    while (scanf("%d %d %d", &m, &n, &k) == 3) {
        char size[64];
        int bytes = calls[kind].bytes;
        snprintf(size, sizeof size, "%dx%dx%d", m, n, k);
        struct row row = {bytes ? "gemm_u8s8s32" : "gemm_f32", argv[2], argv[3],       size,
                          bytes ? "GOP/s" : "GFLOP/s",         atoi(argv[5]), 2.0 * m * n * k};
        struct product p = make(m, n, k);
        calls[kind].call(&p);
        if (is_right(&p, bytes))
            bench_run(&row, calls[kind].call, &p);
        else
            fprintf(stderr, "# skipped %s %s: wrong result\n", argv[2], size);
        drop(&p);
    }
    return 0;
}
