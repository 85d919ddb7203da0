/*
 * tenon_client.h - Tenon's C API for programs that run graphs.
 *
 * Generated from core/capi/src/client; do not edit. Link libtenon_tensorflow (pkg-config tenon_client), which has
 * TensorFlow's C API, too.
 *
 * Rules that hold everywhere:
 *
 * - A handle (tn_session *, tn_tensor *, ...) stands for an object and is never dereferenced. The caller deletes every handle
 *   that it was given, by the "delete" function of its kind, in any order: an object stays as long as another one needs
 *   it. A delete returns TN_OK, also for null, or TN_INVALID_ARGUMENT for a handle that was deleted already or is of
 *   another kind. A handle that was deleted is an error wherever it is passed.
 * - A function that can fail takes a status as its last argument, which may be null. It returns null, false or 0 where it
 *   fails, and sets the status: a code, a message, and the node concerned. After success it clears the status.
 * - A struct of options or results begins with its size: set it to sizeof, and all other fields to 0 or to values. TN_INIT
 *   does that. A library of another version understands it: fields that it does not know must be 0.
 * - Texts end with a zero byte and are UTF-8. What a function is given need stay only during the call, unless its
 *   description says otherwise.
 * - An array is null or has as many elements as the number beside it says.
 * - Nothing is shared by the process but the receiver of log messages.
 * - No function may be called from a release function or a receiver of log messages.
 * - After a fork, the child must not use handles of its parent.
 */
#ifndef TENON_CLIENT_H
#define TENON_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The first fields of a struct of options or results: tn_run_options options = TN_INIT(tn_run_options); */
#ifdef __cplusplus
#define TN_INIT(type) tn_init<type>()
#else
#define TN_INIT(type) {.size = sizeof(type)}
#endif

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/** Canonical codes of statuses, numbered as TensorFlow's. */
typedef enum tn_code {
  TN_OK = 0,
  TN_CANCELLED = 1,
  TN_UNKNOWN = 2,
  TN_INVALID_ARGUMENT = 3,
  TN_DEADLINE_EXCEEDED = 4,
  TN_NOT_FOUND = 5,
  TN_ALREADY_EXISTS = 6,
  TN_PERMISSION_DENIED = 7,
  TN_RESOURCE_EXHAUSTED = 8,
  TN_FAILED_PRECONDITION = 9,
  TN_ABORTED = 10,
  TN_OUT_OF_RANGE = 11,
  TN_UNIMPLEMENTED = 12,
  TN_INTERNAL = 13,
  TN_UNAVAILABLE = 14,
  TN_DATA_LOSS = 15,
  TN_UNAUTHENTICATED = 16
} tn_code;

/** Element types, numbered as TensorFlow's. */
typedef enum tn_dtype {
  TN_FLOAT = 1,
  TN_DOUBLE = 2,
  TN_INT32 = 3,
  TN_UINT8 = 4,
  TN_INT16 = 5,
  TN_INT8 = 6,
  TN_STRING = 7,
  TN_COMPLEX64 = 8,
  TN_INT64 = 9,
  TN_BOOL = 10,
  TN_QINT8 = 11,
  TN_QUINT8 = 12,
  TN_QINT32 = 13,
  TN_BFLOAT16 = 14,
  TN_QINT16 = 15,
  TN_QUINT16 = 16,
  TN_UINT16 = 17,
  TN_COMPLEX128 = 18,
  TN_HALF = 19,
  TN_RESOURCE = 20,
  TN_VARIANT = 21,
  TN_UINT32 = 22,
  TN_UINT64 = 23,
  TN_FLOAT8_E5M2 = 24,
  TN_FLOAT8_E4M3FN = 25,
  TN_FLOAT8_E4M3FNUZ = 26,
  TN_FLOAT8_E4M3B11FNUZ = 27,
  TN_FLOAT8_E5M2FNUZ = 28,
  TN_INT4 = 29,
  TN_UINT4 = 30,
  TN_INT2 = 31,
  TN_UINT2 = 32,
  TN_FLOAT4_E2M1FN = 33
} tn_dtype;

/** Severities of log messages, the most severe first. */
typedef enum tn_log_level {
  TN_LOG_OFF = 0,
  TN_LOG_ERROR = 1,
  TN_LOG_WARN = 2,
  TN_LOG_INFO = 3,
  TN_LOG_DEBUG = 4,
  TN_LOG_TRACE = 5
} tn_log_level;

/** The most dimensions that a tensor has. */
#define TN_MAX_RANK 16

/** What came of a call: a code, a message, and the node that failed. */
typedef struct tn_status tn_status;
/** A builder of a node. */
typedef struct tn_builder tn_builder;
/** A callable. */
typedef struct tn_callable tn_callable;
/** A token. */
typedef struct tn_cancel tn_cancel;
/** A checkpoint. */
typedef struct tn_checkpoint tn_checkpoint;
/** A list of devices. */
typedef struct tn_devices tn_devices;
/** A graph. */
typedef struct tn_graph tn_graph;
/** A list of kernels. */
typedef struct tn_kernels tn_kernels;
/** A model. */
typedef struct tn_model tn_model;
/** A node. */
typedef struct tn_node tn_node;
/** A runtime. */
typedef struct tn_runtime tn_runtime;
/** A server. */
typedef struct tn_server tn_server;
/** A session. */
typedef struct tn_session tn_session;
/** A tensor. */
typedef struct tn_tensor tn_tensor;
/** A buffer. */
typedef struct tn_buffer tn_buffer;
/** A list. */
typedef struct tn_list tn_list;
/** A saver. */
typedef struct tn_saver tn_saver;

/**
 * Receives a log message: its severity, the part of the library that it is from, its text, and the
 * caller's argument. The texts stay during the call. Threads of the library call it, several at
 * once; it returns soon, and calls no function of the library.
 */
typedef void (*tn_log_receiver)(tn_log_level level, const char *target, const char *message, void *argument);

/**
 * Frees memory that a caller lent: is called once, with the address, the size in bytes, and the
 * caller's argument. Any thread of the library may call it. It must not call functions of the
 * library.
 */
typedef void (*tn_release)(void *data, size_t bytes, void *argument);

