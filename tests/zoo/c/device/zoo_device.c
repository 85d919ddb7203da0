/* The C zoo's device type, ZOOC: every clause of what a device gives, through door 2. */
#define _POSIX_C_SOURCE 200809L
#include "zoo_device.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define HANDLE_BIT ((uintptr_t)1 << 62)
#define MAX_ALIGNMENT 4096u
#define MAX_DEVICES 8
#define LIMIT ((uint64_t)64 << 20)

typedef struct ZooDevice {
    TenonDevice *record;
    uint32_t ordinal;
    char description[32];
    atomic_int lost;
    atomic_ullong used;
    pthread_mutex_t lock;
    Queue *streams;
} ZooDevice;

static ZooDevice *zoo(TenonDeviceState *device)
{
    return (ZooDevice *)device;
}

static TenonCode alive(TenonDeviceState *device, TenonSink *sink)
{
    if (!atomic_load(&zoo(device)->lost)) {
        return TENON_OK;
    }
    return sink != NULL ? tenon_report(sink, TENON_UNAVAILABLE, "the device is lost") : TENON_UNAVAILABLE;
}

/* Waits until every stream has run what was enqueued on it; the first error. The lock is held meanwhile: a
 * stream that is destroyed would be gone. */
static TenonCode drain(ZooDevice *device)
{
    TenonCode code = TENON_OK;
    pthread_mutex_lock(&device->lock);
    for (Queue *queue = device->streams; queue != NULL; queue = queue->next) {
        TenonCode failure = queue_wait(queue);
        code = code != TENON_OK ? code : failure;
    }
    pthread_mutex_unlock(&device->lock);
    return code;
}

/* What runs ends before the host is told; what is enqueued later is refused. */
void zoo_device_lose(TenonDeviceState *device, TenonStr reason)
{
    int before;
    pthread_mutex_lock(&zoo(device)->lock);
    before = atomic_exchange(&zoo(device)->lost, 1);
    pthread_mutex_unlock(&zoo(device)->lock);
    if (!before) {
        drain(zoo(device));
        tenon_host->device_lost(zoo(device)->record, reason);
    }
}

TenonCode zoo_device_enqueue(TenonDeviceState *device, TenonStream *stream, Body body, void *data,
                             int always)
{
    TenonCode code;
    pthread_mutex_lock(&zoo(device)->lock);
    code = atomic_load(&zoo(device)->lost) ? TENON_UNAVAILABLE
                                           : queue_add((Queue *)stream, body, data, always);
    pthread_mutex_unlock(&zoo(device)->lock);
    return code;
}

void *zoo_address(const void *data, TenonMemoryKind memory)
{
    uintptr_t bits = (uintptr_t)data;
    return (void *)(memory == TENON_DEVICE_MEMORY ? bits ^ HANDLE_BIT : bits);
}

uint32_t zoo_device_probe(const TenonHost *host, const TenonPluginContext *context, TenonSink *sink)
{
    TenonKnobValue count;
    if (host->knob(context, tenon_str("count"), &count) != TENON_OK) {
        host->report(sink, tenon_str("knob count: this plugin declares none of that name"));
        return 0;
    }
    if (count.int_value < 1 || count.int_value > MAX_DEVICES) {
        host->report(sink, tenon_str("knob count is not within 1 to 8: no device"));
        return 0;
    }
    return (uint32_t)count.int_value;
}

TenonCode zoo_device_create(const TenonHost *host, const TenonPluginContext *context,
                            uint32_t ordinal, TenonDevice *device, TenonDeviceState **result,
                            TenonSink *sink)
{
    ZooDevice *made = calloc(1, sizeof *made);
    (void)host;
    (void)context;
    if (made == NULL) {
        return tenon_report(sink, TENON_RESOURCE_EXHAUSTED, "no memory for a device");
    }
    made->record = device;
    made->ordinal = ordinal;
    snprintf(made->description, sizeof made->description, "zoo device %u", ordinal);
    pthread_mutex_init(&made->lock, NULL);
    *result = (TenonDeviceState *)made;
    return TENON_OK;
}

static void destroy(TenonDeviceState *device)
{
    pthread_mutex_destroy(&zoo(device)->lock);
    free(device);
}

