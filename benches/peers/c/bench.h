/* Timing of C programs, and the JSON line that says what came of it: as timing.py has it. */
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FEWEST_SAMPLES = 9, MOST_SAMPLES = 61 };
static const double SAMPLE_NS = 2e6, BUDGET_NS = 6e8;

/* What a line says besides the times. `work` is operations or bytes per call. */
struct row {
    const char *bench, *peer, *version, *size, *unit;
    int threads;
    double work;
};

typedef void (*bench_fn)(void *);

static inline double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static inline int ascending(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Keeps the calling thread on one core. */
static inline void pin_to(int core) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
}

/* Writes the processor's name to `name`. */
static inline void cpu_name(char *name, size_t size) {
    char line[256];
    FILE *info = fopen("/proc/cpuinfo", "r");
    snprintf(name, size, "unknown");
    while (info && fgets(line, sizeof line, info)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon) {
            snprintf(name, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (info) fclose(info);
}

static inline void print_row(const struct row *row, double *samples, int count) {
    char cpu[128];
    cpu_name(cpu, sizeof cpu);
    qsort(samples, (size_t)count, sizeof *samples, ascending);
    double median = samples[count / 2];
    printf("{\"bench\": \"%s\", \"peer\": \"%s\", \"version\": \"%s\", \"size\": \"%s\", \"threads\": %d, ", row->bench,
           row->peer, row->version, row->size, row->threads);
    printf("\"median_ns\": %.3f, \"min_ns\": %.3f, \"max_ns\": %.3f, \"samples\": %d, ", median, samples[0],
           samples[count - 1], count);
    printf("\"rate\": %.5g, \"best_rate\": %.5g, \"unit\": \"%s\", \"cpu\": \"%s\"}\n", row->work / median,
           row->work / samples[0], row->unit, cpu);
    fflush(stdout);
}

/* Nanoseconds per call of so many calls. */
static inline double timed(bench_fn call, void *with, long calls) {
    double start = now_ns();
    for (long i = 0; i < calls; i++) call(with);
    return (now_ns() - start) / (double)calls;
}

/* Times a call, and prints its row. */
static inline void bench_run(const struct row *row, bench_fn call, void *with) {
    call(with);
    call(with);
    if (getenv("PIN_ORDER")) pin_to(0); /* once the library has made its threads: see pinshim.c */
    long calls = 1;
    for (int i = 0; i < 2; i++) {
        calls = (long)(SAMPLE_NS / (timed(call, with, calls) + 1));
        if (calls < 1) calls = 1;
    }
    double samples[MOST_SAMPLES], start = now_ns();
    int count = 0;
    while (count < FEWEST_SAMPLES || (count < MOST_SAMPLES && now_ns() - start < BUDGET_NS))
        samples[count++] = timed(call, with, calls);
    print_row(row, samples, count);
}