/** What is known of a device. The texts stay until the list is deleted. */
typedef struct tn_device_info {
  /** sizeof(tn_device_info), which the caller sets. */
  size_t size;
  /** The full name, such as "/job:localhost/replica:0/task:0/device:CPU:0". */
  const char *name;
  /** The type, such as "CPU". */
  const char *device_type;
  /** The model and other details, for people. */
  const char *description;
  /** The bytes that the device may use; 0 if it does not say. */
  int64_t memory_limit;
  /** A number that a device which is opened again does not have. */
  uint64_t incarnation;
  /** The NUMA node; 0 if it is not known. */
  int32_t numa_node;
  /** The bus; 0 if it is not known. */
  int32_t bus_id;
} tn_device_info;

/** Options of an import. Zeros are the defaults. */
typedef struct tn_import_options {
  /** sizeof(tn_import_options). */
  size_t size;
  /** Is put before the names of all imported nodes, with a slash; null for nothing. */
  const char *prefix;
  /** The device of imported nodes that request none; null for none. */
  const char *default_device;
  /** Tensors of the message, such as "x:0", that are replaced by those of the graph below. */
  const char *const *replaced;
  /** Tensors of the graph, as many. */
  const char *const *replacements;
  /** The number of tensors that are replaced. */
  size_t replaced_count;
} tn_import_options;

/** The element type and the shape of a tensor, as far as they are known. */
typedef struct tn_value_info {
  /** sizeof(tn_value_info), which the caller sets. */
  size_t size;
  /** The element type; 0 if it is not known. */
  tn_dtype dtype;
  /** The number of dimensions; -1 if it is not known. */
  int rank;
  /** The dimensions, of which the first "rank" count; -1 for those that are not known. */
  int64_t dims[TN_MAX_RANK];
} tn_value_info;

/** What is known of a kernel. The texts stay until the list is deleted. */
typedef struct tn_kernel_info {
  /** sizeof(tn_kernel_info), which the caller sets. */
  size_t size;
  /** The op. */
  const char *op;
  /** The type of device, such as "CPU". */
  const char *device_type;
  /** The label; empty for an ordinary kernel. */
  const char *label;
  /** The plugin that has it. */
  const char *plugin;
  /** The priority: of the kernels that fit a node, the one with the highest number is taken. */
  int64_t priority;
} tn_kernel_info;

/** Options of a runtime. Zeros are the defaults. */
typedef struct tn_runtime_options {
  /** sizeof(tn_runtime_options). */
  size_t size;
  /** Threads for kernels; 0 for one per core. */
  size_t threads;
  /**
   * Whether to load only the plugins below. Otherwise they are searched for, too: in
   * TENON_PLUGIN_PATH, beside the program, beside the library, and among the user's plugins.
   */
  bool named_only;
  /** Files of plugins to load, plugin_count in number. */
  const char *const *plugins;
  /** Their number. */
  size_t plugin_count;
  /**
   * The list of plugins that may be loaded, as "tenon trust" writes it; null for the setting
   * host.trust_file.
   */
  const char *trust_file;
  /** Settings of knobs, each "scope.name=value", setting_count in number. */
  const char *const *settings;
  /** Their number. */
  size_t setting_count;
  /** The job of this process in a cluster, such as "worker"; null for "localhost". */
  const char *job;
  /** The number of the task in the job. */
  size_t task;
} tn_runtime_options;

/** Options of a server. Zeros are the defaults. */
typedef struct tn_server_options {
  /** sizeof(tn_server_options). */
  size_t size;
  /** ADDRESS:PORT to listen at; null for any free port of 127.0.0.1. */
  const char *listen;
  /**
   * The tasks of the cluster, as the JSON object of TF_CONFIG's "cluster"; null for a server on its
   * own. The runtime's job and task say which one this is.
   */
  const char *cluster;
  /** A file of tokens, one of which each request brings; null for none. */
  const char *token_file;
  /** How many sessions may be open; 0 for 1000. */
  size_t sessions;
} tn_server_options;

/** Options of a session. Zeros are the defaults. */
typedef struct tn_session_options {
  /** sizeof(tn_session_options). */
  size_t size;
  /** Where the steps run: null or empty for this process, "grpc://HOST:PORT" for a server. */
  const char *target;
  /** A ConfigProto message; null for none. */
  const void *config;
  /** Its size in bytes. */
  size_t config_bytes;
  /**
   * The time limit in milliseconds of steps that have none of their own; 0 for that of the message,
   * or none.
   */
  int64_t timeout_ms;
} tn_session_options;

/** Options of one step. Zeros are the defaults. */
typedef struct tn_run_options {
  /** sizeof(tn_run_options). */
  size_t size;
  /**
   * The time limit in milliseconds, after which the step fails with TN_DEADLINE_EXCEEDED; 0 for the
   * session's.
   */
  int64_t timeout_ms;
  /**
   * A token that cancels the step, from any thread; null for none. For sessions in this process.
   */
  tn_cancel *cancel;
  /**
   * Where to write a buffer with a RunMetadata message, whose step_stats have the times of the
   * nodes; null for none. The caller deletes the buffer. For sessions in this process.
   */
  tn_buffer **stats;
} tn_run_options;

/** Options of a saver. Zeros are the defaults. */
typedef struct tn_saver_options {
  /** sizeof(tn_saver_options). */
  size_t size;
  /** How many of the newest checkpoints are kept; 0 for 5, -1 for all. */
  int32_t max_to_keep;
  /** Whether the variables of each device go to a file of their own. */
  bool sharded;
  /** The prefix of the names of the saver's nodes; null for "save". */
  const char *scope;
} tn_saver_options;

/* Builders of nodes. */

/**
 * Begins a node of this op and this name: add inputs and attributes, and then call
 * tn_builder_finish. The caller deletes the builder.
 * Thread safety: several threads may call this at once.
 */
tn_builder *tn_builder_new(tn_graph *graph, const char *op, const char *name, tn_status *status);

/**
 * Deletes a builder. A node that is not finished is not added.
 * Thread safety: several threads may call this at once.
 */
int tn_builder_delete(tn_builder *builder);

/**
 * Adds the node to its graph. Returns the names of its outputs, such as "y:0", which the caller
 * deletes. Null if the node is refused, and then the graph is unchanged; the builder is finished in
 * both cases.
 * Thread safety: several threads may call this at once.
 */
tn_list *tn_builder_finish(tn_builder *builder, tn_status *status);

/**
 * Gives the next input a tensor such as "x:0"; "x" is its first output.
 * Thread safety: several threads may call this at once.
 */
bool tn_builder_input(tn_builder *builder, const char *tensor, tn_status *status);