static void attributes(TenonDeviceState *device, TenonDeviceAttributes *result)
{
    static const TenonMemoryInfo memories[] = {
        { TENON_DEVICE_MEMORY, MAX_ALIGNMENT, LIMIT },
        { TENON_PINNED_MEMORY, 64, 0 },
        { TENON_SHARED_MEMORY, 64, 0 },
    };
    *result = (TenonDeviceAttributes){
        .struct_size = sizeof(TenonDeviceAttributes),
        .flags = TENON_DEVICE_FLAG_OWN_POOL | TENON_DEVICE_FLAG_STREAMS,
        .description = tenon_str(zoo(device)->description),
        .memories = memories,
        .memory_count = sizeof memories / sizeof memories[0],
        .numa_node = (int32_t)(zoo(device)->ordinal % 2),
        .bus_id = (int32_t)zoo(device)->ordinal + 1,
        .stream_count = 2,
    };
}

/* Sizes are rounded up as aligned_alloc wants them, and never 0. */
static uint64_t rounded(uint64_t bytes)
{
    return (bytes / MAX_ALIGNMENT + 1) * MAX_ALIGNMENT;
}

static TenonCode allocate(TenonDeviceState *device, uint64_t bytes, uint64_t align,
                          TenonMemoryKind memory, TenonStream *stream, void **result,
                          TenonSink *sink)
{
    void *data = NULL;
    TenonCode code = alive(device, sink);
    (void)stream;
    if (code != TENON_OK) {
        return code;
    }
    if (align > MAX_ALIGNMENT || memory == TENON_HOST_MEMORY || memory > TENON_SHARED_MEMORY) {
        return tenon_report(sink, TENON_INVALID_ARGUMENT, "no memory of that kind or alignment");
    }
    if (bytes <= LIMIT && atomic_fetch_add(&zoo(device)->used, bytes) + bytes <= LIMIT) {
        data = aligned_alloc(MAX_ALIGNMENT, rounded(bytes));
    }
    if (data == NULL) {
        if (bytes <= LIMIT) {
            atomic_fetch_sub(&zoo(device)->used, bytes);
        }
        return tenon_report(sink, TENON_RESOURCE_EXHAUSTED, "no device memory: the device has 64 MiB");
    }
    *result = zoo_address(data, memory);
    return TENON_OK;
}

static TenonCode free_later(void *data, TenonCode failure)
{
    free(data);
    (void)failure;
    return TENON_OK;
}

static void deallocate(TenonDeviceState *device, void *data, uint64_t bytes,
                       TenonMemoryKind memory, TenonStream *stream)
{
    void *address = zoo_address(data, memory);
    atomic_fetch_sub(&zoo(device)->used, bytes);
    if (stream == NULL || queue_add((Queue *)stream, free_later, address, 1) != TENON_OK) {
        free(address);
    }
}

/* A place is on the host, or on a device of this type: `create` made what the host gives. */
static uint32_t can_copy(TenonDeviceState *device, const TenonCopyRequest *request)
{
    (void)device;
    return request->source_memory <= TENON_SHARED_MEMORY
        && request->destination_memory <= TENON_SHARED_MEMORY;
}

typedef struct Copy {
    const void *from;
    void *to;
    uint64_t bytes;
} Copy;

static TenonCode run_copy(void *data, TenonCode failure)
{
    Copy *copy = data;
    (void)failure;
    memcpy(copy->to, copy->from, copy->bytes);
    free(copy);
    return TENON_OK;
}

static TenonCode copy(TenonDeviceState *device, const TenonCopyRequest *request,
                      TenonStream *stream, TenonSink *sink)
{
    Copy *made;
    TenonCode code = alive(device, sink);
    if (code != TENON_OK) {
        return code;
    }
    made = malloc(sizeof *made);
    if (made == NULL) {
        return tenon_report(sink, TENON_RESOURCE_EXHAUSTED, "no memory for a copy");
    }
    made->from = zoo_address(request->source, request->source_memory);
    made->to = zoo_address(request->destination, request->destination_memory);
    made->bytes = request->bytes;
    if (stream == NULL) {
        return run_copy(made, TENON_OK);
    }
    code = zoo_device_enqueue(device, stream, run_copy, made, 0);
    if (code != TENON_OK) {
        free(made);
        return tenon_report(sink, code, "the copy cannot be enqueued");
    }
    return TENON_OK;
}

