/* zoo_device.h - what the door, the device and the kernels of the C device zoo share. */
#ifndef ZOO_DEVICE_H
#define ZOO_DEVICE_H

#define TENON_PLUGIN_NAME "zoo-c-device"
#define TENON_PLUGIN_VERSION "0.1.0"
#include "queue.h"
#include "tenon_plugin.h"

/* The device type, and the table of its entries. */
extern const TenonDeviceTable zoo_device_table;
uint32_t zoo_device_probe(const TenonHost *host, const TenonPluginContext *context, TenonSink *sink);
TenonCode zoo_device_create(const TenonHost *host, const TenonPluginContext *context, uint32_t ordinal,
                            TenonDevice *device, TenonDeviceState **result, TenonSink *sink);

/* Says that the device is lost; from now on its entries answer TENON_UNAVAILABLE. */
void zoo_device_lose(TenonDeviceState *device, TenonStr reason);

/* As queue_add; TENON_UNAVAILABLE on a lost device. */
TenonCode zoo_device_enqueue(TenonDeviceState *device, TenonStream *stream, Body body, void *data,
                             int always);

/*
 * Where memory of a kind really lies. What `allocate` gives for TENON_DEVICE_MEMORY is a handle: an
 * address with its highest bit but one turned over, so that who takes it for an address finds out at once.
 */
void *zoo_address(const void *data, TenonMemoryKind memory);

#endif /* ZOO_DEVICE_H */