/**
 * Gives the next input, which is a list, tensors.
 * Thread safety: several threads may call this at once.
 */
bool tn_builder_input_list(
    tn_builder *builder,
    const char *const *tensors,
    size_t count,
    tn_status *status);

/**
 * Makes the node wait for others.
 * Thread safety: several threads may call this at once.
 */
bool tn_builder_control_inputs(
    tn_builder *builder,
    const char *const *nodes,
    size_t count,
    tn_status *status);

/**
 * Requests a device, by a full or partial name such as "/device:CPU:0".
 * Thread safety: several threads may call this at once.
 */
bool tn_builder_device(tn_builder *builder, const char *device, tn_status *status);

/**
 * Requests the device of another node.
 * Thread safety: several threads may call this at once.
 */
bool tn_builder_colocate(tn_builder *builder, const char *node, tn_status *status);

/* Attributes of nodes to be added, with one value. */

/**
 * Sets an attribute to an integer.
 * Thread safety: several threads may call this at once.
 */
bool tn_builder_attr_int(tn_builder *builder, const char *name, int64_t value, tn_status *status);

/**
 * Sets an attribute to a number.
 * Thread safety: several threads may call this at once.
 */
bool tn_builder_attr_float(tn_builder *builder, const char *name, float value, tn_status *status);

/**
 * Sets an attribute to a truth value.
 * Thread safety: several threads may call this at once.
 */
bool tn_builder_attr_bool(tn_builder *builder, const char *name, bool value, tn_status *status);

/**
 * Sets an attribute to an element type.
 * Thread safety: several threads may call this at once.
 */
bool tn_builder_attr_type(tn_builder *builder, const char *name, tn_dtype value, tn_status *status);

/**
 * Sets an attribute to a copy of bytes.
 * Thread safety: several threads may call this at once.
 */
bool tn_builder_attr_string(
    tn_builder *builder,
    const char *name,
    const void *value,
    size_t length,
    tn_status *status);

/**
 * Sets an attribute to a shape. -1 as a dimension is one that is not known, -1 as the rank a shape
 * of which nothing is known.
 * Thread safety: several threads may call this at once.
 */
bool tn_builder_attr_shape(
    tn_builder *builder,
    const char *name,
    const int64_t *dims,
    int rank,
    tn_status *status);

/**
 * Sets an attribute to a tensor, whose memory must not change afterwards.
 * Thread safety: several threads may call this at once.
 */
bool tn_builder_attr_tensor(
    tn_builder *builder,
    const char *name,
    tn_tensor *value,
    tn_status *status);

/**
 * Sets an attribute to the function of this name.
 * Thread safety: several threads may call this at once.
 */
bool tn_builder_attr_function(
    tn_builder *builder,
    const char *name,
    const char *function,
    tn_status *status);

/**
 * Sets an attribute to the value of an AttrValue message.
 * Thread safety: several threads may call this at once.
 */
bool tn_builder_attr_message(
    tn_builder *builder,
    const char *name,
    const void *message,
    size_t bytes,
    tn_status *status);

/* Attributes of nodes to be added, with lists of values. */

/**
 * Sets an attribute to a list of integers.
 * Thread safety: several threads may call this at once.
 */
bool tn_builder_attr_int_list(
    tn_builder *builder,
    const char *name,
    const int64_t *values,
    size_t count,
    tn_status *status);

/**
 * Sets an attribute to a list of numbers.
 * Thread safety: several threads may call this at once.
 */
bool tn_builder_attr_float_list(
    tn_builder *builder,
    const char *name,
    const float *values,
    size_t count,
    tn_status *status);

/**
 * Sets an attribute to a list of truth values.
 * Thread safety: several threads may call this at once.
 */
bool tn_builder_attr_bool_list(
    tn_builder *builder,
    const char *name,
    const bool *values,
    size_t count,
    tn_status *status);

/**
 * Sets an attribute to a list of element types.
 * Thread safety: several threads may call this at once.
 */
bool tn_builder_attr_type_list(
    tn_builder *builder,
    const char *name,
    const tn_dtype *values,
    size_t count,
    tn_status *status);

/**
 * Sets an attribute to a list of copies of bytes.
 * Thread safety: several threads may call this at once.
 */
bool tn_builder_attr_string_list(
    tn_builder *builder,
    const char *name,
    const char *const *values,
    const size_t *lengths,
    size_t count,
    tn_status *status);

/**
 * Sets an attribute to a list of shapes, each as in tn_builder_attr_shape.
 * Thread safety: several threads may call this at once.
 */
bool tn_builder_attr_shape_list(
    tn_builder *builder,
    const char *name,
    const int64_t *const *dims,
    const int *ranks,
    size_t count,
    tn_status *status);

/* Prepared steps. */

/**
 * Prepares a step: its names are found, and it is compiled, once. The caller deletes the callable.
 * Thread safety: several threads may call this at once.
 */
tn_callable *tn_callable_new(
    tn_session *session,
    const char *const *feeds,
    size_t feed_count,
    const char *const *fetches,
    size_t fetch_count,
    const char *const *targets,
    size_t target_count,
    tn_status *status);

/**
 * Runs a prepared step with the values of its feeds, in order, and writes the values of its fetches
 * as new tensors, which the caller deletes. "options" may be null. On failure all results are null.
 * Thread safety: several threads may call this at once.
 */
bool tn_callable_run(
    tn_callable *callable,
    const tn_run_options *options,
    tn_tensor *const *values,
    size_t value_count,
    tn_tensor **results,
    size_t result_count,
    tn_status *status);

/**
 * Binds feed number "index" to a tensor, which tn_callable_run_bound reads. The tensor may be
 * deleted; its memory stays until another one is bound, or the callable is deleted. Its elements
 * may change between steps.
 * Thread safety: several threads may call this at once.
 */
bool tn_callable_bind_input(tn_callable *callable, int index, tn_tensor *value, tn_status *status);

/**
 * Binds fetch number "index" to a tensor of the type and the shape of its values, into whose memory
 * tn_callable_run_bound copies them. The tensor may be deleted; its memory stays until another one
 * is bound, or the callable is deleted.
 * Thread safety: several threads may call this at once.
 */
bool tn_callable_bind_output(tn_callable *callable, int index, tn_tensor *value, tn_status *status);

/**
 * Runs a prepared step with what is bound. "options" may be null. If it fails, the memory of bound
 * outputs may have changed.
 * Thread safety: one call at a time for a callable, since its steps share the memory of what is
 * bound.
 */
