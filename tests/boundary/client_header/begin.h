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
