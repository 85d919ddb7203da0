/*
 * queue.h - streams of the C zoo's device, each a thread that runs commands in order, and events, which
 * are points in them.
 */
#ifndef ZOO_QUEUE_H
#define ZOO_QUEUE_H

#include "tenon.h"

#include <pthread.h>

/* A command. `failure` is the stream's first error so far, or TENON_OK; what it returns is kept as that. */
typedef TenonCode (*Body)(void *data, TenonCode failure);

typedef struct Command {
    struct Command *next;
    Body body;
    void *data;
    /* Runs also when the stream has failed. */
    int always;
} Command;

typedef struct Queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    Command *first;
    Command **last;
    int closed;
    TenonCode failure;
    pthread_t thread;
    /* The device's other streams. */
    struct Queue *next;
} Queue;

/* Starts a stream; null when there is no memory or no thread. */
Queue *queue_open(void);

/* Ends a stream once it has run what was enqueued. */
void queue_close(Queue *queue);

/* Enqueues a command; TENON_RESOURCE_EXHAUSTED without memory. A command that is not `always` and is
 * skipped frees its data by `free`, so that data comes from malloc. */
TenonCode queue_add(Queue *queue, Body body, void *data, int always);

/* Waits until all that was enqueued so far is done; the stream's first error. */
TenonCode queue_wait(Queue *queue);

typedef struct Point {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t made;
    uint64_t happened;
    TenonCode failure;
} Point;

/* Makes an event; null when there is no memory. */
Point *point_new(void);
void point_free(Point *point);

/* Records the event on a stream. */
TenonCode point_record(Point *point, Queue *queue);

/* Makes a stream wait for the event's last recording so far. */
TenonCode point_wait(Point *point, Queue *queue);

/* Whether the last recording has happened: TENON_OK, TENON_PENDING, or the error. */
TenonCode point_query(Point *point);

#endif /* ZOO_QUEUE_H */