bool tn_callable_run_bound(tn_callable *callable, const tn_run_options *options, tn_status *status);

/**
 * Deletes a callable.
 * Thread safety: several threads may call this at once.
 */
int tn_callable_delete(tn_callable *callable);

/* Tokens that cancel steps. */

/**
 * Makes a token, to be given to steps by tn_run_options. The caller deletes it.
 * Thread safety: several threads may call this at once.
 */
tn_cancel *tn_cancel_new(tn_status *status);

/**
 * Cancels all current and future steps with this token: they end with TN_CANCELLED.
 * Thread safety: several threads may call this at once.
 */
bool tn_cancel_trigger(tn_cancel *cancel, tn_status *status);

/**
 * Whether the token was triggered; false for no token.
 * Thread safety: several threads may call this at once.
 */
bool tn_cancel_is_triggered(tn_cancel *cancel);

/**
 * Deletes a token. Steps that have it go on, and can no longer be cancelled by it.
 * Thread safety: several threads may call this at once.
 */
int tn_cancel_delete(tn_cancel *cancel);

/* Checkpoints as files: what they have, and single tensors of them. */

/**
 * Opens the checkpoint with this prefix, of the form of TensorFlow's (PREFIX.index). The caller
 * deletes it.
 * Thread safety: several threads may call this at once.
 */
tn_checkpoint *tn_checkpoint_open(const char *prefix, tn_status *status);

/**
 * Closes and deletes a checkpoint; its files stay.
 * Thread safety: several threads may call this at once.
 */
int tn_checkpoint_delete(tn_checkpoint *checkpoint);

/**
 * The names of its tensors, sorted. The caller deletes the list.
 * Thread safety: several threads may call this at once.
 */
tn_list *tn_checkpoint_names(tn_checkpoint *checkpoint, tn_status *status);

/**
 * Writes the element type and the shape of a tensor.
 * Thread safety: several threads may call this at once.
 */
bool tn_checkpoint_info(
    tn_checkpoint *checkpoint,
    const char *name,
    tn_value_info *info,
    tn_status *status);

/**
 * Reads a tensor. TN_DATA_LOSS if its checksum differs. The caller deletes the tensor.
 * Thread safety: several threads may call this at once.
 */
tn_tensor *tn_checkpoint_read(tn_checkpoint *checkpoint, const char *name, tn_status *status);

/**
 * Writes tensors as a checkpoint with this prefix, in the place of one that is there. It appears as
 * a whole or not at all.
 * Thread safety: several threads may call this at once.
 */
bool tn_checkpoint_write(
    const char *prefix,
    const char *const *names,
    tn_tensor *const *tensors,
    size_t count,
    tn_status *status);

/**
 * The prefix of the newest complete checkpoint of a folder, by its file "checkpoint", in a list of
 * one text, or an empty list where there is none. The caller deletes the list.
 * Thread safety: several threads may call this at once.
 */
tn_list *tn_checkpoint_latest(const char *folder, tn_status *status);

/* Lists of devices and their attributes. */

/**
 * The devices of this process. The caller deletes the list.
 * Thread safety: several threads may call this at once.
 */
tn_devices *tn_runtime_devices(tn_runtime *runtime, tn_status *status);

/**
 * The devices on which the steps of a session run, in this process or on the servers of its target.
 * The caller deletes the list.
 * Thread safety: several threads may call this at once.
 */
tn_devices *tn_session_devices(tn_session *session, tn_status *status);

/**
 * The number of devices; 0 for no list.
 * Thread safety: several threads may call this at once.
 */
size_t tn_devices_count(tn_devices *devices);

/**
 * Writes what is known of device number index.
 * Thread safety: several threads may call this at once.
 */
bool tn_devices_get(tn_devices *devices, size_t index, tn_device_info *info, tn_status *status);

/**
 * Finds the device of this full name, and writes its number.
 * Thread safety: several threads may call this at once.
 */
bool tn_devices_find(tn_devices *devices, const char *name, size_t *index, tn_status *status);

/**
 * Deletes a list of devices.
 * Thread safety: several threads may call this at once.
 */
int tn_devices_delete(tn_devices *devices);

/* DLPack: memory that is shared with other libraries. */

/**
 * Exports a tensor as a DLManagedTensorVersioned of DLPack 1.0, without a copy. It is marked
 * read-only. The consumer calls its deleter, before or after the tensor is deleted.
 * Thread safety: several threads may call this at once.
 */
struct DLManagedTensorVersioned *tn_tensor_to_dlpack(tn_tensor *tensor, tn_status *status);

/**
 * Exports a tensor as a DLManagedTensor of older versions of DLPack, without a copy. Its consumer
 * must not write to the memory, which these versions cannot say. The consumer calls its deleter,
 * before or after the tensor is deleted.
 * Thread safety: several threads may call this at once.
 */
struct DLManagedTensor *tn_tensor_to_dlpack_unversioned(tn_tensor *tensor, tn_status *status);

/**
 * Makes a tensor of a DLManagedTensorVersioned in host memory, without a copy where its address is
 * a multiple of 64. On success the library calls its deleter once the memory is no longer used; on
 * failure the caller keeps it. The caller deletes the tensor.
 * Thread safety: several threads may call this at once.
 */
tn_tensor *tn_tensor_from_dlpack(struct DLManagedTensorVersioned *managed, tn_status *status);

/**
 * As tn_tensor_from_dlpack, for a DLManagedTensor of older versions of DLPack.
 * Thread safety: several threads may call this at once.
 */
tn_tensor *tn_tensor_from_dlpack_unversioned(struct DLManagedTensor *managed, tn_status *status);

/* Functions of graphs. */

/**
 * Adds the function of a FunctionDef message to a graph, whose nodes may then call it.
 * Thread safety: several threads may call this at once.
 */
bool tn_graph_add_function(tn_graph *graph, const void *message, size_t bytes, tn_status *status);

/**
 * The names of the functions of a graph. The caller deletes the list.
 * Thread safety: several threads may call this at once.
 */
tn_list *tn_graph_functions(tn_graph *graph, tn_status *status);

/**
 * The function of this name as a FunctionDef message. The caller deletes the buffer.
 * Thread safety: several threads may call this at once.
 */
tn_buffer *tn_graph_function(tn_graph *graph, const char *name, tn_status *status);

