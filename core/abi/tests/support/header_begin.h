/*
 * tenon.h - what crosses Tenon's plugin boundary, for plugins written in C and C++.
 *
 * Generated from core/abi/src; do not edit (core/abi/docs/evolution.md says how to change it).
 *
 * A plugin is a shared library with one exported function:
 *
 *     TENON_EXPORT const TenonPluginV1 *tenon_plugin_v1(uint32_t host_major, uint32_t host_minor)
 *     {
 *         return TENON_ABI_ACCEPTS(host_major, host_minor) ? &plugin : NULL;
 *     }
 *
 * The host calls `open`, then `register_` of the table that it returns. `register_` describes ops
 * (TenonOpDef), kernels (TenonKernelDef), device types (TenonDeviceTypeDef) and knobs (TenonKnobDef)
 * to the registrar; the host copies the descriptions and keeps pointers to the tables of functions.
 * The library's manifest has the same registrations as text: see TENON_MANIFEST at the end.
 *
 * For each node that a kernel is chosen for, the host calls `create` once and `compute` for every
 * execution (TenonKernelTable). `compute` reads its inputs, writes its outputs (TenonSlot) and
 * returns TENON_OK.
 *
 * Rules that hold everywhere:
 *
 * - Every table begins with its `struct_size`: set it to its sizeof. The host refuses a table whose
 *   size is not the one it knows.
 * - What can grow ends in `ext`, a chain of typed links (TenonExtHeader). Skip a tag that you do not
 *   know; a link that is not there means "not supported".
 * - Every struct says which side fills it. A pointer is never null unless its comment says so, or its count is
 *   0. A function pointer may be null unless its comment says "required", or the struct's that every
 *   entry is there; null means "not supported".
 * - A function that fails returns a code and gives the message to the host, which copies it:
 *   through `TenonCallServices.fail` while computing, through `TenonHost.report` where it was given
 *   a TenonSink.
 * - Strings are a pointer with a length, not ended by a zero byte. What a function is given is valid
 *   while it runs, unless a comment says otherwise.
 * - No function that the host calls may throw or long-jump out. Computation uses no threads but those
 *   of `TenonCallServices.parallel_for`.
 * - A field named `reserved` is zero. A name that C or C++ keeps for itself ends in `_`.
 */

#ifndef TENON_H
#define TENON_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if UINTPTR_MAX != 0xffffffffffffffffu
#error "tenon.h describes 64-bit targets"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Names of the structs below. */
