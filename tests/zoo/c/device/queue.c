#include "queue.h"

#include <stdlib.h>

/* Takes the first command; null when the stream is closed and empty. */
static Command *take(Queue *queue)
{
    Command *command;
    pthread_mutex_lock(&queue->lock);
    while (queue->first == NULL && !queue->closed) {
        pthread_cond_wait(&queue->changed, &queue->lock);
    }
    command = queue->first;
    if (command != NULL) {
        queue->first = command->next;
        if (queue->first == NULL) {
            queue->last = &queue->first;
        }
    }
    pthread_mutex_unlock(&queue->lock);
    return command;
}

static void *run(void *data)
{
    Queue *queue = data;
    Command *command;
    while ((command = take(queue)) != NULL) {
        if (command->always || queue->failure == TENON_OK) {
            TenonCode code = command->body(command->data, queue->failure);
            if (queue->failure == TENON_OK) {
                queue->failure = code;
            }
        } else {
            free(command->data);
        }
        free(command);
    }
    return NULL;
}

Queue *queue_open(void)
{
    Queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL) {
        return NULL;
    }
    queue->last = &queue->first;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    if (pthread_create(&queue->thread, NULL, run, queue) != 0) {
        pthread_cond_destroy(&queue->changed);
        pthread_mutex_destroy(&queue->lock);
        free(queue);
        return NULL;
    }
    return queue;
}

void queue_close(Queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = 1;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->thread, NULL);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

TenonCode queue_add(Queue *queue, Body body, void *data, int always)
{
    Command *command = malloc(sizeof *command);
    if (command == NULL) {
        return TENON_RESOURCE_EXHAUSTED;
    }
    *command = (Command){ .body = body, .data = data, .always = always };
    pthread_mutex_lock(&queue->lock);
    *queue->last = command;
    queue->last = &command->next;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    return TENON_OK;
}

/* Where a thread waits for a stream. */
typedef struct Barrier {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int reached;
    TenonCode failure;
} Barrier;

static TenonCode reach(void *data, TenonCode failure)
{
    Barrier *barrier = data;
    pthread_mutex_lock(&barrier->lock);
    barrier->reached = 1;
    barrier->failure = failure;
    pthread_cond_signal(&barrier->changed);
    pthread_mutex_unlock(&barrier->lock);
    return TENON_OK;
}

TenonCode queue_wait(Queue *queue)
{
    Barrier barrier = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, TENON_OK };
    TenonCode code = queue_add(queue, reach, &barrier, 1);
    if (code == TENON_OK) {
        pthread_mutex_lock(&barrier.lock);
        while (!barrier.reached) {
            pthread_cond_wait(&barrier.changed, &barrier.lock);
        }
        code = barrier.failure;
        pthread_mutex_unlock(&barrier.lock);
    }
    pthread_cond_destroy(&barrier.changed);
    pthread_mutex_destroy(&barrier.lock);
    return code;
}

Point *point_new(void)
{
    Point *point = calloc(1, sizeof *point);
    if (point != NULL) {
        pthread_mutex_init(&point->lock, NULL);
        pthread_cond_init(&point->changed, NULL);
    }
    return point;
}

void point_free(Point *point)
{
    pthread_cond_destroy(&point->changed);
    pthread_mutex_destroy(&point->lock);
    free(point);
}

/* A recording of an event. */
typedef struct Recording {
    Point *point;
    uint64_t number;
} Recording;

static Recording *last_recording(Point *point, uint64_t further)
{
    Recording *recording = malloc(sizeof *recording);
    if (recording != NULL) {
        pthread_mutex_lock(&point->lock);
        point->made += further;
        *recording = (Recording){ point, point->made };
        pthread_mutex_unlock(&point->lock);
    }
    return recording;
}

static TenonCode happen(void *data, TenonCode failure)
{
    Recording *recording = data;
    Point *point = recording->point;
    pthread_mutex_lock(&point->lock);
    if (point->happened < recording->number) {
        point->happened = recording->number;
    }
    point->failure = failure;
    pthread_cond_broadcast(&point->changed);
    pthread_mutex_unlock(&point->lock);
    free(recording);
    return TENON_OK;
}

TenonCode point_record(Point *point, Queue *queue)
{
    Recording *recording = last_recording(point, 1);
    return recording == NULL ? TENON_RESOURCE_EXHAUSTED : queue_add(queue, happen, recording, 1);
}

static TenonCode await(void *data, TenonCode failure)
{
    Recording *recording = data;
    Point *point = recording->point;
    TenonCode code;
    (void)failure;
    pthread_mutex_lock(&point->lock);
    while (point->happened < recording->number) {
        pthread_cond_wait(&point->changed, &point->lock);
    }
    code = point->failure;
    pthread_mutex_unlock(&point->lock);
    free(recording);
    return code;
}

TenonCode point_wait(Point *point, Queue *queue)
{
    Recording *recording = last_recording(point, 0);
    return recording == NULL ? TENON_RESOURCE_EXHAUSTED : queue_add(queue, await, recording, 0);
}

TenonCode point_query(Point *point)
{
    TenonCode code;
    pthread_mutex_lock(&point->lock);
    code = point->happened < point->made ? TENON_PENDING : point->failure;
    pthread_mutex_unlock(&point->lock);
    return code;
}