/**
 * Makes a function of all nodes of a graph but those of the inputs, as a FunctionDef message for
 * tn_graph_add_function. "output_names" is null for names that are chosen, or has one for each
 * output. The caller deletes the buffer.
 * Thread safety: several threads may call this at once.
 */
tn_buffer *tn_graph_to_function(
    tn_graph *graph,
    const char *name,
    const char *const *inputs,
    size_t input_count,
    const char *const *outputs,
    const char *const *output_names,
    size_t output_count,
    tn_status *status);

/* Gradients, added to a graph. */

/**
 * Adds nodes that compute the gradients of the sum of the tensors "ys" with respect to each of
 * "xs". Returns the names of the gradients, in the order of "xs", which the caller deletes. "given"
 * has the gradients of "ys", or is null for ones. "prefix" begins the names of the nodes, and no
 * node of the graph has it; null for one that is chosen. It is an error if no path leads from an x
 * to the ys, or an op on the path has no gradient; then nothing is added.
 * Thread safety: several threads may call this at once.
 */
tn_list *tn_graph_gradients(
    tn_graph *graph,
    const char *prefix,
    const char *const *ys,
    size_t y_count,
    const char *const *xs,
    size_t x_count,
    const char *const *given,
    tn_status *status);

/* Graphs: made, read from messages, and written. */

/**
 * Makes an empty graph over the ops of a runtime. The caller deletes it.
 * Thread safety: several threads may call this at once.
 */
tn_graph *tn_graph_new(tn_runtime *runtime, tn_status *status);

/**
 * Deletes a graph. Its sessions keep what they need of it.
 * Thread safety: several threads may call this at once.
 */
int tn_graph_delete(tn_graph *graph);

/**
 * Adds the nodes and functions of a GraphDef message. "options" may be null. If the graph is
 * refused, nothing is added.
 * Thread safety: several threads may call this at once.
 */
bool tn_graph_import(
    tn_graph *graph,
    const void *message,
    size_t bytes,
    const tn_import_options *options,
    tn_status *status);

/**
 * The graph as a GraphDef message. The caller deletes the buffer.
 * Thread safety: several threads may call this at once.
 */
tn_buffer *tn_graph_message(tn_graph *graph, tn_status *status);

/**
 * The names of all nodes, in the order in which they were added. The caller deletes the list.
 * Thread safety: several threads may call this at once.
 */
tn_list *tn_graph_nodes(tn_graph *graph, tn_status *status);

/**
 * Whether the graph has a node of this name; false also for a handle or a name that is wrong, which
 * the status tells apart.
 * Thread safety: several threads may call this at once.
 */
bool tn_graph_has(tn_graph *graph, const char *node, tn_status *status);

/**
 * Writes the element type and the shape of a tensor such as "x:0", as far as they are known before
 * a step.
 * Thread safety: several threads may call this at once.
 */
bool tn_graph_tensor_info(
    tn_graph *graph,
    const char *tensor,
    tn_value_info *info,
    tn_status *status);

/**
 * Makes the shape of a tensor more exact: -1 as a dimension is one that is not known.
 * TN_INVALID_ARGUMENT if it contradicts what is known.
 * Thread safety: several threads may call this at once.
 */
bool tn_graph_set_shape(
    tn_graph *graph,
    const char *tensor,
    const int64_t *dims,
    int rank,
    tn_status *status);

/* Lists of kernels. */

/**
 * The kernels of an op, or all kernels if "op" is null. The list is empty where an op has none. The
 * caller deletes it.
 * Thread safety: several threads may call this at once.
 */
tn_kernels *tn_runtime_kernels(tn_runtime *runtime, const char *op, tn_status *status);

/**
 * The number of kernels; 0 for no list.
 * Thread safety: several threads may call this at once.
 */
size_t tn_kernels_count(tn_kernels *kernels);

/**
 * Writes what is known of kernel number index.
 * Thread safety: several threads may call this at once.
 */
bool tn_kernels_get(tn_kernels *kernels, size_t index, tn_kernel_info *info, tn_status *status);

/**
 * Deletes a list of kernels.
 * Thread safety: several threads may call this at once.
 */
int tn_kernels_delete(tn_kernels *kernels);

/* Log messages, for a function of the program. */

/**
 * Sets the function of the process that receives log messages of this level and of more severe
 * ones, in the place of a former one; null for none. When this returns, no call of the former one
 * runs. Without a receiver, nothing is written anywhere.
 * Thread safety: several threads may call this at once.
 */
bool tn_log_set(tn_log_receiver receiver, void *argument, tn_log_level level, tn_status *status);

/* Saved models. */

/**
 * Loads a SavedModel: imports the graph that has exactly these tags, restores its variables, and
 * runs its initial op. No tags mean "serve" alone. The caller deletes the model.
 * Thread safety: several threads may call this at once.
 */
tn_model *tn_model_load(
    tn_runtime *runtime,
    const char *folder,
    const char *const *tags,
    size_t tag_count,
    tn_status *status);

/**
 * Deletes a model.
 * Thread safety: several threads may call this at once.
 */
int tn_model_delete(tn_model *model);

/**
 * The keys of its signatures, sorted. The caller deletes the list.
 * Thread safety: several threads may call this at once.
 */
tn_list *tn_model_signatures(tn_model *model, tn_status *status);

/**
 * The names of the inputs of a signature; a null key means "serving_default". The caller deletes
 * the list.
 * Thread safety: several threads may call this at once.
 */
tn_list *tn_model_inputs(tn_model *model, const char *signature, tn_status *status);

/**
 * The names of the outputs of a signature; a null key means "serving_default". The caller deletes
 * the list.
 * Thread safety: several threads may call this at once.
 */
tn_list *tn_model_outputs(tn_model *model, const char *signature, tn_status *status);

/**
 * Writes the element type and the shape of an input of a signature.
 * Thread safety: several threads may call this at once.
 */
bool tn_model_input_info(
    tn_model *model,
    const char *signature,
    const char *name,
    tn_value_info *info,
    tn_status *status);

/**
 * Writes the element type and the shape of an output of a signature.
 * Thread safety: several threads may call this at once.
 */
bool tn_model_output_info(
    tn_model *model,
    const char *signature,
    const char *name,
    tn_value_info *info,
    tn_status *status);

/**
 * Runs a signature with inputs by name, in any order; one that has a default may be left out.
 * Writes the values of "outputs" as new tensors, which the caller deletes. A null key means
 * "serving_default"; "options" may be null. The step of a signature is compiled at its first call.
 * On failure all results are null.
 * Thread safety: several threads may call this at once.
 */
