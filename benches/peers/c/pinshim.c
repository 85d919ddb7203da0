/* Preloaded, keeps every thread that a library makes on given cores, so that two do not share one.
 *
 * PIN_ORDER=1 puts all of them on core 1, PIN_ORDER=1,0 puts them there in turn; without it nothing changes. The caller
 * pins itself once the threads are made. Without this, pools that sleep or spin may land on one core when another
 * process is busy, and figures fall by half or worse.
 *
 * Build: gcc -O2 -shared -fPIC pinshim.c -o pinshim.so -ldl
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CORES = 16 };
typedef int (*create_fn)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* The cores that PIN_ORDER names; how many. */
static int cores_of(const char *order, int *cores) {
    int count = 0;
    while (order && *order && count < MOST_CORES) {
        cores[count++] = atoi(order);
        order = strchr(order, ',');
        if (order) order++;
    }
    return count;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *with) {
    static create_fn create;
    static unsigned made;
    if (!create) create = (create_fn)dlsym(RTLD_NEXT, "pthread_create");
    int failed = create(thread, attributes, start, with);
    int cores[MOST_CORES], count = cores_of(getenv("PIN_ORDER"), cores);
    if (!failed && count) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(cores[__atomic_fetch_add(&made, 1, __ATOMIC_RELAXED) % (unsigned)count], &set);
        pthread_setaffinity_np(*thread, sizeof set, &set);
    }
    return failed;
}
