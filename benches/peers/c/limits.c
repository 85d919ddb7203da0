/* What one core and two can do at the most: multiply and add, and move bytes from each level of the memory.
 *
 * Build: gcc -O3 -march=native -pthread limits.c -o limits
 * Lines of the benches `peak` (the peer says the instruction) and `bandwidth` (the peer says what is done with the
 * bytes); each is measured on core 0, then on cores 0 and 1 at once.
 */
#include "bench.h"
#include <immintrin.h>
#include <stdatomic.h>
#include <sys/mman.h>

/* ------------------------------------------------------------------ arithmetic */

/* Twelve independent sums: more than latency times throughput of any of these instructions. */
enum { ROUNDS = 20000, SUMS = 12 };

/* Nothing is known to the compiler about a register that it has shown to this. */
#define KEEP(x) __asm__ volatile("" : "+v"(x))
#define REPEAT(STEP) STEP(a) STEP(b) STEP(c) STEP(d) STEP(e) STEP(f) STEP(g) STEP(h) STEP(i) STEP(j) STEP(k) STEP(l)
/* Sums of their own names: of an array, compilers keep some in memory. */
#define DEFINE_PEAK(NAME, TYPE, ZERO, STEP)                                                                \
    static void NAME(void *unused) {                                                                       \
        (void)unused;                                                                                      \
        TYPE x = ZERO, y = ZERO;                                                                           \
        TYPE a = x, b = x, c = x, d = x, e = x, f = x, g = x, h = x, i = x, j = x, k = x, l = x;           \
        KEEP(x);                                                                                           \
        KEEP(y);                                                                                           \
        for (int round = 0; round < ROUNDS; round++) {                                                     \
            REPEAT(STEP)                                                                                   \
        }                                                                                                  \
    }

#define FMA_256(sum) sum = _mm256_fmadd_ps(x, y, sum); KEEP(sum);
DEFINE_PEAK(fma_256, __m256, _mm256_setzero_ps(), FMA_256)
#define MADDWD_256(sum)                                   \
    {                                                     \
        __m256i pair = _mm256_madd_epi16(x, y);           \
        KEEP(pair);                                       \
        sum = _mm256_add_epi32(sum, pair);                \
        KEEP(sum);                                        \
    }
DEFINE_PEAK(maddwd_256, __m256i, _mm256_setzero_si256(), MADDWD_256)
#ifdef __AVX512F__
#define FMA_512(sum) sum = _mm512_fmadd_ps(x, y, sum); KEEP(sum);
DEFINE_PEAK(fma_512, __m512, _mm512_setzero_ps(), FMA_512)
#endif
#ifdef __AVX512VNNI__
#define DPBUSD_256(sum) sum = _mm256_dpbusd_epi32(sum, x, y); KEEP(sum);
DEFINE_PEAK(dpbusd_256, __m256i, _mm256_setzero_si256(), DPBUSD_256)
#define DPBUSD_512(sum) sum = _mm512_dpbusd_epi32(sum, x, y); KEEP(sum);
DEFINE_PEAK(dpbusd_512, __m512i, _mm512_setzero_si512(), DPBUSD_512)
#endif
#ifdef __AVX512BF16__
#define DPBF16_512(sum) sum = _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)y); KEEP(sum);
DEFINE_PEAK(dpbf16_512, __m512, _mm512_setzero_ps(), DPBF16_512)
#endif

/* ------------------------------------------------------------------ memory */

struct memory {
    float *to, *from;
    size_t count;
    int repeats;
};

static volatile float sink;

__attribute__((noinline)) static void read_all(void *with) {
    struct memory *m = with;
    __m256 sum[8];
    for (int i = 0; i < 8; i++) sum[i] = _mm256_setzero_ps();
    for (int r = 0; r < m->repeats; r++)
        for (size_t i = 0; i < m->count; i += 64)
            for (int lane = 0; lane < 8; lane++)
                sum[lane] = _mm256_add_ps(sum[lane], _mm256_loadu_ps(m->from + i + 8 * lane));
    for (int i = 1; i < 8; i++) sum[0] = _mm256_add_ps(sum[0], sum[i]);
    sink = _mm256_cvtss_f32(sum[0]);
}

__attribute__((noinline)) static void copy(void *with) {
    struct memory *m = with;
    for (int r = 0; r < m->repeats; r++) {
        for (size_t i = 0; i < m->count; i += 8) _mm256_storeu_ps(m->to + i, _mm256_loadu_ps(m->from + i));
        __asm__ volatile("" ::: "memory");
    }
}