bool tn_model_run(
    tn_model *model,
    const char *signature,
    const tn_run_options *options,
    const char *const *inputs,
    tn_tensor *const *values,
    size_t input_count,
    const char *const *outputs,
    tn_tensor **results,
    size_t output_count,
    tn_status *status);

/* Questions about nodes. */

/**
 * The node of this name. What it tells is of the time of this call. The caller deletes it.
 * Thread safety: several threads may call this at once.
 */
tn_node *tn_graph_node(tn_graph *graph, const char *name, tn_status *status);

/**
 * Deletes what tn_graph_node gave; the node stays in its graph.
 * Thread safety: several threads may call this at once.
 */
int tn_node_delete(tn_node *node);

/**
 * The name, which stays until the handle is deleted; null for no node.
 * Thread safety: several threads may call this at once.
 */
const char *tn_node_name(tn_node *node);

/**
 * The op, which stays until the handle is deleted; null for no node.
 * Thread safety: several threads may call this at once.
 */
const char *tn_node_op(tn_node *node);

/**
 * The device that the node requests, which stays until the handle is deleted; empty if it requests
 * none, null for no node.
 * Thread safety: several threads may call this at once.
 */
const char *tn_node_device(tn_node *node);

/**
 * The names of the tensors that the node reads. The caller deletes the list.
 * Thread safety: several threads may call this at once.
 */
tn_list *tn_node_inputs(tn_node *node, tn_status *status);

/**
 * The names of the nodes that the node waits for without reading them. The caller deletes the list.
 * Thread safety: several threads may call this at once.
 */
tn_list *tn_node_control_inputs(tn_node *node, tn_status *status);

/**
 * The number of outputs; 0 for no node.
 * Thread safety: several threads may call this at once.
 */
int tn_node_output_count(tn_node *node);

/**
 * The element type of output number "index"; 0 where the node has no such output.
 * Thread safety: several threads may call this at once.
 */
tn_dtype tn_node_output_dtype(tn_node *node, int index);

/**
 * An attribute as an AttrValue message. TN_NOT_FOUND if the node does not have it. The caller
 * deletes the buffer.
 * Thread safety: several threads may call this at once.
 */
tn_buffer *tn_node_attr(tn_node *node, const char *name, tn_status *status);

/**
 * Writes an attribute that is an integer.
 * Thread safety: several threads may call this at once.
 */
bool tn_node_attr_int(tn_node *node, const char *name, int64_t *value, tn_status *status);

/**
 * Writes an attribute that is a number.
 * Thread safety: several threads may call this at once.
 */
bool tn_node_attr_float(tn_node *node, const char *name, float *value, tn_status *status);

/**
 * Writes an attribute that is a truth value.
 * Thread safety: several threads may call this at once.
 */
bool tn_node_attr_bool(tn_node *node, const char *name, bool *value, tn_status *status);

/**
 * Writes an attribute that is an element type.
 * Thread safety: several threads may call this at once.
 */
bool tn_node_attr_type(tn_node *node, const char *name, tn_dtype *value, tn_status *status);

/**
 * The bytes of an attribute that is a text. The caller deletes the buffer.
 * Thread safety: several threads may call this at once.
 */
tn_buffer *tn_node_attr_string(tn_node *node, const char *name, tn_status *status);

/**
 * Writes the dimensions of an attribute that is a shape, at most "room" of them, and their number:
 * -1 for a shape of which nothing is known.
 * Thread safety: several threads may call this at once.
 */
bool tn_node_attr_shape(
    tn_node *node,
    const char *name,
    int64_t *dims,
    int room,
    int *rank,
    tn_status *status);

/**
 * The names of the tensors that the node of this name would give as outputs, such as "x:0" and
 * "x:1". The caller deletes the list.
 * Thread safety: several threads may call this at once.
 */
tn_list *tn_graph_outputs(tn_graph *graph, const char *node, tn_status *status);

/* Runtimes: plugins, and the devices and ops that they have. */

/**
 * Starts a runtime: loads plugins and opens their devices. "options" may be null. A plugin that the
 * options name and that cannot be loaded is an error; one that was only found is logged. The caller
 * deletes the runtime.
 * Thread safety: several threads may call this at once.
 */
tn_runtime *tn_runtime_new(const tn_runtime_options *options, tn_status *status);

/**
 * Deletes a runtime. What was made with it keeps it until that is deleted, too.
 * Thread safety: several threads may call this at once.
 */
int tn_runtime_delete(tn_runtime *runtime);

/**
 * Loads a plugin, or all plugins of a folder, and opens their devices. Returns the names of the
 * plugins, which the caller deletes. A file that is refused is an error; the others of its folder
 * are loaded.
 * Thread safety: several threads may call this at once.
 */
tn_list *tn_runtime_load(tn_runtime *runtime, const char *path, tn_status *status);

/**
 * The names of the plugins in use, which the caller deletes.
 * Thread safety: several threads may call this at once.
 */
tn_list *tn_runtime_plugins(tn_runtime *runtime, tn_status *status);

/**
 * The names of all ops, sorted. The caller deletes the list.
 * Thread safety: several threads may call this at once.
 */
tn_list *tn_runtime_ops(tn_runtime *runtime, tn_status *status);

/**
 * The definition of an op as an OpDef message, or those of all ops as an OpList message if "op" is
 * null. The caller deletes the buffer.
 * Thread safety: several threads may call this at once.
 */
tn_buffer *tn_runtime_op_def(tn_runtime *runtime, const char *op, tn_status *status);

/* Servers in this process. */

/**
 * Starts a server of TensorFlow's protocol over the devices of a runtime. "options" may be null. It
 * listens where other machines reach it only if that is secured. The caller deletes the server.
 * Thread safety: several threads may call this at once.
 */
tn_server *tn_server_start(
    tn_runtime *runtime,
    const tn_server_options *options,
    tn_status *status);

/**
 * The target of its clients, such as "grpc://127.0.0.1:2222", which stays until the server is
 * deleted; null for no server.
 * Thread safety: several threads may call this at once.
 */
const char *tn_server_target(tn_server *server);

/**
 * Stops a server: it refuses new connections, waits "grace_ms" milliseconds at most for the steps
 * in flight, cancels the rest, and closes all sessions. TN_FAILED_PRECONDITION if it is stopped
 * already.
 * Thread safety: several threads may call this at once.
 */