static TenonCode create_stream(TenonDeviceState *device, TenonStream **result, TenonSink *sink)
{
    Queue *queue;
    TenonCode code = alive(device, sink);
    if (code != TENON_OK) {
        return code;
    }
    queue = queue_open();
    if (queue == NULL) {
        return tenon_report(sink, TENON_RESOURCE_EXHAUSTED, "no thread for a stream");
    }
    pthread_mutex_lock(&zoo(device)->lock);
    queue->next = zoo(device)->streams;
    zoo(device)->streams = queue;
    pthread_mutex_unlock(&zoo(device)->lock);
    *result = (TenonStream *)queue;
    return TENON_OK;
}

static void destroy_stream(TenonDeviceState *device, TenonStream *stream)
{
    Queue **link = &zoo(device)->streams;
    pthread_mutex_lock(&zoo(device)->lock);
    while (*link != NULL && *link != (Queue *)stream) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = (*link)->next;
    }
    pthread_mutex_unlock(&zoo(device)->lock);
    queue_close((Queue *)stream);
}

static TenonCode synchronize_stream(TenonDeviceState *device, TenonStream *stream, TenonSink *sink)
{
    TenonCode code = queue_wait((Queue *)stream);
    return code != TENON_OK ? tenon_report(sink, code, "zoo error on a stream") : alive(device, sink);
}

typedef struct Notification {
    TenonNotify notify;
    void *data;
} Notification;

static TenonCode run_notification(void *data, TenonCode failure)
{
    Notification notification = *(Notification *)data;
    free(data);
    notification.notify(notification.data, failure);
    return TENON_OK;
}

static TenonCode notify(TenonDeviceState *device, TenonStream *stream, TenonNotify done, void *data)
{
    Notification *notification;
    TenonCode code = alive(device, NULL);
    if (code != TENON_OK) {
        return code;
    }
    notification = malloc(sizeof *notification);
    if (notification == NULL) {
        return TENON_RESOURCE_EXHAUSTED;
    }
    *notification = (Notification){ done, data };
    code = queue_add((Queue *)stream, run_notification, notification, 1);
    if (code != TENON_OK) {
        free(notification);
    }
    return code;
}

static TenonCode create_event(TenonDeviceState *device, TenonEvent **result, TenonSink *sink)
{
    TenonCode code = alive(device, sink);
    if (code == TENON_OK) {
        *result = (TenonEvent *)point_new();
        code = *result != NULL ? TENON_OK
                               : tenon_report(sink, TENON_RESOURCE_EXHAUSTED, "no memory for an event");
    }
    return code;
}

static void destroy_event(TenonDeviceState *device, TenonEvent *event)
{
    (void)device;
    point_free((Point *)event);
}

static TenonCode record_event(TenonDeviceState *device, TenonEvent *event, TenonStream *stream)
{
    TenonCode code = alive(device, NULL);
    return code != TENON_OK ? code : point_record((Point *)event, (Queue *)stream);
}

static TenonCode wait_event(TenonDeviceState *device, TenonStream *stream, TenonEvent *event)
{
    TenonCode code = alive(device, NULL);
    return code != TENON_OK ? code : point_wait((Point *)event, (Queue *)stream);
}

static TenonCode query_event(TenonDeviceState *device, TenonEvent *event)
{
    TenonCode code = alive(device, NULL);
    return code != TENON_OK ? code : point_query((Point *)event);
}

static TenonCode synchronize(TenonDeviceState *device, TenonSink *sink)
{
    TenonCode code = drain(zoo(device));
    return code != TENON_OK ? tenon_report(sink, code, "zoo error on a stream") : alive(device, sink);
}

const TenonDeviceTable zoo_device_table = {
    .struct_size = sizeof(TenonDeviceTable),
    .destroy = destroy,
    .attributes = attributes,
    .allocate = allocate,
    .deallocate = deallocate,
    .can_copy = can_copy,
    .copy = copy,
    .create_stream = create_stream,
    .destroy_stream = destroy_stream,
    .synchronize_stream = synchronize_stream,
    .notify = notify,
    .create_event = create_event,
    .destroy_event = destroy_event,
    .record_event = record_event,
    .wait_event = wait_event,
    .query_event = query_event,
    .synchronize = synchronize,
};

TENON_KNOB("count", INT, "2", "How many devices of type ZOOC there are, 1 to 8; else none.");
TENON_DEVICE("ZOOC", zoo_device_probe, zoo_device_create, zoo_device_table, priority(-1));

TENON_PLUGIN();