/* Past the caches, which need not read what is overwritten. */
__attribute__((noinline)) static void copy_past(void *with) {
    struct memory *m = with;
    for (int r = 0; r < m->repeats; r++)
        for (size_t i = 0; i < m->count; i += 8) _mm256_stream_ps(m->to + i, _mm256_loadu_ps(m->from + i));
    _mm_sfence();
}

static float *pages(size_t bytes, int huge) {
    size_t unit = huge ? (size_t)2 << 20 : 4096;
    float *memory = aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
    if (!memory) exit(1);
    if (huge) madvise(memory, bytes, MADV_HUGEPAGE);
    for (size_t i = 0; i < bytes / 4; i++) memory[i] = (float)(i & 7);
    return memory;
}

/* ------------------------------------------------------------------ two cores at once */

/* A call, with what each core does it to; the second core spins between calls, so that no waking is measured. */
struct pair {
    bench_fn call;
    void *first, *second;
    _Atomic long begun, done, over;
};

static void *second_core(void *with) {
    struct pair *pair = with;
    pin_to(1);
    for (long seen = 0; !atomic_load(&pair->over);) {
        long begun = atomic_load(&pair->begun);
        if (begun == seen) {
            _mm_pause();
            continue;
        }
        pair->call(pair->second);
        atomic_store(&pair->done, seen = begun);
    }
    return NULL;
}

static void on_both(void *with) {
    struct pair *pair = with;
    long begun = atomic_fetch_add(&pair->begun, 1) + 1;
    pair->call(pair->first);
    while (atomic_load(&pair->done) != begun) _mm_pause();
}

static void one_and_two(struct row row, bench_fn call, void *first, void *second) {
    pin_to(0);
    row.threads = 1;
    bench_run(&row, call, first);
    struct pair pair = {.call = call, .first = first, .second = second};
    pthread_t thread;
    if (pthread_create(&thread, NULL, second_core, &pair)) return;
    row.threads = 2;
    row.work *= 2;
    bench_run(&row, on_both, &pair);
    atomic_store(&pair.over, 1);
    pthread_join(thread, NULL);
}

static void peak(const char *name, bench_fn call, int terms, const char *unit) {
    struct row row = {"peak", name, "native", "-", unit, 1, 2.0 * terms * SUMS * ROUNDS};
    one_and_two(row, call, NULL, NULL);
}

static void bandwidth(const char *level, size_t bytes, int repeats, int huge) {
    struct memory memory[2];
    for (int i = 0; i < 2; i++)
        memory[i] = (struct memory){pages(bytes, huge), pages(bytes, huge), bytes / 4, repeats};
    struct row row = {"bandwidth", "read", "native", level, "GB/s", 1, (double)bytes * repeats};
    one_and_two(row, read_all, &memory[0], &memory[1]);
    row.work *= 2;
    row.peer = "copy";
    one_and_two(row, copy, &memory[0], &memory[1]);
    row.peer = "copy_nt";
    one_and_two(row, copy_past, &memory[0], &memory[1]);
    for (int i = 0; i < 2; i++) free(memory[i].to), free(memory[i].from);
}

int main(void) {
    peak("fma_f32_avx2", fma_256, 8, "GFLOP/s");
    peak("maddwd_i16_avx2", maddwd_256, 16, "GOP/s");
#ifdef __AVX512F__
    peak("fma_f32_avx512", fma_512, 16, "GFLOP/s");
#endif
#ifdef __AVX512VNNI__
    peak("vpdpbusd_ymm", dpbusd_256, 32, "GOP/s");
    peak("vpdpbusd_zmm", dpbusd_512, 64, "GOP/s");
#endif
#ifdef __AVX512BF16__
    peak("dpbf16_avx512", dpbf16_512, 32, "GFLOP/s");
#endif
    bandwidth("L1_8KiB", 8192, 400, 0);
    bandwidth("L2_256KiB", (size_t)256 << 10, 16, 0);
    bandwidth("L3_4MiB", (size_t)4 << 20, 1, 0);
    bandwidth("DRAM_128MiB", (size_t)128 << 20, 1, 0);
    bandwidth("DRAM_128MiB_hugepages", (size_t)128 << 20, 1, 1);
}