bool tn_server_stop(tn_server *server, int64_t grace_ms, tn_status *status);

/**
 * Waits until another thread has stopped the server, for "timeout_ms" milliseconds at most, after
 * which the code is TN_DEADLINE_EXCEEDED; -1 for any time.
 * Thread safety: several threads may call this at once.
 */
bool tn_server_join(tn_server *server, int64_t timeout_ms, tn_status *status);

/**
 * Stops a server without grace, if it is not stopped yet, and deletes it.
 * Thread safety: several threads may call this at once.
 */
int tn_server_delete(tn_server *server);

/* Sessions. */

/**
 * Opens a session over a graph, which may grow while the session lives: a step takes over what the
 * graph has gained. "options" may be null. The caller deletes the session.
 * Thread safety: several threads may call this at once.
 */
tn_session *tn_session_new(tn_graph *graph, const tn_session_options *options, tn_status *status);

/**
 * Adds the nodes of a GraphDef message to the graph of a session, and sends them to where its steps
 * run.
 * Thread safety: several threads may call this at once.
 */
bool tn_session_extend(tn_session *session, const void *message, size_t bytes, tn_status *status);

/**
 * Closes a session: its steps are cancelled, and it refuses new ones with TN_FAILED_PRECONDITION.
 * Thread safety: several threads may call this at once.
 */
bool tn_session_close(tn_session *session, tn_status *status);

/**
 * Closes and deletes a session. A step that runs on another thread ends first with TN_CANCELLED, or
 * with its values.
 * Thread safety: several threads may call this at once.
 */
int tn_session_delete(tn_session *session);

/* Statuses of the client API. */

/**
 * The version of the library, such as "0.1.0". It stays valid for ever.
 * Thread safety: several threads may call this at once.
 */
const char *tn_version(void);

/**
 * Makes a status that says success.
 * Thread safety: several threads may call this at once.
 */
tn_status *tn_status_new(void);

/**
 * Deletes a status. Null is allowed. Returns TN_INVALID_ARGUMENT, and does nothing, if it was
 * deleted already.
 * Thread safety: no other call uses the status at that time.
 */
tn_code tn_status_delete(tn_status *status);

/**
 * The code: TN_OK after success, and for null.
 * Thread safety: a status is used by one call at a time.
 */
tn_code tn_status_code(const tn_status *status);

/**
 * What was expected, what was found, and what to do; empty after success. The text stays until the
 * status changes.
 * Thread safety: a status is used by one call at a time.
 */
const char *tn_status_message(const tn_status *status);

/**
 * The name of the node that failed; empty where no node did. The text stays until the status
 * changes.
 * Thread safety: a status is used by one call at a time.
 */
const char *tn_status_node(const tn_status *status);

/**
 * The op of the node that failed; empty where it is not known. The text stays until the status
 * changes.
 * Thread safety: a status is used by one call at a time.
 */
const char *tn_status_op(const tn_status *status);

/**
 * The full name of the device on which the node failed; empty where it is not known. The text stays
 * until the status changes.
 * Thread safety: a status is used by one call at a time.
 */
const char *tn_status_device(const tn_status *status);

/**
 * Sets a code and a message, for callers that report errors of their own by a status. TN_OK clears
 * the status.
 * Thread safety: a status is used by one call at a time.
 */
void tn_status_set(tn_status *status, tn_code code, const char *message);

/**
 * The canonical name of a code, such as "INVALID_ARGUMENT"; "UNKNOWN" for a number that is none. It
 * stays valid for ever.
 * Thread safety: several threads may call this at once.
 */
const char *tn_code_name(tn_code code);

/* Steps: feeds, fetches and targets by name. */

/**
 * Runs a step: feeds the tensors "feeds" with "values", runs what "fetches" and the nodes "targets"
 * need, and writes the values of "fetches" as new tensors, which the caller deletes. Names of
 * tensors are such as "x:0", and "x" for "x:0". "options" may be null. On failure all results are
 * null.
 * Thread safety: several threads may call this at once.
 */
bool tn_session_run(
    tn_session *session,
    const tn_run_options *options,
    const char *const *feeds,
    tn_tensor *const *values,
    size_t feed_count,
    const char *const *fetches,
    tn_tensor **results,
    size_t fetch_count,
    const char *const *targets,
    size_t target_count,
    tn_status *status);

/* Tensors. */

/**
 * Makes a tensor of zeros in memory of the library's. For strings use tn_tensor_from_strings. The
 * caller deletes it.
 * Thread safety: several threads may call this at once.
 */
tn_tensor *tn_tensor_new(tn_dtype dtype, const int64_t *dims, int rank, tn_status *status);

/**
 * Makes a tensor with a copy of elements, which are dense and in the order of rows. "bytes" is the
 * size of the memory. The caller deletes the tensor.
 * Thread safety: several threads may call this at once.
 */
tn_tensor *tn_tensor_copy(
    tn_dtype dtype,
    const int64_t *dims,
    int rank,
    const void *data,
    size_t bytes,
    tn_status *status);

/**
 * Makes a tensor in memory of the caller's, without a copy: the memory stays, and does not change
 * while a step or a variable may read it, until the library has called "release", which may be
 * null. Memory whose address is not a multiple of 64 is copied, and released at once. Where the
 * function fails, "release" is not called. The caller deletes the tensor.
 * Thread safety: several threads may call this at once.
 */
tn_tensor *tn_tensor_lend(
    tn_dtype dtype,
    const int64_t *dims,
    int rank,
    void *data,
    size_t bytes,
    tn_release release,
    void *argument,
    tn_status *status);

/**
 * Makes a tensor of strings, with copies of "count" texts of these lengths. The caller deletes it.
 * Thread safety: several threads may call this at once.
 */
tn_tensor *tn_tensor_from_strings(
    const int64_t *dims,
    int rank,
    const char *const *texts,
    const size_t *lengths,
    size_t count,
    tn_status *status);

/**
 * Another handle for the same elements, with another shape of as many elements. The caller deletes
 * it.
 * Thread safety: several threads may call this at once.
 */
tn_tensor *tn_tensor_reshape(tn_tensor *tensor, const int64_t *dims, int rank, tn_status *status);

/**
 * Deletes a tensor. Its memory stays as long as a step, a variable or another tensor has it.
 * Thread safety: several threads may call this at once.
 */
int tn_tensor_delete(tn_tensor *tensor);

/**
 * The element type; 0 for no tensor.
 * Thread safety: several threads may call this at once.
 */
tn_dtype tn_tensor_dtype(tn_tensor *tensor);

/**
 * The number of dimensions; -1 for no tensor.
 * Thread safety: several threads may call this at once.
 */
int tn_tensor_rank(tn_tensor *tensor);

/**
 * Dimension number "axis"; -1 where the tensor has none of that number.
 * Thread safety: several threads may call this at once.
 */
int64_t tn_tensor_dim(tn_tensor *tensor, int axis);

/**
 * Writes the element type and the shape.
 * Thread safety: several threads may call this at once.
 */
bool tn_tensor_info(tn_tensor *tensor, tn_value_info *info, tn_status *status);

/**
 * The number of elements; 0 for no tensor.
 * Thread safety: several threads may call this at once.
 */
size_t tn_tensor_elements(tn_tensor *tensor);

/**
 * The bytes of all elements; 0 for no tensor, and for strings.
 * Thread safety: several threads may call this at once.
 */
size_t tn_tensor_bytes(tn_tensor *tensor);

/**
 * The elements, to read, which stay until the tensor is deleted. Null for strings, resources and
 * variants.
 * Thread safety: several threads may call this at once.
 */
const void *tn_tensor_data(tn_tensor *tensor, tn_status *status);

/**
 * The elements, to write, which stay until the tensor is deleted. TN_FAILED_PRECONDITION if a step,
 * a variable or another tensor has the memory, too: then make a copy. No step may read the tensor
 * while it is written.
 * Thread safety: several threads may call this at once.
 */
void *tn_tensor_mutable_data(tn_tensor *tensor, tn_status *status);

/**
 * Element number "index" of a tensor of strings, in the order of rows: its bytes, which no zero
 * ends, and their number. They stay until the tensor is deleted.
 * Thread safety: several threads may call this at once.
 */
const char *tn_tensor_string(tn_tensor *tensor, size_t index, size_t *length, tn_status *status);

/**
 * The tensor as a TensorProto message. The caller deletes the buffer.
 * Thread safety: several threads may call this at once.
 */
tn_buffer *tn_tensor_message(tn_tensor *tensor, tn_status *status);

/**
 * The size of an element in bytes; 0 for strings, resources, variants, and numbers that name no
 * type.
 * Thread safety: several threads may call this at once.
 */
size_t tn_dtype_size(tn_dtype dtype);

/**
 * The name of a type, such as "float"; null for a number that names none. It stays valid for ever.
 * Thread safety: several threads may call this at once.
 */
const char *tn_dtype_name(tn_dtype dtype);

/* Results of variable size: bytes, and lists of texts. */

/**
 * The bytes, which stay until the buffer is deleted; null for no buffer.
 * Thread safety: several threads may call this at once.
 */
const void *tn_buffer_data(tn_buffer *buffer);

/**
 * The number of bytes; 0 for no buffer.
 * Thread safety: several threads may call this at once.
 */
size_t tn_buffer_size(tn_buffer *buffer);

/**
 * Deletes a buffer.
 * Thread safety: several threads may call this at once.
 */
int tn_buffer_delete(tn_buffer *buffer);

/**
 * The number of texts; 0 for no list.
 * Thread safety: several threads may call this at once.
 */
size_t tn_list_count(tn_list *list);

/**
 * Text number index, which stays until the list is deleted; null where the list has no such text.
 * Thread safety: several threads may call this at once.
 */
const char *tn_list_at(tn_list *list, size_t index);

/**
 * Deletes a list.
 * Thread safety: several threads may call this at once.
 */
int tn_list_delete(tn_list *list);

/* Variables of a graph, and what saves them. */

/**
 * Adds a variable, whose nodes have the names that TensorFlow gives them. "initial" is the tensor
 * that gives its first value, of the same type and shape. "device" is a full or partial name, or
 * null. Returns three names, which the caller deletes: the tensor with the variable's handle, which
 * ops such as ResourceApplyGradientDescent take; the tensor with its value; and the node that sets
 * its first value.
 * Thread safety: several threads may call this at once.
 */
tn_list *tn_graph_add_variable(
    tn_graph *graph,
    const char *name,
    tn_dtype dtype,
    const int64_t *dims,
    int rank,
    const char *initial,
    const char *device,
    bool trainable,
    tn_status *status);

/**
 * The names of the variables that tn_graph_add_variable added. The caller deletes the list.
 * Thread safety: several threads may call this at once.
 */
tn_list *tn_graph_variables(tn_graph *graph, tn_status *status);

/**
 * Adds a node of this name that sets the first values of all variables that the graph has now.
 * Thread safety: several threads may call this at once.
 */
bool tn_graph_add_initializer(tn_graph *graph, const char *name, tn_status *status);

/**
 * Adds the nodes that save and restore all variables that the graph has now. "options" may be null.
 * The caller deletes the saver.
 * Thread safety: several threads may call this at once.
 */
tn_saver *tn_saver_new(tn_graph *graph, const tn_saver_options *options, tn_status *status);

/**
 * Deletes a saver; its nodes and its checkpoints stay.
 * Thread safety: several threads may call this at once.
 */
int tn_saver_delete(tn_saver *saver);

/**
 * Writes a checkpoint of the form of TensorFlow's, with the files PREFIX-STEP.index and
 * PREFIX-STEP.data-..., and notes it in the file "checkpoint" of its folder. A negative step leaves
 * "-STEP" out. Older checkpoints than those to keep are deleted. Returns a list with the prefix of
 * the checkpoint, which the caller deletes.
 * Thread safety: several threads may call this at once.
 */
tn_list *tn_saver_save(
    tn_saver *saver,
    tn_session *session,
    const char *prefix,
    int64_t step,
    tn_status *status);

/**
 * Restores all variables of the saver from the checkpoint with this prefix.
 * Thread safety: several threads may call this at once.
 */
bool tn_saver_restore(tn_saver *saver, tn_session *session, const char *prefix, tn_status *status);

/**
 * The prefixes of the checkpoints that the saver keeps, the newest last. The caller deletes the
 * list.
 * Thread safety: several threads may call this at once.
 */
tn_list *tn_saver_checkpoints(tn_saver *saver, tn_status *status);

#ifdef __cplusplus
}

/** A struct of options or results with its size set and zeros elsewhere. */
template <class Struct>
inline Struct tn_init() {
  Struct made = Struct();
  made.size = sizeof(Struct);
  return made;
}
#endif

#endif /* TENON_CLIENT_H */
