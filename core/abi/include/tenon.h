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
typedef struct TenonStr TenonStr;
typedef struct TenonStrs TenonStrs;
typedef struct TenonDims TenonDims;
typedef struct TenonRange TenonRange;
typedef struct TenonSource TenonSource;
typedef struct TenonExtHeader TenonExtHeader;
typedef struct TenonExtCost TenonExtCost;
typedef struct TenonExtCases TenonExtCases;
typedef struct TenonExtBench TenonExtBench;
typedef struct TenonFacts TenonFacts;
typedef struct TenonExtFacts TenonExtFacts;
typedef struct TenonBuffer TenonBuffer;
typedef struct TenonSlot TenonSlot;
typedef struct TenonStringElement TenonStringElement;
typedef struct TenonResourceElement TenonResourceElement;
typedef struct TenonVariantElement TenonVariantElement;
typedef struct TenonAttrs TenonAttrs;
typedef struct TenonAttrView TenonAttrView;
typedef struct TenonShapeView TenonShapeView;
typedef struct TenonFuncView TenonFuncView;
typedef struct TenonCreate TenonCreate;
typedef struct TenonPacked TenonPacked;
typedef struct TenonSink TenonSink;
typedef struct TenonKeptTensor TenonKeptTensor;
typedef struct TenonPlugin TenonPlugin;
typedef struct TenonPluginContext TenonPluginContext;
typedef struct TenonKnobValue TenonKnobValue;
typedef struct TenonHost TenonHost;
typedef struct TenonKernelState TenonKernelState;
typedef struct TenonCallRecord TenonCallRecord;
typedef struct TenonStep TenonStep;
typedef struct TenonCall TenonCall;
typedef struct TenonCallServices TenonCallServices;
typedef struct TenonKernelTable TenonKernelTable;
typedef struct TenonFunction TenonFunction;
typedef struct TenonExtFunctions TenonExtFunctions;
typedef struct TenonExtHandles TenonExtHandles;
typedef struct TenonCollective TenonCollective;
typedef struct TenonCollectiveJoin TenonCollectiveJoin;
typedef struct TenonExtCollectives TenonExtCollectives;
typedef struct TenonShapeCall TenonShapeCall;
typedef struct TenonShapeTable TenonShapeTable;
typedef struct TenonStringTable TenonStringTable;
typedef struct TenonResource TenonResource;
typedef struct TenonVariable TenonVariable;
typedef struct TenonResourceType TenonResourceType;
typedef struct TenonVariantParts TenonVariantParts;
typedef struct TenonVariantTable TenonVariantTable;
typedef struct TenonExtVariant TenonExtVariant;
typedef struct TenonExtVariants TenonExtVariants;
typedef struct TenonStateTable TenonStateTable;
typedef struct TenonOpDef TenonOpDef;
typedef struct TenonTypeConstraint TenonTypeConstraint;
typedef struct TenonInPlace TenonInPlace;
typedef struct TenonNumerics TenonNumerics;
typedef struct TenonKernelDef TenonKernelDef;
typedef struct TenonKnobDef TenonKnobDef;
typedef struct TenonDevice TenonDevice;
typedef struct TenonDeviceState TenonDeviceState;
typedef struct TenonStream TenonStream;
typedef struct TenonEvent TenonEvent;
typedef struct TenonMemoryInfo TenonMemoryInfo;
typedef struct TenonDeviceAttributes TenonDeviceAttributes;
typedef struct TenonCopyRequest TenonCopyRequest;
typedef struct TenonDeviceTable TenonDeviceTable;
typedef struct TenonDeviceTypeDef TenonDeviceTypeDef;
typedef struct TenonCommandGraph TenonCommandGraph;
typedef struct TenonExtNative TenonExtNative;
typedef struct TenonNativeHandles TenonNativeHandles;
typedef struct TenonExtNativeOf TenonExtNativeOf;
typedef struct TenonExtTimers TenonExtTimers;
typedef struct TenonExtCapture TenonExtCapture;
typedef struct TenonPassCall TenonPassCall;
typedef struct TenonEdge TenonEdge;
typedef struct TenonPassAttr TenonPassAttr;
typedef struct TenonPassNode TenonPassNode;
typedef struct TenonPassTable TenonPassTable;
typedef struct TenonExtPass TenonExtPass;
typedef struct TenonGradientCall TenonGradientCall;
typedef struct TenonGradientParts TenonGradientParts;
typedef struct TenonGradientNode TenonGradientNode;
typedef struct TenonGradientTable TenonGradientTable;
typedef struct TenonExtGradient TenonExtGradient;
typedef struct TenonRegistrar TenonRegistrar;
typedef struct TenonRegistrarTable TenonRegistrarTable;
typedef struct TenonPluginV1 TenonPluginV1;

/* ---------------------------------------------------------------------------------------------- */
/* Version and limits                                                                             */
/* ---------------------------------------------------------------------------------------------- */

/** Major number of the ABI. While it is 0, host and plugin must agree on both numbers. */
#define TENON_ABI_MAJOR 0u
/** Minor number of the ABI: moves with every change of a table, and with nothing else. */
#define TENON_ABI_MINOR 1u
/** A dimension that is not known. */
#define TENON_UNKNOWN_DIM (-1)
/** Number that means that there is no node. */
#define TENON_NO_NODE 4294967295u
/** Rank of a shape whose rank is not known. */
#define TENON_UNKNOWN_RANK (-1)
/** Deadline of a step that has none. */
#define TENON_NO_DEADLINE 0u
/** Token of a callback for cancellation that was not registered, because it was run at once. */
#define TENON_NO_CALLBACK 0u
/** Alias class of a slot of which it is not known whether it shares its buffer. */
#define TENON_NO_ALIAS 0u
/** Highest rank of a tensor that may cross the boundary. */
#define TENON_MAX_RANK 16u
/** Alignment, in bytes, that host memory of a tensor has at least. */
#define TENON_HOST_ALIGNMENT 64u

/* ---------------------------------------------------------------------------------------------- */
/* Pointers with lengths                                                                          */
/* ---------------------------------------------------------------------------------------------- */

/**
 * Borrowed UTF-8 or raw bytes. Filled by the side that lends them. `ptr` may be null only when
 * `len` is 0.
 */
struct TenonStr {
    /** First byte. */
    const uint8_t *ptr;
    /** Number of bytes. */
    size_t len;
};

/**
 * Borrowed array of strings. Filled by the side that lends it. `ptr` may be null only when `len` is
 * 0.
 */
struct TenonStrs {
    /** First string. */
    const TenonStr *ptr;
    /** Number of strings. */
    size_t len;
};

/**
 * Borrowed dimensions. Filled by the side that lends them. `ptr` may be null only when `len` is 0.
 */
struct TenonDims {
    /** First dimension. */
    const int64_t *ptr;
    /** Number of dimensions. */
    size_t len;
};

/** The flat positions that belong to one named argument. Filled by the host. */
struct TenonRange {
    /** First position. */
    uint32_t start;
    /** Number of positions. */
    uint32_t len;
};

/** The place of a registration in its author's source. Filled by the registering side. */
struct TenonSource {
    /** Crate, or project of a C plugin. */
    TenonStr krate;
    /** File. */
    TenonStr file;
    /** Line, from 1. */
    uint32_t line;
};

/* ---------------------------------------------------------------------------------------------- */
/* Status codes                                                                                   */
/* ---------------------------------------------------------------------------------------------- */

/** A status code, numbered as TensorFlow's `error.Code`. Zero is success. */
typedef int32_t TenonCode;

/** Returned by an asynchronous kernel that has not finished: completion follows by `complete`. */
#define TENON_PENDING ((TenonCode)-1)
/** Success. */
#define TENON_OK ((TenonCode)0)
/** The step or call was cancelled. */
#define TENON_CANCELLED ((TenonCode)1)
/** An error without a better code. */
#define TENON_UNKNOWN ((TenonCode)2)
/** The caller gave something that is wrong whatever the state of the system. */
#define TENON_INVALID_ARGUMENT ((TenonCode)3)
/** The deadline passed first. */
#define TENON_DEADLINE_EXCEEDED ((TenonCode)4)
/** A thing that was named does not exist. */
#define TENON_NOT_FOUND ((TenonCode)5)
/** A thing to be made exists already. */
#define TENON_ALREADY_EXISTS ((TenonCode)6)
/** The caller may not do this. */
#define TENON_PERMISSION_DENIED ((TenonCode)7)
/** Memory or another resource ran out. */
#define TENON_RESOURCE_EXHAUSTED ((TenonCode)8)
/** The system is not in the state that the operation needs. */
#define TENON_FAILED_PRECONDITION ((TenonCode)9)
/** The operation was given up, typically because of a conflict. */
#define TENON_ABORTED ((TenonCode)10)
/** Past the valid range, such as the end of a sequence. */
#define TENON_OUT_OF_RANGE ((TenonCode)11)
/** Not supported. */
#define TENON_UNIMPLEMENTED ((TenonCode)12)
/** An invariant is broken: a bug in a kernel, a plugin or the runtime. */
#define TENON_INTERNAL ((TenonCode)13)
/** A device or service is not there (any more). */
#define TENON_UNAVAILABLE ((TenonCode)14)
/** Data is corrupt or lost. */
#define TENON_DATA_LOSS ((TenonCode)15)
/** The caller has no valid credentials. */
#define TENON_UNAUTHENTICATED ((TenonCode)16)

/* ---------------------------------------------------------------------------------------------- */
/* Element types                                                                                  */
/* ---------------------------------------------------------------------------------------------- */

/** An element type. A reference type is its base plus 100. */
typedef uint32_t TenonDType;

/** `float`, 32 bits. */
#define TENON_FLOAT ((TenonDType)1)
/** `double`, 64 bits. */
#define TENON_DOUBLE ((TenonDType)2)
/** `int32`, 32 bits. */
#define TENON_INT32 ((TenonDType)3)
/** `uint8`, 8 bits. */
#define TENON_UINT8 ((TenonDType)4)
/** `int16`, 16 bits. */
#define TENON_INT16 ((TenonDType)5)
/** `int8`, 8 bits. */
#define TENON_INT8 ((TenonDType)6)
/** `string`, 192 bits. */
#define TENON_STRING ((TenonDType)7)
/** `complex64`, 64 bits. */
#define TENON_COMPLEX64 ((TenonDType)8)
/** `int64`, 64 bits. */
#define TENON_INT64 ((TenonDType)9)
/** `bool`, 8 bits. */
#define TENON_BOOL ((TenonDType)10)
/** `qint8`, 8 bits. */
#define TENON_QINT8 ((TenonDType)11)
/** `quint8`, 8 bits. */
#define TENON_QUINT8 ((TenonDType)12)
/** `qint32`, 32 bits. */
#define TENON_QINT32 ((TenonDType)13)
/** `bfloat16`, 16 bits. */
#define TENON_BFLOAT16 ((TenonDType)14)
/** `qint16`, 16 bits. */
#define TENON_QINT16 ((TenonDType)15)
/** `quint16`, 16 bits. */
#define TENON_QUINT16 ((TenonDType)16)
/** `uint16`, 16 bits. */
#define TENON_UINT16 ((TenonDType)17)
/** `complex128`, 128 bits. */
#define TENON_COMPLEX128 ((TenonDType)18)
/** `half`, 16 bits. */
#define TENON_HALF ((TenonDType)19)
/** `resource`, 64 bits. */
#define TENON_RESOURCE ((TenonDType)20)
/** `variant`, 128 bits. */
#define TENON_VARIANT ((TenonDType)21)
/** `uint32`, 32 bits. */
#define TENON_UINT32 ((TenonDType)22)
/** `uint64`, 64 bits. */
#define TENON_UINT64 ((TenonDType)23)
/** `float8_e5m2`, 8 bits; a number only. */
#define TENON_FLOAT8_E5M2 ((TenonDType)24)
/** `float8_e4m3fn`, 8 bits; a number only. */
#define TENON_FLOAT8_E4M3FN ((TenonDType)25)
/** `float8_e4m3fnuz`, 8 bits; a number only. */
#define TENON_FLOAT8_E4M3FNUZ ((TenonDType)26)
/** `float8_e4m3b11fnuz`, 8 bits; a number only. */
#define TENON_FLOAT8_E4M3B11FNUZ ((TenonDType)27)
/** `float8_e5m2fnuz`, 8 bits; a number only. */
#define TENON_FLOAT8_E5M2FNUZ ((TenonDType)28)
/** `int4`, 4 bits; a number only. */
#define TENON_INT4 ((TenonDType)29)
/** `uint4`, 4 bits; a number only. */
#define TENON_UINT4 ((TenonDType)30)
/** `int2`, 2 bits; a number only. */
#define TENON_INT2 ((TenonDType)31)
/** `uint2`, 2 bits; a number only. */
#define TENON_UINT2 ((TenonDType)32)
/** `float4_e2m1fn`, 4 bits; a number only. */
#define TENON_FLOAT4_E2M1FN ((TenonDType)33)

#define TENON_INVALID ((TenonDType)0) /**< No type. */

/* ---------------------------------------------------------------------------------------------- */
/* Growth: the typed chain in which every table ends                                              */
/* ---------------------------------------------------------------------------------------------- */

/** Longest chain that a reader follows; a longer one is taken for a cycle. */
#define TENON_MAX_LINKS 64u

/**
 * Head of a link. Filled by the side that made the link; both sides skip tags that they do not
 * know.
 *
 * A link struct begins with this header. It is found by tag; a reader uses the fields that `size`
 * covers. `layout_hash` is computed from the size of the struct of the version named and from the
 * names and offsets of its fields, since the layout check of door 1 ends at the pointer. In C,
 * `TENON_EXT_*_HEADER` fills a header; in Rust, its constructor does.
 */
struct TenonExtHeader {
    /** One of `TENON_EXT_*`. */
    uint32_t tag;
    /** Version of the link's struct, from 1; a later one only appends fields. */
    uint32_t version;
    /** Size of the struct in bytes, header included. */
    uint64_t size;
    /** Hash of the struct's layout. */
    uint64_t layout_hash;
    /** Next link; null at the end. */
    const TenonExtHeader *next;
};

/*
 * Tags of links. Those with the bit `TENON_EXT_PRIVATE` are free for private use; the others belong
 * to Tenon.
 */

/** The bit of tags that are free for private use. */
#define TENON_EXT_PRIVATE 2147483648u
/** On an op definition: its gradient (`TenonExtGradient`). */
#define TENON_EXT_GRADIENT 1u
/** As a registration: a graph pass (`TenonExtPass`). */
#define TENON_EXT_PASS 2u
/**
 * As a registration: a declarative fusion pattern, in the texts of a `TenonExtCases`: name,
 * pattern, result, crate, file, line, then conditions. The grammar is in tenon-framework, `fusion`.
 * The host refuses a registration whose text does not follow it.
 */
#define TENON_EXT_FUSION 3u
/** Reserved: claiming a subgraph and compiling it as one node. */
#define TENON_EXT_SUBGRAPH 4u
/** On an op definition: cases that are valid (`TenonExtCases`). */
#define TENON_EXT_CASES 5u
/** On a kernel definition: what a call costs (`TenonExtCost`). */
#define TENON_EXT_COST 6u
/** On a device's table: the driver's handles (`TenonExtNative`). */
#define TENON_EXT_NATIVE 7u
/** On the host's table: the handles of a device of any plugin (`TenonExtNativeOf`). */
#define TENON_EXT_NATIVE_OF 8u
/** On a device's table: events that note the time (`TenonExtTimers`). */
#define TENON_EXT_TIMERS 9u
/** On a device's table: graphs of commands (`TenonExtCapture`). */
#define TENON_EXT_CAPTURE 10u
/** On an op definition: calls to measure, and the work of a call (`TenonExtBench`). */
#define TENON_EXT_BENCH 11u
/**
 * On an op definition: what passes, placement and execution must know of the op (`TenonExtFacts`).
 */
#define TENON_EXT_FACTS 12u
/** As a registration: a type of variants that can be decoded (`TenonExtVariant`). */
#define TENON_EXT_VARIANT 13u
/** On the host's table: calls of functions (`TenonExtFunctions`). */
#define TENON_EXT_FUNCTIONS 14u
/** On the host's table: resources by their handles (`TenonExtHandles`). */
#define TENON_EXT_HANDLES 15u
/** On the host's table: collective operations (`TenonExtCollectives`). */
#define TENON_EXT_COLLECTIVES 16u
/** On the host's table: variants as bytes and tensors (`TenonExtVariants`). */
#define TENON_EXT_VARIANTS 17u

/**
 * Link `TENON_EXT_COST` of a kernel definition: what the author expects a call to cost. The
 * executor starts from it until it has measured the kernel. Filled by the plugin.
 */
struct TenonExtCost {
    /** Head, with tag `TENON_EXT_COST`. */
    TenonExtHeader header;
    /** Nanoseconds of a call on an empty tensor. */
    double fixed_ns;
    /** Nanoseconds per element of the first output. */
    double per_element_ns;
};

/**
 * Link `TENON_EXT_CASES` of an op definition: valid cases, for an op whose signature does not say
 * which inputs are valid. A program that checks a kernel makes the inputs from the cases; without
 * the link, it makes them from the signature alone. Filled by the plugin; the host copies the
 * texts.
 *
 * A case is one text: its name, then attributes, sizes and inputs, as in `"rows; axis = 0; k in
 * 1..9; x: [n, 4] uniform(-1, 1); index: [k] integers(0..n)"`. The grammar is in
 * core/abi/docs/cases.md. The host refuses a registration whose text does not follow it.
 */
struct TenonExtCases {
    /** Head, with tag `TENON_EXT_CASES`. */
    TenonExtHeader header;
    /** One text for each case. */
    TenonStrs cases;
};

/**
 * Link `TENON_EXT_BENCH` of an op definition: calls that show how fast a kernel is, and the work of
 * a call. Without the link, a benchmark chooses calls itself, and knows only how many bytes they
 * move. Filled by the plugin; the host copies the texts.
 *
 * A call is a text in the grammar of `TenonExtCases` that describes every input and gives every
 * size a value; several values of a size are several calls: `"rows; n in {64, 4096}; x: [n, 768];
 * weight: [768]"`. Operations and bytes are formulas over arguments and attributes, such as
 * `"2*y*a[-1]"`. The grammar is in core/abi/docs/bench.md. The host refuses a registration whose
 * text does not follow it.
 */
struct TenonExtBench {
    /** Head, with tag `TENON_EXT_BENCH`. */
    TenonExtHeader header;
    /** One text for each call, or for each family of calls. */
    TenonStrs calls;
    /** Operations of a call; empty if they are not known. */
    TenonStr flops;
    /** Bytes that a call moves; empty if it moves all inputs and outputs once. */
    TenonStr bytes;
};

/* ---------------------------------------------------------------------------------------------- */
/* What passes, placement and execution must know of an op beside its signature                   */
/* ---------------------------------------------------------------------------------------------- */

/** What the executor does for an op, which then needs no kernel. */
typedef uint32_t TenonOpRole;

/** Calls the op's kernel. */
#define TENON_ROLE_KERNEL ((TenonOpRole)0)
/** Nothing; the node only orders others. */
#define TENON_ROLE_ORDER ((TenonOpRole)1)
/** Nothing; the node runs even if all that it waits for is dead. */
#define TENON_ROLE_TRIGGER ((TenonOpRole)2)
/** Gives its first input to the output that the second one names; all other outputs are dead. */
#define TENON_ROLE_SWITCH ((TenonOpRole)3)
/** Passes on the first input that is not dead, and its number. */
#define TENON_ROLE_MERGE ((TenonOpRole)4)
/** Brings a value into a frame. */
#define TENON_ROLE_ENTER ((TenonOpRole)5)
/** Brings a value out of its frame. */
#define TENON_ROLE_EXIT ((TenonOpRole)6)
/** Brings a value into the next iteration. */
#define TENON_ROLE_NEXT_ITERATION ((TenonOpRole)7)
/** Passes on the condition of a loop. */
#define TENON_ROLE_LOOP_COND ((TenonOpRole)8)
/** Gives argument `index` of the step. */
#define TENON_ROLE_ARG ((TenonOpRole)9)
/** Takes result `index` of the step. */
#define TENON_ROLE_RETVAL ((TenonOpRole)10)
/** Gives a tensor to the rendezvous. */
#define TENON_ROLE_SEND ((TenonOpRole)11)
/** Takes a tensor from the rendezvous. */
#define TENON_ROLE_RECV ((TenonOpRole)12)
/** Calls functions of the graph's library, which attributes of the node name. */
#define TENON_ROLE_CALL ((TenonOpRole)13)

/**
 * How values follow from values. They are constants and, of int16, int32 and int64, short vectors
 * and scalars that are known in part. What an op passes on needs no rule.
 */
typedef uint32_t TenonValueRule;

/** Nothing is known of them. */
#define TENON_VALUE_NONE ((TenonValueRule)0)
/** The tensor in attribute `value`. */
#define TENON_VALUE_CONSTANT ((TenonValueRule)1)
/** Each output is the shape of the input of its number. */
#define TENON_VALUE_SHAPE ((TenonValueRule)2)
/** The number of elements of the input. */
#define TENON_VALUE_SIZE ((TenonValueRule)3)
/** The number of dimensions of the input. */
#define TENON_VALUE_RANK ((TenonValueRule)4)
/** The integers of the input, where the output's type holds them. */
#define TENON_VALUE_CAST ((TenonValueRule)5)
/** Scalars joined to a vector. */
#define TENON_VALUE_PACK ((TenonValueRule)6)
/** Vectors joined; the last input is the axis. */
#define TENON_VALUE_CONCAT ((TenonValueRule)7)
/**
 * A part of the first input, by begin, end and strides, and the masks that `StridedSlice` has as
 * attributes.
 */
#define TENON_VALUE_STRIDED_SLICE ((TenonValueRule)8)

/**
 * Which inputs a kernel of the op may refuse, of those that the signature accepts. A node that may
 * fail runs even if nothing reads it.
 */
typedef uint32_t TenonRefusal;

/** Not stated: anything. */
#define TENON_REFUSES_ANYTHING ((TenonRefusal)0)
/** Nothing. */
#define TENON_REFUSES_NOTHING ((TenonRefusal)1)
/**
 * Inputs that the shape function refuses once it knows the shapes of all inputs, and the values of
 * those on which its answer depends. Of an elementwise op: shapes that do not broadcast.
 */
#define TENON_REFUSES_SHAPES ((TenonRefusal)2)
/**
 * Inputs that the shape function refuses once it knows the rank of the first input, and the values
 * of those on which its answer depends.
 */
#define TENON_REFUSES_AXES ((TenonRefusal)3)
/**
 * Of an elementwise op of two inputs: shapes that do not broadcast, and of integers a second
 * operand that has a 0.
 */
#define TENON_REFUSES_DIVISORS ((TenonRefusal)4)
/** Of an elementwise op: shapes that do not broadcast, and of integers any value. */
#define TENON_REFUSES_INTEGERS ((TenonRefusal)5)
/** Inputs that are not all of one shape. */
#define TENON_REFUSES_UNEQUAL_SHAPES ((TenonRefusal)6)

/** Whether the two inputs of an op may be swapped. */
typedef uint32_t TenonSymmetry;

/** Not stated. */
#define TENON_SYMMETRY_NONE ((TenonSymmetry)0)
/**
 * The results are equal, except for the sign of a zero and for the bits of a NaN. A fusion's
 * pattern takes the operands in either order.
 */
#define TENON_SYMMETRY_VALUES ((TenonSymmetry)1)
/** The results are equal bit for bit, except for strings: two such nodes are merged. */
#define TENON_SYMMETRY_BITS ((TenonSymmetry)2)

/**
 * What an op states about its gradient. A gradient that is a function has a link of its own, of the
 * tag `TENON_EXT_GRADIENT`.
 */
typedef uint32_t TenonGradientRule;

#define TENON_GRADIENT_UNSTATED ((TenonGradientRule)0) /**< Not stated. */
#define TENON_GRADIENT_NONE ((TenonGradientRule)1)     /**< No gradient flows through the op. */

/**
 * Facts of an op. All zero states nothing: the host then assumes that the op may fail, gives new
 * values and has a kernel. Filled by the registering side.
 *
 * A fact is a promise of the op that every kernel of it keeps. The host refuses a registration with
 * a fact that contradicts the op's signature or another fact.
 */
struct TenonFacts {
    /** Bits of `TENON_FACT_*`. */
    uint32_t flags;
    /** What the executor does instead of a kernel. */
    TenonOpRole role;
    /** How the values of outputs follow from what is known of the inputs before a step. */
    TenonValueRule value;
    /** What a kernel may refuse. */
    TenonRefusal refusal;
    /** Whether the two operands may be swapped. */
    TenonSymmetry symmetry;
    /** What the op states about its gradient. */
    TenonGradientRule gradient;
    /** Position of the input argument that is passed on, if the flags say that there is one. */
    uint32_t passed_input;
    /** Position of the output argument that it is passed on to. */
    uint32_t passed_output;
    /**
     * For `TENON_REFUSES_SHAPES` and `TENON_REFUSES_AXES`: bit `n` is set if the answer depends on
     * the value of input argument `n` too.
     */
    uint64_t deciding_inputs;
};

/* Bits of `TenonFacts.flags`. */

/**
 * The op has no state, but has to run: it checks, prints or sends. Never folded, merged or dropped.
 */
#define TENON_FACT_CHECKS 1u
/**
 * Each element of an output follows from the elements of the inputs at its place alone; the inputs
 * broadcast.
 */
#define TENON_FACT_ELEMENTWISE 2u
/**
 * An output is an input as it is: the same value under the same shape, in the same buffer if
 * possible.
 */
#define TENON_FACT_PASSES_INPUT 4u
/** An output has the elements of an input, in their order, under another shape. */
#define TENON_FACT_RESHAPES_INPUT 8u
/**
 * The first input and the first output are images, in the format that attribute `data_format`
 * names: the node may be computed in the format of its device. Of the other attributes `strides`,
 * `dilations` and `ksize` follow the format where they have four items, `explicit_paddings` where
 * it has eight.
 */
#define TENON_FACT_IMAGES 16u
/** Represents a value that a step feeds; has no inputs and one output. */
#define TENON_FACT_PLACEHOLDER 32u
/** Attribute `shape` says the shape that a value fed in the place of the output has. */
#define TENON_FACT_DECLARES_SHAPE 64u

/**
 * Link `TENON_EXT_FACTS` of an op definition: its facts. Without the link, or if it states nothing,
 * the host assumes nothing about the op. Filled by the plugin; the host copies it.
 */
struct TenonExtFacts {
    /** Head, with tag `TENON_EXT_FACTS`. */
    TenonExtHeader header;
    /** The facts. */
    TenonFacts facts;
};

/* ---------------------------------------------------------------------------------------------- */
/* How one tensor is seen by a kernel                                                             */
/* ---------------------------------------------------------------------------------------------- */

/** A reference-counted buffer of the host. Opaque to plugins. */
struct TenonBuffer;

/**
 * The kind of a tensor's memory.
 *
 * How long a kernel may use the memory of its call (inputs, outputs, scratch): until the call
 * completes, which is when `compute` returns, or when `complete` is called after it returned
 * `TENON_PENDING`. On a device with streams, the commands that the call enqueued on its stream may
 * use the memory too, whatever its kind: the host reuses it only for work that runs after them.
 */
typedef uint32_t TenonMemoryKind;

/** Ordinary memory of the host process: `TenonSlot.data` is an address. */
#define TENON_HOST_MEMORY ((TenonMemoryKind)0)
/** The device's own memory: `TenonSlot.data` is the device's handle, not an address. */
#define TENON_DEVICE_MEMORY ((TenonMemoryKind)1)
/** Host memory that the device can copy from and to directly: an address. */
#define TENON_PINNED_MEMORY ((TenonMemoryKind)2)
/** Memory that host and device both address. */
#define TENON_SHARED_MEMORY ((TenonMemoryKind)3)
/** Only in requests, never in a slot: the output's own kind, and host memory for scratch. */
#define TENON_ORDINARY_MEMORY ((TenonMemoryKind)4294967295)

/**
 * One tensor of a call. Filled by the host; for an output that is not planned, by the host service
 * that the kernel calls (`allocate`, `forward`, `share`).
 *
 * `data` is non-null whenever the slot is set, aligned to 64 bytes in host memory, and valid for
 * `bytes` bytes; the elements are dense and row-major.
 */
struct TenonSlot {
    /** Address or device handle; null while an output is not set. */
    void *data;
    /** Dimensions, `rank` of them; may be null when `rank` is 0. */
    const int64_t *dims;
    /** The buffer that owns `data`, or the cell of a reference slot; opaque, may be null. */
    TenonBuffer *buffer;
    /** Number of elements: the product of the dimensions. */
    uint64_t elements;
    /** Number of bytes. */
    uint64_t bytes;
    /** Element type; the base type also for a reference slot. */
    TenonDType dtype;
    /** Number of dimensions, at most `TENON_MAX_RANK`. */
    uint32_t rank;
    /** Kind of the memory of `data`. */
    TenonMemoryKind memory;
    /**
     * Alias class: slots of one call with the same number other than `TENON_NO_ALIAS` share one
     * buffer.
     */
    uint32_t alias;
    /** Bits of `TENON_SLOT_FLAG_*`. */
    uint32_t flags;
    /** Zero. */
    uint32_t reserved;
};

/* Bits of `TenonSlot.flags`. */

/** Output: `data` was allocated by the executor from inferred shapes. */
#define TENON_SLOT_FLAG_PLANNED 1u
/** Reference slot: `buffer` names a cell for the `ref_*` services, `data` is null. */
#define TENON_SLOT_FLAG_REF 2u
/** Output that is not planned: a host service has set it. A planned one needs no mark. */
#define TENON_SLOT_FLAG_SET 4u
/** Input: its value is the same in every call of this kernel object. */
#define TENON_SLOT_FLAG_CONSTANT 8u
/** Output: nothing reads it; the kernel may leave it unset. */
#define TENON_SLOT_FLAG_UNUSED 16u

/**
 * Element of a `string` tensor: 24 bytes, owned by its buffer. All zero is the empty string. Filled
 * by the host's string services (`TenonStringTable`), which alone change `data` and `capacity`.
 */
struct TenonStringElement {
    /** First byte; null when empty. */
    uint8_t *data;
    /** Number of bytes. */
    uint64_t len;
    /** Bytes allocated. */
    uint64_t capacity;
};

/**
 * Element of a `resource` tensor: one counted reference to a resource of the host; null if there is
 * none. Filled by the side that writes the tensor.
 */
struct TenonResourceElement {
    /** The resource; may be null. */
    TenonResource *resource;
};

/**
 * Element of a `variant` tensor: an owned value and the table of its type; both are null if there
 * is no value. Filled by the side that writes the tensor.
 */
struct TenonVariantElement {
    /** The value; may be null. */
    void *value;
    /** The value's table; may be null when `value` is. */
    const TenonVariantTable *table;
};

/* ---------------------------------------------------------------------------------------------- */
/* What a kernel learns when it is created                                                        */
/* ---------------------------------------------------------------------------------------------- */

/**
 * The attributes of one node, read through `TenonHost.attr`. Opaque; valid while the call that lent
 * it runs.
 */
struct TenonAttrs;

/** Kind of an attribute value, or of the items of a list. */
typedef uint32_t TenonAttrKind;

#define TENON_ATTR_INT ((TenonAttrKind)1)    /**< Items are `int64_t`. */
#define TENON_ATTR_FLOAT ((TenonAttrKind)2)  /**< Items are `float`. */
#define TENON_ATTR_BOOL ((TenonAttrKind)3)   /**< Items are bytes, 0 or 1. */
#define TENON_ATTR_STRING ((TenonAttrKind)4) /**< Items are `TenonStr`s. */
#define TENON_ATTR_TYPE ((TenonAttrKind)5)   /**< Items are `TenonDType`s. */
#define TENON_ATTR_SHAPE ((TenonAttrKind)6)  /**< Items are `TenonShapeView`s. */
#define TENON_ATTR_TENSOR ((TenonAttrKind)7) /**< Items are `TenonSlot`s in host memory. */
#define TENON_ATTR_FUNC ((TenonAttrKind)8)   /**< Items are `TenonFuncView`s. */

/** One attribute. Filled by the host. */
struct TenonAttrView {
    /** What the items are. */
    TenonAttrKind kind;
    /** 1 for a list, 0 for a single value (then `len` is 1). */
    uint32_t is_list;
    /** First item; may be null when `len` is 0. */
    const void *data;
    /** Number of items. */
    size_t len;
};

/** A shape that may be partly unknown. Filled by the host. */
struct TenonShapeView {
    /** Dimensions, `TENON_UNKNOWN_DIM` where unknown. */
    TenonDims dims;
    /** 1 when the rank is not known; then `dims` is empty. */
    uint32_t unknown_rank;
};

/**
 * A function: its name, and the serialised `NameAttrList` and `FunctionDef` that define it. Filled
 * by the host.
 */
struct TenonFuncView {
    /** Name in the graph's function library. */
    TenonStr name;
    /** Serialised `tensorflow.NameAttrList`. */
    TenonStr call;
    /** Serialised `tensorflow.FunctionDef`; empty when the library has no function of that name. */
    TenonStr definition;
};

/**
 * The arguments of `create` and `supports` (`supports` is called before a kernel exists). Filled by
 * the host; valid while `create` runs.
 */
struct TenonCreate {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Number of inputs. */
    uint32_t input_count;
    /** Number of outputs. */
    uint32_t output_count;
    /** Zero. */
    uint32_t reserved;
    /** Attributes of the node. */
    const TenonAttrs *attrs;
    /** Name of the op. */
    TenonStr op;
    /** Name of the node. */
    TenonStr node;
    /** Full name of the device. */
    TenonStr device;
    /** State of the device that the kernel will run on; null for host memory alone. */
    TenonDeviceState *device_state;
    /** `input_count` element types. */
    const TenonDType *input_types;
    /** `output_count` element types. */
    const TenonDType *output_types;
    /** `input_count` shapes, partly unknown. */
    const TenonShapeView *input_shapes;
    /** `input_count` views; `data` is null if the input is not constant. */
    const TenonSlot *constants;
    /** Names of the input arguments, in order. */
    TenonStrs input_args;
    /** Positions of each input argument, as many as `input_args`. */
    const TenonRange *input_ranges;
    /** Names of the output arguments, in order. */
    TenonStrs output_args;
    /** Positions of each output argument, as many as `output_args`. */
    const TenonRange *output_ranges;
    /**
     * The kernel's plugin as its session uses it, for `TenonHost.knob`; lent for this call, unless
     * it is retained.
     */
    const TenonPluginContext *context;
    /** Takes the message when the kernel refuses. */
    TenonSink *sink;
    /** Growth; may be null. */
    const TenonExtHeader *ext;
};

/** Answer of `supports`. */
typedef int32_t TenonSupport;

/** Not these attributes or shapes; the sink has the reason. */
#define TENON_SUPPORT_NO ((TenonSupport)0)
/** Yes, whatever the unknown dimensions turn out to be. */
#define TENON_SUPPORT_YES ((TenonSupport)1)
/**
 * Ask again when the shapes are known: at the latest in the step that brings them, once for each
 * new shape.
 */
#define TENON_SUPPORT_DEPENDS_ON_SHAPES ((TenonSupport)2)

/** A packed form of a constant input, made by `prepack`. Opaque to the host. */
struct TenonPacked;

/* ---------------------------------------------------------------------------------------------- */
/* What the host lends to a plugin as long as it is loaded                                        */
/* ---------------------------------------------------------------------------------------------- */

/** Takes the message of an error. Opaque to plugins; valid while the call that lent it runs. */
struct TenonSink;

/**
 * A tensor that a plugin keeps beyond a call, such as an element of its queue. Opaque to plugins.
 */
struct TenonKeptTensor;

/** The host's record of a loaded plugin. Opaque to plugins; lives as long as the process. */
struct TenonPlugin;

/**
 * A plugin as one runtime, or one session, uses it: the values of its knobs. Opaque to plugins;
 * counted. Several runtimes of one process may use one library, each with values of its own.
 */
struct TenonPluginContext;

/** Severity of a log line. */
typedef uint32_t TenonLogLevel;

#define TENON_LOG_ERROR ((TenonLogLevel)1) /**< Something failed. */
#define TENON_LOG_WARN ((TenonLogLevel)2)  /**< Something is unusual. */
#define TENON_LOG_INFO ((TenonLogLevel)3)  /**< Worth knowing. */
#define TENON_LOG_DEBUG ((TenonLogLevel)4) /**< For debugging. */
#define TENON_LOG_TRACE ((TenonLogLevel)5) /**< For debugging in detail. */

/** Type of a knob. */
typedef uint32_t TenonKnobKind;

#define TENON_KNOB_BOOL ((TenonKnobKind)1)   /**< `true` or `false`. */
#define TENON_KNOB_INT ((TenonKnobKind)2)    /**< A 64-bit integer. */
#define TENON_KNOB_FLOAT ((TenonKnobKind)3)  /**< A 64-bit float. */
#define TENON_KNOB_STRING ((TenonKnobKind)4) /**< Text. */

/**
 * Value of a knob. Filled by the host; `text` is valid until the next call of `knob` on this
 * thread.
 */
struct TenonKnobValue {
    /** Which of the fields below is set. */
    TenonKnobKind kind;
    /** 0 or 1. */
    uint32_t boolean;
    /** For `TENON_KNOB_INT`. */
    int64_t int_value;
    /** For `TENON_KNOB_FLOAT`. */
    double float_value;
    /** For `TENON_KNOB_STRING`. */
    TenonStr text;
};

/**
 * The host's services outside a call. Filled by the host; every entry is there; lives as long as
 * the process.
 */
struct TenonHost {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Major number of the host's ABI. */
    uint32_t abi_major;
    /** Minor number of the host's ABI. */
    uint32_t abi_minor;
    /** Zero. */
    uint32_t reserved;
    /** Keeps a copy of `message` for the error that the caller is about to return. */
    void (*report)(TenonSink *sink, TenonStr message);
    /** Writes a log line. */
    void (*log)(const TenonPlugin *plugin, TenonLogLevel level, TenonStr message);
    /** Looks an attribute up; `TENON_NOT_FOUND` when the node has no attribute of that name. */
    TenonCode (*attr)(const TenonAttrs *attrs,
                      TenonStr name,
                      TenonAttrView *result);
    /**
     * Reads one of the plugin's own knobs; `TENON_NOT_FOUND` when it declared no knob of that name.
     * The context of a kernel, which `TenonCreate` has, gives the values of the session that the
     * kernel is made for; the one that a device type's `probe` and `create` are given, those of the
     * runtime. Null: `TENON_NOT_FOUND`.
     */
    TenonCode (*knob)(const TenonPluginContext *context,
                      TenonStr name,
                      TenonKnobValue *result);
    /**
     * Keeps a context beyond the call that lent it; null is allowed. `release_context` gives it
     * back.
     */
    void (*retain_context)(const TenonPluginContext *context);
    /** Gives a context back that `retain_context` kept; null is allowed. */
    void (*release_context)(const TenonPluginContext *context);
    /** Path of the plugin's own file; empty when it is linked into the host. */
    TenonStr (*path)(const TenonPlugin *plugin);
    /** Allocates host memory and counts it; null when there is none. `align` is a power of two. */
    void *(*allocate)(uint64_t bytes, uint64_t align);
    /** Frees what `allocate` gave, with the same figures. */
    void (*deallocate)(void *data, uint64_t bytes, uint64_t align);
    /** Nanoseconds of a monotonic clock. */
    uint64_t (*now_ns)(void);
    /**
     * Keeps the tensor of a set slot beyond the call, without a copy; null for a slot without a
     * tensor. The slot is one of a call, of a kept tensor, or of a locked variable, whose value
     * stays as it is; or the caller fills it, without a buffer, with the address of elements of its
     * own, which are copied. `release` gives the tensor back, and `TenonCallServices.output_kept`
     * makes it an output of a kernel.
     */
    TenonKeptTensor *(*keep)(const TenonSlot *slot);
    /** Shows a kept tensor, valid while it is kept. */
    void (*view)(const TenonKeptTensor *kept, TenonSlot *result);
    /** Gives a kept tensor back. */
    void (*release)(TenonKeptTensor *kept);
    /**
     * Reports that a device is lost: its steps fail with `TENON_UNAVAILABLE`, and subscribers are
     * notified. After the call, no further command of the device begins. Commands that run may go
     * on, and may use the memory that they were enqueued with, the host's included, until
     * `TenonDeviceTable.synchronize_stream` of their stream returns. The host waits for the entries
     * and kernels that it called, for every notification and completion that is still outstanding,
     * and for `synchronize_stream` of every stream that it made, which it calls for a lost device
     * too. Only then does it give memory back; after that it destroys events and streams, and at
     * last the device. May be called from any thread, also by an entry or a command of the device.
     */
    void (*device_lost)(TenonDevice *device, TenonStr reason);
    /** Elements of string tensors. */
    const TenonStringTable *strings;
    /** Shape inference. */
    const TenonShapeTable *shapes;
    /** Resources, variables, variants, reference slots. */
    const TenonStateTable *state;
    /** Growth; may be null. */
    const TenonExtHeader *ext;
};

/* ---------------------------------------------------------------------------------------------- */
/* What a kernel gets when it computes, and the table of its entries                              */
/* ---------------------------------------------------------------------------------------------- */

/** A kernel's own state, made by `create`. Opaque to the host. */
struct TenonKernelState;

/** The host's record of one call. Opaque to plugins. It lives until the call completes. */
struct TenonCallRecord;

/** What all calls of one step share. Filled by the host. */
struct TenonStep {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** Number of the step, unique in the process. */
    uint64_t step_id;
    /**
     * Deadline on the clock of `TenonCallServices.now_ns`; `TENON_NO_DEADLINE` if there is none.
     */
    uint64_t deadline_ns;
    /** Becomes non-zero when the step is cancelled; read atomically. */
    const uint32_t *cancelled;
    /** Growth; may be null. */
    const TenonExtHeader *ext;
};

/**
 * One call of a kernel. Filled by the host; lives until the call completes.
 *
 * On the host's threads, those of `parallel_for` among them, the floating-point unit rounds to
 * nearest and takes denormal operands and results for zeros of their sign, as in TensorFlow's
 * kernels: an intermediate product that is below the smallest normal number is zero, and everything
 * computed from it follows. If the kernel's definition says
 * `TENON_KERNEL_DEF_FLAG_KEEPS_DENORMALS`, or the session keeps denormals, denormals stay as they
 * are. A kernel that changes this state during a call finds it restored in its next call.
 */
struct TenonCall {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Number of inputs. */
    uint32_t input_count;
    /** Number of outputs. */
    uint32_t output_count;
    /** 1 when the host asks for a trace of this call. */
    uint32_t tracing;
    /** `input_count` pointers: an input is the slot that another node's output filled. */
    const TenonSlot *const *inputs;
    /** `output_count` slots. */
    TenonSlot *outputs;
    /** Positions of each named input argument. */
    const TenonRange *input_args;
    /** Positions of each named output argument. */
    const TenonRange *output_args;
    /** Number of named input arguments. */
    uint32_t input_arg_count;
    /** Number of named output arguments. */
    uint32_t output_arg_count;
    /** What the services below take as their first argument. */
    TenonCallRecord *record;
    /** Services of this call. */
    const TenonCallServices *services;
    /** The step. */
    const TenonStep *step;
    /** The device, for services; null on the host's own memory. */
    TenonDevice *device;
    /** State that the device's plugin made for it; null on the host's own memory. */
    TenonDeviceState *device_state;
    /** Stream that the kernel enqueues on; null on a device without streams. */
    TenonStream *stream;
    /** Number of the control-flow frame; 0 outside all loops. */
    uint64_t frame;
    /** Iteration within the frame. */
    uint64_t iteration;
    /** Growth; may be null. */
    const TenonExtHeader *ext;
};

/** Called once when the step is cancelled, from any thread, or at once when it already is. */
typedef void (*TenonCancelCallback)(void *data);

/**
 * The body of `parallel_for`: computes the units from `begin` up to `end`, `end` not included, as
 * worker `worker`: no two blocks run at the same time under one index. It must not unwind.
 */
typedef void (*TenonParallelBody)(void *data, uint64_t begin, uint64_t end, uint32_t worker);

/** Services of a call. Filled by the host; every entry is there. */
struct TenonCallServices {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** Keeps a copy of `message` for the call's error and returns `code`. */
    TenonCode (*fail)(TenonCallRecord *record, TenonCode code, TenonStr message);
    /**
     * Sets output `output` to a fresh buffer of this shape, in its own memory for
     * `TENON_ORDINARY_MEMORY`. The contents are undefined, except that strings, resources and
     * variants are all zero, which is empty.
     */
    TenonCode (*allocate)(TenonCallRecord *record,
                          uint32_t output,
                          const int64_t *dims,
                          uint32_t rank,
                          TenonMemoryKind memory);
    /**
     * Lets output `output` take over the buffer of input `input` under this shape if nothing else
     * holds it: 1 when it did, 0 when not (the output is as before).
     */
    uint32_t (*forward)(TenonCallRecord *record,
                        uint32_t input,
                        uint32_t output,
                        const int64_t *dims,
                        uint32_t rank);
    /** Returns the buffer of input `input` as output `output` under a shape with as many bytes. */
    TenonCode (*share)(TenonCallRecord *record,
                       uint32_t input,
                       uint32_t output,
                       const int64_t *dims,
                       uint32_t rank);
    /** Lends memory for as long as the call's own memory may be used. `align` is a power of two. */
    TenonCode (*scratch)(TenonCallRecord *record,
                         uint64_t bytes,
                         uint64_t align,
                         TenonMemoryKind memory,
                         void **result);
    /**
     * Registers a callback for cancellation; its token, or `TENON_NO_CALLBACK` when it was run at
     * once.
     */
    uint64_t (*on_cancel)(TenonCallRecord *record, TenonCancelCallback callback, void *data);
    /**
     * Withdraws a callback; when this returns it is not running and will not run. Not to be called
     * from the callback itself. `TENON_NO_CALLBACK` is allowed.
     */
    void (*off_cancel)(TenonCallRecord *record, uint64_t token);
    /** Returns a kept tensor as output `output`, without a copy. */
    TenonCode (*output_kept)(TenonCallRecord *record,
                             uint32_t output,
                             const TenonKeptTensor *kept);
    /**
     * Ends a call whose `compute` returned or will return `TENON_PENDING`; exactly once, from any
     * thread. Nothing of the call may be used afterwards. A second call fails the step with an
     * error, or is logged if the step has ended.
     */
    void (*complete)(TenonCallRecord *record, TenonCode code);
    /**
     * Computes `total` units of about `cost_ns` each on the host's threads; returns when all are
     * done. Once the step is cancelled or its deadline has passed, the remaining units are skipped
     * and the outputs of the call are not used, whatever it returns. A call that has locked a
     * variable computes all units.
     */
    void (*parallel_for)(TenonCallRecord *record,
                         uint64_t total,
                         double cost_ns,
                         TenonParallelBody body,
                         void *data);
    /**
     * Threads that `parallel_for` may use in this call, the caller's included: at least 1. The
     * worker index of its body is below this.
     */
    uint32_t (*parallelism)(TenonCallRecord *record);
    /** Adds a span to the step's trace, with times of `now_ns`. */
    void (*trace)(TenonCallRecord *record,
                  TenonStr name,
                  uint64_t begin_ns,
                  uint64_t end_ns);
    /** Nanoseconds of a monotonic clock. */
    uint64_t (*now_ns)(void);
    /** Name of the node, for messages. */
    TenonStr (*node)(TenonCallRecord *record);
};

/* Bits of `TenonKernelTable.flags`. */

/**
 * `compute` may return `TENON_PENDING` and complete later; without this flag `TENON_PENDING` is an
 * error.
 */
#define TENON_KERNEL_FLAG_ASYNC 1u
/**
 * `compute` may block on something other than computation: it never runs on the caller's thread.
 */
#define TENON_KERNEL_FLAG_BLOCKING 2u
/** A call costs enough to be worth another thread before it has been measured. */
#define TENON_KERNEL_FLAG_EXPENSIVE 4u

/** Entries of a kernel. Filled by the plugin; lives as long as the library. */
struct TenonKernelTable {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Bits of `TENON_KERNEL_FLAG_*`. */
    uint32_t flags;
    /** Makes the state for one node. Null: the state is null. */
    TenonCode (*create)(const TenonCreate *create, TenonKernelState **state);
    /** Computes. Required. Calls for one state may run at the same time. */
    TenonCode (*compute)(TenonKernelState *state, const TenonCall *call);
    /** Frees the state. Null: nothing to free. */
    void (*destroy)(TenonKernelState *state);
    /**
     * Packs the constant input `input` into a form of the kernel's own; leaves `*packed` null to
     * decline. The host may free the constant afterwards and gives the form to other states of the
     * same node.
     */
    TenonCode (*prepack)(TenonKernelState *state,
                         uint32_t input,
                         const TenonSlot *view,
                         TenonPacked **packed,
                         uint64_t *packed_bytes,
                         TenonSink *sink);
    /**
     * Gives a state the packed form of its input; required with `prepack`. The form outlives the
     * state.
     */
    void (*attach_packed)(TenonKernelState *state, uint32_t input, TenonPacked *packed);
    /** Frees a packed form; required with `prepack`. */
    void (*release_packed)(TenonPacked *packed);
    /** Whether the kernel takes these attributes and shapes. Null: yes. */
    TenonSupport (*supports)(const TenonCreate *create);
    /** Growth; may be null. */
    const TenonExtHeader *ext;
};

/* ---------------------------------------------------------------------------------------------- */
/* What the host offers to kernels beyond its tables, as links: calls of functions, and handles of resources */
/* ---------------------------------------------------------------------------------------------- */

/**
 * A function of a graph's library that is ready to be called. Opaque to plugins; reference-counted.
 */
struct TenonFunction;

/** On which thread a call of a function begins. */
typedef uint32_t TenonFunctionStart;

/** On the calling thread, which drives the call until only outstanding work is left. */
#define TENON_FUNCTION_START_HERE ((TenonFunctionStart)0)
/** On a thread of the host's pool, so that calls run at the same time. */
#define TENON_FUNCTION_START_POOL ((TenonFunctionStart)1)

/**
 * Takes the end of a call: `TENON_OK` and the results, whose references pass to the plugin, or an
 * error with its message and no results. Array and message are valid while it runs. It runs once
 * per call, on any thread, perhaps before `TenonExtFunctions.call` returns. It must not unwind.
 */
typedef void (*TenonFunctionDone)(void *data,
                                  TenonCode code,
                                  TenonStr message,
                                  TenonKeptTensor *const *results,
                                  size_t result_count);

/**
 * Link `TENON_EXT_FUNCTIONS` of the host's table: calls of the functions that a node's attributes
 * name. Filled by the host; every entry is there.
 */
struct TenonExtFunctions {
    /** Head, with tag `TENON_EXT_FUNCTIONS`. */
    TenonExtHeader header;
    /**
     * Finds the function that item `item` of attribute `attr` of the call's node names; item 0 of
     * an attribute that is not a list. The result is a counted reference that outlives the call,
     * its step and its session: `release` gives it back. `TENON_NOT_FOUND` when the attribute names
     * no function that the graph's library defines.
     */
    TenonCode (*find)(TenonCallRecord *record,
                      TenonStr attr,
                      size_t item,
                      TenonFunction **result);
    /** Adds a reference; null is allowed. */
    void (*retain)(TenonFunction *function);
    /** Gives a reference back; null is allowed. Calls that run go on. */
    void (*release)(TenonFunction *function);
    /**
     * Calls the function with `arg_count` kept tensors in host memory, which the caller keeps until
     * the entry returns. A call with the record of a kernel's call belongs to that step: it has the
     * step's number and deadline, and ends with it. A call with null is a step of its own, without
     * a deadline. The end comes through `done` with `data`, errors of the arguments too.
     */
    void (*call)(TenonFunction *function,
                 TenonCallRecord *record,
                 const TenonKeptTensor *const *args,
                 size_t arg_count,
                 TenonFunctionStart start,
                 TenonFunctionDone done,
                 void *data);
    /**
     * Ends the calls that are steps of their own, those that run and later ones, with
     * `TENON_CANCELLED`. They are those of all references to what one `find` gave.
     */
    void (*cancel)(TenonFunction *function);
};

/**
 * Link `TENON_EXT_HANDLES` of the host's table: resources by their handles. Filled by the host;
 * every entry is there.
 */
struct TenonExtHandles {
    /** Head, with tag `TENON_EXT_HANDLES`. */
    TenonExtHeader header;
    /**
     * Removes a resource from its container on the call's device, and the value of a variable;
     * later calls that ask for its name make a new one. A holder of a reference keeps the resource.
     * `TENON_NOT_FOUND` when no container has it.
     */
    TenonCode (*remove)(TenonCallRecord *record, TenonResource *resource);
    /**
     * Whether a container has or had a resource under a name: 1, or 0 for an anonymous one and for
     * null.
     */
    uint32_t (*has_name)(const TenonResource *resource);
};

/* ---------------------------------------------------------------------------------------------- */
/* What the host offers to kernels of collective operations, as a link: who takes part, and tensors between them */
/* ---------------------------------------------------------------------------------------------- */

/** The place of a call in a collective operation. Opaque to plugins; it has one owner. */
struct TenonCollective;

/** A kind of collective operation, with TensorFlow's numbers. */
typedef uint32_t TenonCollectiveKind;

/** Every member gets the values of all members, merged into one. */
#define TENON_COLLECTIVE_REDUCE ((TenonCollectiveKind)0)
/** Every member gets the value of one member. */
#define TENON_COLLECTIVE_BROADCAST ((TenonCollectiveKind)1)
/** Every member gets the values of all members, one after the other. */
#define TENON_COLLECTIVE_GATHER ((TenonCollectiveKind)2)
/** Every member gets a part of the value of each member. */
#define TENON_COLLECTIVE_ALL_TO_ALL ((TenonCollectiveKind)4)
/** Every member gets a part of the merged value. */
#define TENON_COLLECTIVE_REDUCE_SCATTER ((TenonCollectiveKind)5)

/**
 * How a call takes part in a collective operation. Filled by the plugin, which keeps it until
 * `TenonExtCollectives.join` returns.
 */
struct TenonCollectiveJoin {
    /** Size of this struct in bytes. */
    uint32_t struct_size;
    /** The kind of operation, the same at all members. */
    TenonCollectiveKind kind;
    /** The group of devices. */
    int32_t group_key;
    /** The number of its devices, at least 1. */
    int32_t group_size;
    /** The operation within the group. */
    int32_t instance_key;
    /** Element type of the values, the same at all members. */
    TenonDType dtype;
    /** 1 for the member whose value a broadcast gives to all, else 0. */
    uint32_t is_source;
    /** Number of dimensions. */
    uint32_t rank;
    /** Dimensions of the value, the same at all members. */
    const int64_t *dims;
    /**
     * Nanoseconds after which the operation fails with `TENON_DEADLINE_EXCEEDED`; 0 for no limit of
     * its own.
     */
    uint64_t timeout_ns;
};

/**
 * Takes the end of `TenonExtCollectives.join`: `TENON_OK` with the place of the call among `size`
 * members and the place of the source of a broadcast, or an error with its message. The message is
 * valid while it runs. It runs once, on any thread, perhaps before `join` returns. It must not
 * unwind.
 */
typedef void (*TenonCollectiveReady)(void *data,
                                     TenonCode code,
                                     TenonStr message,
                                     uint32_t place,
                                     uint32_t size,
                                     uint32_t source);

/**
 * Link `TENON_EXT_COLLECTIVES` of the host's table: collective operations of several devices, of
 * this process and of others. Filled by the host; every entry is there.
 *
 * A member is the call of a kernel on one device. The host finds the members and carries tensors
 * between them; what is sent to whom, and what is computed, is the kernels' own.
 */
struct TenonExtCollectives {
    /** Head, with tag `TENON_EXT_COLLECTIVES`. */
    TenonExtHeader header;
    /**
     * Joins the operation, which is of the call's step. `ready` gets `data` once all members have
     * joined. Null, and no call of `ready`, for a call that is over and for a description that is
     * refused.
     */
    TenonCollective *(*join)(TenonCallRecord *record,
                                    const TenonCollectiveJoin *join,
                                    TenonCollectiveReady ready,
                                    void *data);
    /**
     * Sends a tensor in host memory to a member under a number that this member has not used for it
     * before. Never blocks. Only after `ready`.
     */
    TenonCode (*send)(TenonCollective *collective,
                      uint32_t to,
                      uint64_t number,
                      const TenonKeptTensor *tensor);
    /**
     * Takes the tensor that a member sends to this one under a number, as the only result of
     * `done`; its dimensions may be one that counts the elements. Never blocks. Only after `ready`.
     */
    void (*recv)(TenonCollective *collective,
                 uint32_t from,
                 uint64_t number,
                 TenonFunctionDone done,
                 void *data);
    /**
     * Fails the operation: what waits, here and at other members of the step, gets the error. Only
     * the first error counts.
     */
    void (*abort)(TenonCollective *collective, TenonCode code, TenonStr message);
    /** Gives the place back; null is allowed. What this member has sent stays for its receivers. */
    void (*release)(TenonCollective *collective);
};

/* ---------------------------------------------------------------------------------------------- */
/* Shape inference over opaque handles                                                            */
/* ---------------------------------------------------------------------------------------------- */

/** One run of a shape function. Opaque to plugins. */
struct TenonShapeCall;

/** A shape of one run. */
typedef uint32_t TenonShapeId;

/** A dimension of one run. Two unknown dimensions with the same number are the same size. */
typedef uint32_t TenonDimId;

/**
 * Services of a shape function. Filled by the host; every entry is there. An entry that returns a
 * `TenonCode` has kept the message when the code is an error: return it.
 */
struct TenonShapeTable {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** Attributes of the node. */
    const TenonAttrs *(*attrs)(TenonShapeCall *call);
    /** Number of inputs. */
    uint32_t (*input_count)(TenonShapeCall *call);
    /** Number of outputs. */
    uint32_t (*output_count)(TenonShapeCall *call);
    /** Shape of an input; the unknown shape when `input` is out of range. */
    TenonShapeId (*input)(TenonShapeCall *call, uint32_t input);
    /** Value of a constant input in host memory; null when it is not known. */
    const TenonSlot *(*constant)(TenonShapeCall *call, uint32_t input);
    /**
     * Reads a one-dimensional integer input as a shape, as far as its values are known
     * (`TENON_UNKNOWN_DIM` and unknown values are unknown dimensions).
     */
    TenonCode (*constant_as_shape)(TenonShapeCall *call, uint32_t input, TenonShapeId *result);
    /** Rank; `TENON_UNKNOWN_RANK` when it is unknown. */
    int32_t (*rank)(TenonShapeCall *call, TenonShapeId shape);
    /** A dimension of a shape of known rank; a fresh unknown one otherwise or out of range. */
    TenonDimId (*dim)(TenonShapeCall *call, TenonShapeId shape, uint32_t index);
    /** Size; `TENON_UNKNOWN_DIM` when it is unknown. */
    int64_t (*value)(TenonShapeCall *call, TenonDimId dim);
    /** A dimension of this size; `TENON_UNKNOWN_DIM` is a fresh unknown one. */
    TenonDimId (*make_dim)(TenonShapeCall *call, int64_t value);
    /** A shape of these dimensions. */
    TenonShapeId (*make_shape)(TenonShapeCall *call, const TenonDimId *dims, uint32_t rank);
    /** The shape of unknown rank. */
    TenonShapeId (*unknown_shape)(TenonShapeCall *call);
    /** Merges what is known of two shapes; refuses shapes that contradict each other. */
    TenonCode (*merge)(TenonShapeCall *call,
                       TenonShapeId a,
                       TenonShapeId b,
                       TenonShapeId *result);
    /** Merges what is known of two dimensions. */
    TenonCode (*merge_dim)(TenonShapeCall *call,
                           TenonDimId a,
                           TenonDimId b,
                           TenonDimId *result);
    /** The shape with this rank; refuses another rank. */
    TenonCode (*with_rank)(TenonShapeCall *call,
                           TenonShapeId shape,
                           uint32_t rank,
                           TenonShapeId *result);
    /** Sets the shape of an output. */
    TenonCode (*set_output)(TenonShapeCall *call, uint32_t output, TenonShapeId shape);
    /**
     * Gives what is known of the value behind resource input `input`: element type and shape of its
     * part `part`. Returns the number of known parts.
     */
    uint32_t (*input_handle)(TenonShapeCall *call,
                             uint32_t input,
                             uint32_t part,
                             TenonDType *dtype,
                             TenonShapeId *shape);
    /** Adds a part to what is known of the value behind resource output `output`. */
    TenonCode (*add_output_handle)(TenonShapeCall *call,
                                   uint32_t output,
                                   TenonDType dtype,
                                   TenonShapeId shape);
    /** Keeps a copy of `message` for the error and returns `code`. */
    TenonCode (*fail)(TenonShapeCall *call, TenonCode code, TenonStr message);
};

/* ---------------------------------------------------------------------------------------------- */
/* State that outlives a call: strings, resources, variables, variants, reference slots           */
/* ---------------------------------------------------------------------------------------------- */

/** Services for elements of string tensors. Filled by the host; every entry is there. */
struct TenonStringTable {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** Replaces the value; `TENON_RESOURCE_EXHAUSTED` without memory (the element is as before). */
    TenonCode (*set)(TenonStringElement *element, TenonStr value);
    /**
     * Makes room for `capacity` bytes and keeps the value. The caller may then write up to
     * `capacity` bytes at `data` and set `len`.
     */
    TenonCode (*reserve)(TenonStringElement *element, uint64_t capacity);
    /** Frees the value and leaves the empty string. */
    void (*destroy)(TenonStringElement *element);
};

/** A resource of the host. Opaque to plugins; reference-counted. */
struct TenonResource;

/** A variable: a resource of the host that holds one tensor. Opaque to plugins. */
struct TenonVariable;

/**
 * Type of a plugin's own resources. Filled by the plugin; lives as long as the library. Its address
 * is the type: a value is given out only for the type that it was made with, so that no other
 * library, and no later build of the plugin, takes it for something else. Any thread may use and
 * destroy a value.
 */
struct TenonResourceType {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /**
     * Name of the type, unique: by convention `plugin.Type`. Resources of one name and different
     * types do not see each other; those of one name and one name of type must be of one type.
     */
    TenonStr name;
    /** Frees the value. Required. */
    void (*destroy)(void *value);
    /** Growth; may be null. */
    const TenonExtHeader *ext;
};

/** Makes a resource's value when there is none of that name. */
typedef TenonCode (*TenonResourceFactory)(void *data, void **value, TenonSink *sink);

/**
 * The receiver of the tensors of a value that is encoded. Opaque to plugins; valid while `encode`
 * runs.
 */
struct TenonVariantParts;

/** Takes one tensor of a value that is encoded: the slot of a kept tensor. */
typedef TenonCode (*TenonTensorGive)(TenonVariantParts *parts, const TenonSlot *tensor);

/**
 * Table of a variant's type. Filled by the plugin that makes such values; lives as long as the
 * library. Its address is the type. A type whose values can be decoded is registered by its table
 * (`TenonExtVariant`). Any thread may use and destroy a value.
 */
struct TenonVariantTable {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** Name of the type, unique. */
    TenonStr type_name;
    /** Copies a value. Required. */
    TenonCode (*clone)(const void *value, void **copy, TenonSink *sink);
    /** Frees a value. Required. */
    void (*destroy)(void *value);
    /**
     * Gives the value's bytes to the sink as its message, and its tensors, in an order of the
     * type's, to `give` with `parts`.
     */
    TenonCode (*encode)(const void *value,
                        TenonVariantParts *parts,
                        TenonTensorGive give,
                        TenonSink *sink);
    /**
     * Makes a value of what `encode` gave, perhaps in another process: bytes and tensors in host
     * memory, lent for this call (`TenonHost.keep`). They may be anything.
     */
    TenonCode (*decode)(TenonStr bytes,
                        const TenonSlot *tensors,
                        size_t tensor_count,
                        void **result,
                        TenonSink *sink);
    /** Makes a value whose tensors are in memory of another kind or device. */
    TenonCode (*copy_to_device)(const void *value,
                                TenonDevice *device,
                                TenonMemoryKind memory,
                                TenonStream *stream,
                                void **copy,
                                TenonSink *sink);
    /** Makes a value of zeros of the same form. */
    TenonCode (*zeros_like)(const void *value, void **result, TenonSink *sink);
    /** Adds two values. */
    TenonCode (*add)(const void *a, const void *b, void **result, TenonSink *sink);
    /** Growth; may be null. */
    const TenonExtHeader *ext;
};

/**
 * Link `TENON_EXT_VARIANT`, a registration: a type of variants whose values can be decoded, known
 * by the name in its table. Filled by the plugin; the table lives as long as the library.
 */
struct TenonExtVariant {
    /** Head, with tag `TENON_EXT_VARIANT`. */
    TenonExtHeader header;
    /** The type, with `decode`. */
    const TenonVariantTable *table;
    /** Where it is registered. */
    TenonSource source;
};

/**
 * Takes a variant that is encoded, once: the name of its type, bytes in the type's own format, and
 * the slots of its tensors, in host memory. Without a name the element has no value. All of them
 * are lent for this call.
 */
typedef void (*TenonVariantTake)(void *data,
                                 TenonStr type_name,
                                 TenonStr bytes,
                                 const TenonSlot *tensors,
                                 size_t tensor_count);

/**
 * Link `TENON_EXT_VARIANTS` of the host's table: variants of any plugin's types as bytes and
 * tensors, to be stored. Filled by the host; every entry is there. An error's message is that of
 * the call.
 */
struct TenonExtVariants {
    /** Head, with tag `TENON_EXT_VARIANTS`. */
    TenonExtHeader header;
    /**
     * Gives the encoded form of an element of a variant tensor to `take` with `data`, before it
     * returns. `TENON_UNIMPLEMENTED` for a type that cannot encode, and for tensors in memory of a
     * device.
     */
    TenonCode (*encode)(TenonCallRecord *record,
                        const TenonVariantElement *element,
                        TenonVariantTake take,
                        void *data);
    /**
     * Makes an element of what `encode` gave, which belongs to the caller; without a name, one
     * without a value. `TENON_NOT_FOUND` if no plugin of the call's process has registered a type
     * of this name.
     */
    TenonCode (*decode)(TenonCallRecord *record,
                        TenonStr type_name,
                        TenonStr bytes,
                        const TenonSlot *tensors,
                        size_t tensor_count,
                        TenonVariantElement *result);
};

/**
 * Services for state. Filled by the host; every entry is there.
 *
 * Lock order: variables are locked in one call of `lock_variables`, which orders them itself; a
 * kernel holds no other lock of the host meanwhile.
 */
struct TenonStateTable {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /**
     * Finds or makes the resource (container, name, type) of the call's device, which all sessions
     * of a worker share. An empty container is the default one; what is in the container
     * `__per_step_<step_id>` goes with the step. An empty name is an anonymous resource: it is made
     * each time, and lives as long as its references. The result is a counted reference: give it
     * back by `release_resource`. `TENON_NOT_FOUND` when the resource does not exist and there is
     * no factory; `TENON_FAILED_PRECONDITION` when it exists with another type of the same name.
     */
    TenonCode (*resource)(TenonCallRecord *record,
                          TenonStr container,
                          TenonStr name,
                          const TenonResourceType *kind,
                          TenonResourceFactory factory,
                          void *data,
                          TenonResource **result);
    /** Value of a resource, when it is of type `kind`; null otherwise, and for null. */
    void *(*resource_value)(const TenonResource *resource,
                            const TenonResourceType *kind);
    /** Adds a reference; null is allowed. */
    void (*retain_resource)(TenonResource *resource);
    /** Gives a reference back; the last one destroys the value. Null is allowed. */
    void (*release_resource)(TenonResource *resource);
    /**
     * Removes (container, name, type) from the call's device; `TENON_NOT_FOUND` when it does not
     * exist.
     */
    TenonCode (*remove_resource)(TenonCallRecord *record,
                                 TenonStr container,
                                 TenonStr name,
                                 TenonStr kind);
    /**
     * Finds or makes the variable (container, name), as `resource` does. Its value is unset at
     * first. The result is a counted resource: `release_resource` takes it back, as
     * `variable_resource` shows it.
     */
    TenonCode (*variable)(TenonCallRecord *record,
                          TenonStr container,
                          TenonStr name,
                          TenonDType dtype,
                          TenonVariable **result);
    /**
     * The variable behind a resource, without a new reference; null for null and for a resource of
     * another kind.
     */
    TenonVariable *(*as_variable)(TenonResource *resource);
    /** The resource of a variable, without a new reference. */
    TenonResource *(*variable_resource)(TenonVariable *variable);
    /** Locks variables for this call, in an order of the host's; duplicates are allowed. */
    TenonCode (*lock_variables)(TenonCallRecord *record,
                                TenonVariable *const *variables,
                                size_t count);
    /**
     * Locks variables for this call together with other calls that share them. The call reads the
     * values; if `update` is not 0, it writes elements of the values in place, at the same time as
     * other calls. Once a variable was locked for such an update, calls that read it outside the
     * lock get a copy of its value. Calls that update one element at the same time use atomic
     * operations, or they lose updates.
     */
    TenonCode (*share_variables)(TenonCallRecord *record,
                                 TenonVariable *const *variables,
                                 size_t count,
                                 uint32_t update);
    /** Unlocks what `lock_variables` or `share_variables` locked. */
    void (*unlock_variables)(TenonCallRecord *record,
                             TenonVariable *const *variables,
                             size_t count);
    /**
     * Shows the value of a locked variable; valid until it is unlocked or assigned.
     * `TENON_FAILED_PRECONDITION` when it has no value.
     */
    TenonCode (*read_variable)(TenonCallRecord *record,
                               TenonVariable *variable,
                               TenonSlot *value);
    /** Returns the value of a locked variable as output `output`, without a copy. */
    TenonCode (*output_variable)(TenonCallRecord *record,
                                 TenonVariable *variable,
                                 uint32_t output);
    /** Gives a variable that is locked exclusively the tensor of input `input`. */
    TenonCode (*assign_variable)(TenonCallRecord *record,
                                 TenonVariable *variable,
                                 uint32_t input);
    /**
     * Shows the value of a variable that is locked exclusively, or shared for an update, for
     * writing in place. Under the exclusive lock it is copied first when a reader holds it.
     */
    TenonCode (*update_variable)(TenonCallRecord *record,
                                 TenonVariable *variable,
                                 TenonSlot *value);
    /**
     * Makes output `output` a reference to the cell of `variable`, which the step keeps to its end.
     * If the variable has no value, a tensor that the output already has becomes its value.
     */
    TenonCode (*output_ref)(TenonCallRecord *record,
                            TenonVariable *variable,
                            uint32_t output);
    /** The variable behind a reference slot; null for another slot. */
    TenonVariable *(*ref_variable)(const TenonSlot *slot);
    /**
     * Returns the value of a variable as output `output`: without a copy, or as a copy if the
     * variable was shared for an update before. The call must not have locked it; the host waits
     * while another call has it locked exclusively. `TENON_FAILED_PRECONDITION` when it has no
     * value; `TENON_CANCELLED` when the step was cancelled while it waited.
     */
    TenonCode (*output_value)(TenonCallRecord *record,
                              TenonVariable *variable,
                              uint32_t output);
};

/* ---------------------------------------------------------------------------------------------- */
/* What a plugin registers: ops, kernels, knobs                                                   */
/* ---------------------------------------------------------------------------------------------- */

/** A shape function: sets the shapes of the outputs, or refuses the inputs. */
typedef TenonCode (*TenonShapeFn)(const TenonHost *host, TenonShapeCall *call);

/**
 * An op. Filled by the registering side; the host copies what it keeps, except `shape`.
 *
 * Arguments and attributes are written as `REGISTER_OP` writes them: `"x: T"`, `"values: N * T"`,
 * `"x: Ref(T)"`, `"components: Tlist"`; `"T: {float, double} = DT_FLOAT"`, `"N: int >= 1"`,
 * `"strides: list(int)"`, `"padding: {'SAME', 'VALID'}"`.
 */
struct TenonOpDef {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Bits of `TENON_OP_FLAG_*`. */
    uint32_t flags;
    /** Name in CamelCase. */
    TenonStr name;
    /** Input arguments. */
    TenonStrs inputs;
    /** Output arguments. */
    TenonStrs outputs;
    /** Attributes. */
    TenonStrs attrs;
    /** One sentence; may be empty. */
    TenonStr summary;
    /** The contract; may be empty. */
    TenonStr description;
    /** Shape function. */
    TenonShapeFn shape;
    /** Where it is registered. */
    TenonSource source;
    /** Growth; may be null. */
    const TenonExtHeader *ext;
};

/* Bits of `TenonOpDef.flags`. */

/** Has state or effects: never folded, merged or dropped. */
#define TENON_OP_FLAG_STATEFUL 1u
/** Swapping the inputs gives the same result. */
#define TENON_OP_FLAG_COMMUTATIVE 2u
/** Adds up any number of inputs of one type. */
#define TENON_OP_FLAG_AGGREGATE 4u
/** May be given a reference that has no value yet. */
#define TENON_OP_FLAG_ALLOWS_UNINITIALIZED_INPUT 8u

/** The element types that a kernel takes for one type attribute. Filled by the registering side. */
struct TenonTypeConstraint {
    /** Name of the attribute. */
    TenonStr attr;
    /** First allowed type. */
    const TenonDType *types;
    /** Number of allowed types, at least 1. */
    size_t count;
};

/**
 * An output that may take over the buffer of an input. Positions of the named arguments. Filled by
 * the registering side.
 */
struct TenonInPlace {
    /** Input argument. */
    uint32_t input;
    /** Output argument. */
    uint32_t output;
};

/** How far a result may be from the exact one. */
typedef uint32_t TenonToleranceKind;

/** Not stated. */
#define TENON_TOLERANCE_UNSPECIFIED ((TenonToleranceKind)0)
/** Equal bit for bit. */
#define TENON_TOLERANCE_EXACT ((TenonToleranceKind)1)
/** Within `ulps` units in the last place. */
#define TENON_TOLERANCE_ULPS ((TenonToleranceKind)2)
/**
 * Within `absolute + relative * |expected|`; for sums, relative to the sum of the absolute terms.
 */
#define TENON_TOLERANCE_ABSOLUTE_RELATIVE ((TenonToleranceKind)3)

/** What two runs on the same inputs share. */
typedef uint32_t TenonDeterminism;

/** Nothing is promised. */
#define TENON_DETERMINISM_NONE ((TenonDeterminism)0)
/** The same bits on the same machine with the same number of threads. */
#define TENON_DETERMINISM_RUN_TO_RUN ((TenonDeterminism)1)
/** The same bits, whatever the machine and the threads. */
#define TENON_DETERMINISM_BITWISE ((TenonDeterminism)2)

/** Numerics contract of a kernel. Filled by the registering side. */
struct TenonNumerics {
    /** Which of the figures below apply. */
    TenonToleranceKind tolerance;
    /** Determinism. */
    TenonDeterminism determinism;
    /** Units in the last place. */
    double ulps;
    /** Absolute part. */
    double absolute;
    /** Relative part. */
    double relative;
    /** Type in which sums are kept; `TENON_INVALID` for the element type itself. */
    TenonDType accumulation;
    /** Zero. */
    uint32_t reserved;
};

/** A kernel. Filled by the registering side; the host copies what it keeps, except `table`. */
struct TenonKernelDef {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Bits of `TENON_KERNEL_DEF_FLAG_*`. */
    uint32_t flags;
    /** Name of the op. */
    TenonStr op;
    /** Device type, such as `CPU`; `DEFAULT` for every type. */
    TenonStr device_type;
    /** Label of the variant; empty for the ordinary kernel. */
    TenonStr label;
    /** Priority: the kernel with the highest number wins. */
    int32_t priority;
    /** Zero. */
    uint32_t reserved;
    /** Type constraints, one per constrained attribute. */
    const TenonTypeConstraint *constraints;
    /** Number of constraints. */
    size_t constraint_count;
    /** Names of arguments that are in host memory, whatever the device. */
    TenonStrs host_memory;
    /** In-place pairs. */
    const TenonInPlace *in_place;
    /** Number of in-place pairs. */
    size_t in_place_count;
    /**
     * Features of the processor that the kernel needs, such as `avx2` or `avx512f`; without them it
     * is never a candidate. The host refuses an unknown name when it loads the plugin, with a list
     * of the known names.
     */
    TenonStrs features;
    /** Numerics contract. */
    TenonNumerics numerics;
    /** Entries. */
    const TenonKernelTable *table;
    /** Where it is registered. */
    TenonSource source;
    /** Growth; may be null. */
    const TenonExtHeader *ext;
};

/* Bits of `TenonKernelDef.flags`. */

/** Never chosen by policy, only when its label is requested. */
#define TENON_KERNEL_DEF_FLAG_ON_REQUEST 1u
/**
 * Computes with gradual underflow: denormal operands and results keep their values instead of
 * becoming zero. For kernels whose results are useful only then; the processor takes longer for
 * each denormal number.
 */
#define TENON_KERNEL_DEF_FLAG_KEEPS_DENORMALS 2u
/**
 * Refuses by itself every shape that the op's shape function refuses. Without this flag, the host
 * runs the shape function before a call whose shapes were not known before the step ran, once for
 * each combination of shapes.
 */
#define TENON_KERNEL_DEF_FLAG_CHECKS_SHAPES 4u

/** A setting that a plugin declares. Filled by the registering side. */
struct TenonKnobDef {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Type of the value. */
    TenonKnobKind kind;
    /** Name within the plugin's scope, in snake_case. */
    TenonStr name;
    /** Default, as text. */
    TenonStr default_value;
    /** One sentence. */
    TenonStr help;
    /** Where it is registered. */
    TenonSource source;
    /** Growth; may be null. */
    const TenonExtHeader *ext;
};

/* ---------------------------------------------------------------------------------------------- */
/* Devices: what a device plugin gives                                                            */
/* ---------------------------------------------------------------------------------------------- */

/** The host's record of a device. Opaque to plugins. */
struct TenonDevice;

/** A plugin's own state for one device. Opaque to the host. */
struct TenonDeviceState;

/** A stream: commands enqueued on it run in order. Opaque to the host. */
struct TenonStream;

/** An event: a point in a stream that other streams wait for. Opaque to the host. */
struct TenonEvent;

/* Bits of `TenonDeviceAttributes.flags`. */

/** Computes in ordinary host memory: `TENON_HOST_MEMORY` is its memory. */
#define TENON_DEVICE_FLAG_HOST_MEMORY 1u
/** `allocate` is a pool of the device's own: the host only accounts. */
#define TENON_DEVICE_FLAG_OWN_POOL 2u
/** Kernels run in order on streams: "returned" means enqueued. */
#define TENON_DEVICE_FLAG_STREAMS 4u

/** One kind of memory of a device. Filled by the plugin. */
struct TenonMemoryInfo {
    /** Kind. */
    TenonMemoryKind kind;
    /** Alignment in bytes of what `allocate` gives: a power of two. */
    uint32_t alignment;
    /** Number of bytes; 0 if it is not known. */
    uint64_t limit;
};

/**
 * Public properties of a device. Filled by the plugin; what it points to lives as long as the
 * device.
 */
struct TenonDeviceAttributes {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Bits of `TENON_DEVICE_FLAG_*`. */
    uint32_t flags;
    /** Model and other descriptions, for people. */
    TenonStr description;
    /** First kind of memory; the first one is the device's ordinary one. */
    const TenonMemoryInfo *memories;
    /** Number of kinds, at least 1. */
    size_t memory_count;
    /** NUMA node; -1 if it is not known. */
    int32_t numa_node;
    /** Bus; 0 if it is not known. */
    int32_t bus_id;
    /**
     * The largest number of streams that one step uses, at least 1. A number above 1 needs events.
     */
    uint32_t stream_count;
    /** Zero. */
    uint32_t reserved;
    /** Growth; may be null. */
    const TenonExtHeader *ext;
};

/**
 * A copy between two places, at least one of them on the device that is asked. Filled by the host.
 */
struct TenonCopyRequest {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** Source address or handle. */
    const void *source;
    /** Destination address or handle. */
    void *destination;
    /** Bytes. */
    uint64_t bytes;
    /** Kind of memory of the source. */
    TenonMemoryKind source_memory;
    /** Kind of memory of the destination. */
    TenonMemoryKind destination_memory;
    /** Device of the source, of this device's type; null for the host's memory. */
    TenonDeviceState *source_device;
    /** Device of the destination, of this device's type; null for the host's memory. */
    TenonDeviceState *destination_device;
    /** Growth; may be null. */
    const TenonExtHeader *ext;
};

/** Called once, from any thread, when all that was enqueued before it is done or has failed. */
typedef void (*TenonNotify)(void *data, TenonCode code);

/**
 * Entries of a device. Filled by the plugin; lives as long as the library. A device without streams
 * leaves the stream and event entries null: its kernels and copies are done when they return.
 * `TenonHost.device_lost` says what may still run on a lost device, and what the host waits for.
 */
struct TenonDeviceTable {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** Closes the device; nothing of it runs when this returns. Required. */
    void (*destroy)(TenonDeviceState *device);
    /** Describes it. Required. */
    void (*attributes)(TenonDeviceState *device, TenonDeviceAttributes *result);
    /**
     * Allocates memory of a kind, aligned to `align` at least; `TENON_RESOURCE_EXHAUSTED` if there
     * is none. Null only for a device with `TENON_DEVICE_FLAG_HOST_MEMORY`, whose memory is the
     * host's.
     */
    TenonCode (*allocate)(TenonDeviceState *device,
                          uint64_t bytes,
                          uint64_t align,
                          TenonMemoryKind memory,
                          TenonStream *stream,
                          void **result,
                          TenonSink *sink);
    /**
     * Frees what `allocate` gave; with a stream: after what is enqueued on it. Required with
     * `allocate`.
     */
    void (*deallocate)(TenonDeviceState *device,
                       void *data,
                       uint64_t bytes,
                       TenonMemoryKind memory,
                       TenonStream *stream);
    /**
     * Whether `copy` supports this pair of places: 1 or 0. `bytes` and addresses are ignored. Null:
     * no pair is supported. For another pair, the host copies through its own memory by pairs that
     * are supported.
     */
    uint32_t (*can_copy)(TenonDeviceState *device, const TenonCopyRequest *request);
    /** Copies; with a stream: enqueues the copy. Host memory stays valid until it is done. */
    TenonCode (*copy)(TenonDeviceState *device,
                      const TenonCopyRequest *request,
                      TenonStream *stream,
                      TenonSink *sink);
    /** Makes a stream. */
    TenonCode (*create_stream)(TenonDeviceState *device,
                               TenonStream **result,
                               TenonSink *sink);
    /** Destroys a stream that has nothing enqueued. */
    void (*destroy_stream)(TenonDeviceState *device, TenonStream *stream);
    /**
     * Waits until all commands that were enqueued on the stream are done; returns its first error.
     * On a lost device, waits only for commands that have begun, and returns `TENON_UNAVAILABLE`.
     * In both cases, no command that was enqueued uses its memory after the return.
     */
    TenonCode (*synchronize_stream)(TenonDeviceState *device,
                                    TenonStream *stream,
                                    TenonSink *sink);
    /** Calls `notify` once all that was enqueued so far is done, without blocking. */
    TenonCode (*notify)(TenonDeviceState *device,
                        TenonStream *stream,
                        TenonNotify notify,
                        void *data);
    /** Makes an event. */
    TenonCode (*create_event)(TenonDeviceState *device,
                              TenonEvent **result,
                              TenonSink *sink);
    /** Destroys an event that no stream waits for. */
    void (*destroy_event)(TenonDeviceState *device, TenonEvent *event);
    /** Records the event: it happens once all that was enqueued so far is done. */
    TenonCode (*record_event)(TenonDeviceState *device,
                              TenonEvent *event,
                              TenonStream *stream);
    /** Makes the stream wait for the event's last recording, without blocking the caller. */
    TenonCode (*wait_event)(TenonDeviceState *device,
                            TenonStream *stream,
                            TenonEvent *event);
    /** Whether the last recording has happened: `TENON_OK`, `TENON_PENDING`, or the error. */
    TenonCode (*query_event)(TenonDeviceState *device, TenonEvent *event);
    /** Waits until the whole device is idle; returns its first error. Null: always idle. */
    TenonCode (*synchronize)(TenonDeviceState *device, TenonSink *sink);
    /** Growth; may be null. */
    const TenonExtHeader *ext;
};

/** A device type. Filled by the registering side; the host copies what it keeps, except `table`. */
struct TenonDeviceTypeDef {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Placement prefers the type with the higher figure. */
    int32_t priority;
    /** Name in capitals, such as `CPU`. */
    TenonStr name;
    /**
     * How many devices of this type are there, without side effects; 0 with the reason in the sink.
     * `context` is the plugin as the runtime uses it, lent for this call. Required.
     */
    uint32_t (*probe)(const TenonHost *host,
                      const TenonPluginContext *context,
                      TenonSink *sink);
    /**
     * Opens device `ordinal`. `context` is as for `probe`, and lives as long as the device;
     * `device` is the host's record, for `TenonHost.device_lost`. Required.
     */
    TenonCode (*create)(const TenonHost *host,
                        const TenonPluginContext *context,
                        uint32_t ordinal,
                        TenonDevice *device,
                        TenonDeviceState **result,
                        TenonSink *sink);
    /** Entries. */
    const TenonDeviceTable *table;
    /** Where it is registered. */
    TenonSource source;
    /** Growth; may be null. */
    const TenonExtHeader *ext;
};

/* ---------------------------------------------------------------------------------------------- */
/* What a device may have beyond its table, as links: the driver's own handles, timers, graphs of commands */
/* ---------------------------------------------------------------------------------------------- */

/** Commands of a device that were recorded to be run again. Opaque to the host. */
struct TenonCommandGraph;

/**
 * Link `TENON_EXT_NATIVE` of a device's table: what the driver calls the device and its streams,
 * for kernels of other plugins. Filled by the plugin; without it there are no such handles.
 */
struct TenonExtNative {
    /** Head, with tag `TENON_EXT_NATIVE`. */
    TenonExtHeader header;
    /**
     * The driver's interface, which says what the handles are: `cuda` is a `CUcontext` and a
     * `CUstream`, and memory of kind `TENON_DEVICE_MEMORY` has `CUdeviceptr` as handles.
     */
    TenonStr api;
    /** The handle of the device. Required. */
    void *(*device)(TenonDeviceState *device);
    /** The handle of a stream. Required. */
    void *(*stream)(TenonDeviceState *device, TenonStream *stream);
};

/** What `TenonExtNativeOf.native` answers. Filled by the host; valid during the call that asks. */
struct TenonNativeHandles {
    /** As `TenonExtNative.api`. */
    TenonStr api;
    /** The driver's handle of the device. */
    void *device;
    /** The driver's handle of the stream; null if none was requested. */
    void *stream;
};

/**
 * Link `TENON_EXT_NATIVE_OF` of the host's table: the driver's handles of a device of any plugin.
 * Filled by the host.
 */
struct TenonExtNativeOf {
    /** Head, with tag `TENON_EXT_NATIVE_OF`. */
    TenonExtHeader header;
    /**
     * The handles of a device, and of one of its streams or null; `TENON_UNIMPLEMENTED` when its
     * plugin gives none. Required.
     */
    TenonCode (*native)(TenonDevice *device,
                        TenonStream *stream,
                        TenonNativeHandles *result);
};

/**
 * Link `TENON_EXT_TIMERS` of a device's table: events that note when they happened. Filled by the
 * plugin; without it traces have the times at which the host was notified.
 */
struct TenonExtTimers {
    /** Head, with tag `TENON_EXT_TIMERS`. */
    TenonExtHeader header;
    /** As `create_event`, for an event that notes the time. Required. */
    TenonCode (*create)(TenonDeviceState *device,
                        TenonEvent **result,
                        TenonSink *sink);
    /** Nanoseconds from one such event to a later one; both have happened. Required. */
    TenonCode (*elapsed_ns)(TenonDeviceState *device,
                            TenonEvent *first,
                            TenonEvent *last,
                            uint64_t *result,
                            TenonSink *sink);
};

/**
 * Link `TENON_EXT_CAPTURE` of a device's table: commands are recorded once, and run again with one
 * call. Filled by the plugin; without it nothing is recorded.
 *
 * Between `begin` and `end`, commands that are enqueued on the stream are recorded instead of run.
 * So are commands on streams that wait for an event recorded on this stream in the meantime; those
 * streams are joined again before `end`. Addresses and arguments are recorded as they are; the host
 * runs a graph only while none of them has changed.
 */
struct TenonExtCapture {
    /** Head, with tag `TENON_EXT_CAPTURE`. */
    TenonExtHeader header;
    /** Begins to record what is enqueued on the stream. Required. */
    TenonCode (*begin)(TenonDeviceState *device,
                       TenonStream *stream,
                       TenonSink *sink);
    /**
     * Ends the recording, also when a command was refused in the meantime; after an error there is
     * no graph, and nothing was run. Required.
     */
    TenonCode (*end)(TenonDeviceState *device,
                     TenonStream *stream,
                     TenonCommandGraph **result,
                     TenonSink *sink);
    /**
     * Enqueues all recorded commands. A graph does not run twice at the same time: the host
     * enqueues it again when it is done, or behind itself on the same stream. Required.
     */
    TenonCode (*launch)(TenonDeviceState *device,
                        TenonCommandGraph *graph,
                        TenonStream *stream,
                        TenonSink *sink);
    /** Destroys a graph that does not run. Required. */
    void (*destroy)(TenonDeviceState *device, TenonCommandGraph *graph);
};

/* ---------------------------------------------------------------------------------------------- */
/* Passes over graphs                                                                             */
/* ---------------------------------------------------------------------------------------------- */

/** One run of a pass over one graph. Opaque to plugins. */
struct TenonPassCall;

/**
 * A tensor of a graph: an output of a node, which has a number. Filled by the side that names it.
 */
struct TenonEdge {
    /** The node. */
    uint32_t node;
    /** Which of its outputs. */
    uint32_t output;
};

/**
 * An attribute that a pass or a gradient gives to a node. Filled by the plugin; the host copies it.
 */
struct TenonPassAttr {
    /** Name. */
    TenonStr name;
    /** Value. */
    TenonAttrView value;
};

/** A node that a pass makes. Filled by the plugin; the host copies it. */
struct TenonPassNode {
    /** Size of this struct. */
    uint32_t struct_size;
    /** The node whose attributes it begins with; `TENON_NO_NODE` for none. */
    uint32_t like;
    /** The op. */
    TenonStr op;
    /** Data inputs, in flat order. */
    const TenonEdge *inputs;
    /** How many. */
    size_t input_count;
    /** Nodes that run before this one. */
    const uint32_t *control;
    /** How many. */
    size_t control_count;
    /**
     * Attributes, which replace those of `like`. Attributes that the inputs determine or that have
     * a default may be left out.
     */
    const TenonPassAttr *attrs;
    /** How many. */
    size_t attr_count;
};

/**
 * The graph as a pass sees it. Filled by the host; every entry is there. Nodes have numbers; one
 * that is not of the graph has no op, no inputs and no outputs. Texts, attributes and constants are
 * valid until the next edit. An entry that returns a `TenonCode` has kept the message when the code
 * is an error: return it, or go on without the edit. Every edit is checked against op, types,
 * shapes and the device's kernels; one that is refused has changed nothing.
 */
struct TenonPassTable {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /**
     * Writes the nodes that run, sources first, into `nodes`, at most `capacity` of them; returns
     * how many there are.
     */
    uint32_t (*nodes)(TenonPassCall *call, uint32_t *nodes, uint32_t capacity);
    /** Name of a node. */
    TenonStr (*name)(TenonPassCall *call, uint32_t node);
    /** Op of a node. */
    TenonStr (*op)(TenonPassCall *call, uint32_t node);
    /** Full name of the device on which a node runs. */
    TenonStr (*device)(TenonPassCall *call, uint32_t node);
    /** Attributes of a node, defaults applied; null if it has none. */
    const TenonAttrs *(*attrs)(TenonPassCall *call, uint32_t node);
    /** Number of data inputs. */
    uint32_t (*input_count)(TenonPassCall *call, uint32_t node);
    /** A data input; `TENON_NO_NODE` as its node when there is no such input. */
    TenonEdge (*input)(TenonPassCall *call, uint32_t node, uint32_t index);
    /** Number of outputs. */
    uint32_t (*output_count)(TenonPassCall *call, uint32_t node);
    /** Element type of a tensor. */
    TenonDType (*dtype)(TenonPassCall *call, TenonEdge tensor);
    /**
     * Shape of a tensor: its rank, or `TENON_UNKNOWN_RANK`; the dimensions into `dims`, at most
     * `capacity`, `TENON_UNKNOWN_DIM` where unknown.
     */
    int32_t (*shape)(TenonPassCall *call,
                     TenonEdge tensor,
                     int64_t *dims,
                     uint32_t capacity);
    /**
     * The value of a tensor that is the same in every step, in host memory; null when it is not
     * known.
     */
    const TenonSlot *(*constant)(TenonPassCall *call, TenonEdge tensor);
    /** How many inputs of nodes read a tensor. */
    uint32_t (*uses)(TenonPassCall *call, TenonEdge tensor);
    /** Whether a tensor is fed: then its node does not make it. */
    uint32_t (*is_fed)(TenonPassCall *call, TenonEdge tensor);
    /** Whether a feed, a fetch or a target names the node. */
    uint32_t (*is_kept)(TenonPassCall *call, uint32_t node);
    /** Whether the node may be replaced: it has no effect, and none of its outputs is fed. */
    uint32_t (*is_rewritable)(TenonPassCall *call, uint32_t node);
    /** Replaces a node by another one of the same name. */
    TenonCode (*replace)(TenonPassCall *call, uint32_t node, const TenonPassNode *made);
    /** Adds a node on the device of `near`; its name is that of `near` with `suffix`. */
    TenonCode (*add)(TenonPassCall *call,
                     uint32_t near,
                     TenonStr suffix,
                     const TenonPassNode *made,
                     uint32_t *result);
    /** Makes the readers of `from` read `to`. */
    TenonCode (*redirect)(TenonPassCall *call, TenonEdge from, TenonEdge to);
    /** Removes a node whose value is that of its input `index`; its readers read the input. */
    TenonCode (*bypass)(TenonPassCall *call, uint32_t node, uint32_t index);
    /** Reports a change of a node. */
    void (*note)(TenonPassCall *call, uint32_t node, TenonStr text);
    /** Keeps a copy of `message` for the error and returns `code`. */
    TenonCode (*fail)(TenonPassCall *call, TenonCode code, TenonStr message);
};

/**
 * A registration: a pass over graphs, link `TENON_EXT_PASS`. Filled by the plugin; the host copies
 * it, except `run`. A pass that returns an error leaves the graph as it was. A host that does not
 * know the link runs graphs without the pass.
 */
struct TenonExtPass {
    /** Head, with tag `TENON_EXT_PASS`. */
    TenonExtHeader header;
    /**
     * Name in snake_case. The bool knob `pass_<name>` of the plugin, if it declares one, switches
     * the pass.
     */
    TenonStr name;
    /** One sentence. */
    TenonStr help;
    /** Runs the pass. */
    TenonCode (*run)(const TenonHost *host,
                     TenonPassCall *call,
                     const TenonPassTable *table);
    /** Where it is registered. */
    TenonSource source;
    /** Not zero: runs when the passes before it have nothing left to do. */
    uint64_t late;
};

/* ---------------------------------------------------------------------------------------------- */
/* Gradients of ops: functions that add nodes to a graph                                          */
/* ---------------------------------------------------------------------------------------------- */

/** One run of the gradient of one node. Opaque to plugins. */
struct TenonGradientCall;

/**
 * A tensor of the graph during one run. Only the host knows what the number means; 0 means that
 * there is none.
 */
typedef uint64_t TenonGraphValue;

#define TENON_GRAPH_VALUE_NONE ((TenonGraphValue)0) /**< No tensor. */

/** The form of a gradient. */
typedef uint32_t TenonGradientKind;

/** No gradient. */
#define TENON_GRADIENT_KIND_NONE ((TenonGradientKind)0)
/** A tensor of the shape of the value that it belongs to. */
#define TENON_GRADIENT_KIND_DENSE ((TenonGradientKind)1)
/**
 * Slices of such a tensor along its first axis; slices with the same index add up, and all others
 * are zero.
 */
#define TENON_GRADIENT_KIND_SLICES ((TenonGradientKind)2)

/** The gradient of a value. Filled by the side that gives it. */
struct TenonGradientParts {
    /** Form. */
    TenonGradientKind kind;
    /** Zero. */
    uint32_t reserved;
    /** The tensor, or the slices, one after the other. */
    TenonGraphValue values;
    /** Of slices: the index of each, a vector of int32 or int64; otherwise none. */
    TenonGraphValue indices;
    /** Of slices: the shape of the whole, a vector of int32 or int64; may be none. */
    TenonGraphValue dense_shape;
};

/** A node that a gradient adds. Filled by the plugin; the host copies it. */
struct TenonGradientNode {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** The op. */
    TenonStr op;
    /** What the name of the node ends with; empty for the name of the op. */
    TenonStr name;
    /** Data inputs, in flat order. */
    const TenonGraphValue *inputs;
    /** How many. */
    size_t input_count;
    /** Values whose nodes run before this one. */
    const TenonGraphValue *control;
    /** How many. */
    size_t control_count;
    /** Attributes. Those that the inputs determine or that have a default may be left out. */
    const TenonPassAttr *attrs;
    /** How many. */
    size_t attr_count;
    /** Names of attributes that are copied from the node whose gradient runs. */
    TenonStrs copied;
};

/**
 * The node whose gradient runs, and the graph that the gradient extends. Filled by the host; every
 * entry is there. Texts and attributes are valid for the run, constants until the next call of
 * `TenonGradientTable.add`. An entry that returns a `TenonCode` has kept the message when the code
 * is an error: return it.
 */
struct TenonGradientTable {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** Name of the node. */
    TenonStr (*name)(TenonGradientCall *call);
    /** Op of the node. */
    TenonStr (*op)(TenonGradientCall *call);
    /** Name of this differentiation: another one of the same graph has another name. */
    TenonStr (*scope)(TenonGradientCall *call);
    /** Attributes of the node, defaults applied. */
    const TenonAttrs *(*attrs)(TenonGradientCall *call);
    /** Number of data inputs. */
    uint32_t (*input_count)(TenonGradientCall *call);
    /** Number of outputs. */
    uint32_t (*output_count)(TenonGradientCall *call);
    /** Value of an input; none when there is no such input. */
    TenonGraphValue (*input)(TenonGradientCall *call, uint32_t index);
    /** Value of an output; none when there is no such output. */
    TenonGraphValue (*output)(TenonGradientCall *call, uint32_t index);
    /** Whether the gradient of an input is wanted: 1 or 0. It need not be made otherwise. */
    uint32_t (*is_wanted)(TenonGradientCall *call, uint32_t input);
    /** Gradient of an output in its own form: none, a tensor, or slices. */
    TenonGradientParts (*gradient)(TenonGradientCall *call, uint32_t output);
    /** Gradient of an output as a tensor: zeros where there is none, and the sum of slices. */
    TenonCode (*dense_gradient)(TenonGradientCall *call,
                                uint32_t output,
                                TenonGraphValue *result);
    /** Element type of a value; `TENON_INVALID` for none. */
    TenonDType (*dtype)(TenonGradientCall *call, TenonGraphValue value);
    /**
     * Shape of a value: its rank, or `TENON_UNKNOWN_RANK`; the dimensions into `dims`, at most
     * `capacity`, `TENON_UNKNOWN_DIM` where unknown.
     */
    int32_t (*shape)(TenonGradientCall *call,
                     TenonGraphValue value,
                     int64_t *dims,
                     uint32_t capacity);
    /** The value when it is the same in every step, in host memory; null when it is not known. */
    const TenonSlot *(*constant)(TenonGradientCall *call, TenonGraphValue value);
    /** Whether two values have the same shape in every step: 1, or 0 when that is not known. */
    uint32_t (*same_shape)(TenonGradientCall *call, TenonGraphValue a, TenonGraphValue b);
    /**
     * Adds a node. The first `capacity` of its outputs are written into `outputs`, and into `count`
     * how many it has. The numbers of a node's outputs follow each other: output `i` has the number
     * of output 0 plus `i`.
     */
    TenonCode (*add)(TenonGradientCall *call,
                     const TenonGradientNode *made,
                     TenonGraphValue *outputs,
                     size_t capacity,
                     size_t *count);
    /** Sets the gradient of an input. An input that is not set has none. */
    TenonCode (*set)(TenonGradientCall *call,
                     uint32_t input,
                     const TenonGradientParts *gradient);
    /** Keeps a copy of `message` for the error and returns `code`. */
    TenonCode (*fail)(TenonGradientCall *call, TenonCode code, TenonStr message);
};

/**
 * A gradient: adds the nodes that compute the gradients of a node's inputs from those of its
 * outputs, and sets them. It must not unwind.
 */
typedef TenonCode (*TenonGradientFn)(const TenonHost *host,
                                     TenonGradientCall *call,
                                     const TenonGradientTable *table);

/**
 * Link `TENON_EXT_GRADIENT` of an op definition: the op's gradient. Filled by the plugin; the host
 * copies it, and the function stays callable as long as the process. Without the link, the gradient
 * of the op is not known. The host refuses it on an op that states `TENON_GRADIENT_NONE`.
 */
struct TenonExtGradient {
    /** Head, with tag `TENON_EXT_GRADIENT`. */
    TenonExtHeader header;
    /** The gradient. */
    TenonGradientFn gradient;
};

/* ---------------------------------------------------------------------------------------------- */
/* The table that a plugin hands to the host                                                      */
/* ---------------------------------------------------------------------------------------------- */

/** The host's transaction into which a plugin registers. Opaque to plugins. */
struct TenonRegistrar;

/**
 * Entries of a registrar. Filled by the host; every entry is there. Definitions are copied, except
 * the tables and shape functions that they point to. Errors in definitions are collected, and
 * reported when the transaction is validated.
 */
struct TenonRegistrarTable {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Zero. */
    uint32_t reserved;
    /** Adds an op. */
    TenonCode (*op)(TenonRegistrar *registrar, const TenonOpDef *op);
    /** Adds a kernel. */
    TenonCode (*kernel)(TenonRegistrar *registrar, const TenonKernelDef *kernel);
    /** Adds a device type. */
    TenonCode (*device_type)(TenonRegistrar *registrar,
                             const TenonDeviceTypeDef *device_type);
    /** Adds a knob. */
    TenonCode (*knob)(TenonRegistrar *registrar, const TenonKnobDef *knob);
    /**
     * Adds a registration of a kind that this table has no entry for; `TENON_UNIMPLEMENTED` when
     * the host does not know its tag (a plugin goes on without it).
     */
    TenonCode (*extension)(TenonRegistrar *registrar, const TenonExtHeader *link);
};

/** A plugin. Filled by the plugin; lives as long as the library. */
struct TenonPluginV1 {
    /** Size of this struct. */
    uint32_t struct_size;
    /** Major number of the ABI it was built for. */
    uint32_t abi_major;
    /** Minor number of the ABI it was built for. */
    uint32_t abi_minor;
    /** Zero. */
    uint32_t reserved;
    /** Name of the plugin's package. */
    TenonStr name;
    /** Version. */
    TenonStr version;
    /** Called once, first. Null: nothing to open. */
    TenonCode (*open)(const TenonHost *host,
                      const TenonPlugin *plugin,
                      TenonSink *sink);
    /** Registers everything. Required. */
    TenonCode (*register_all)(const TenonHost *host,
                              TenonRegistrar *registrar,
                              const TenonRegistrarTable *table,
                              TenonSink *sink);
    /** Growth; may be null. */
    const TenonExtHeader *ext;
};

/**
 * Door 2: what a C or C++ plugin exports as `tenon_plugin_v1`. Null declines the host's version.
 */
typedef const TenonPluginV1 *(*TenonCPluginFn)(uint32_t host_major, uint32_t host_minor);

/* Checks of the layout. */

#if defined(__cplusplus)
#define TENON_STATIC_ASSERT(condition, message) static_assert(condition, message)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define TENON_STATIC_ASSERT(condition, message) _Static_assert(condition, message)
#else
#define TENON_STATIC_ASSERT(condition, message) extern int tenon_unchecked_layout
#endif
#define TENON_SIZE(type, size) \
    TENON_STATIC_ASSERT(sizeof(type) == (size), #type " has another size")
#define TENON_FIELD(type, field, offset) \
    TENON_STATIC_ASSERT(offsetof(type, field) == (offset), #type "." #field " has moved")

TENON_SIZE(TenonStr, 16);
TENON_FIELD(TenonStr, ptr, 0);
TENON_FIELD(TenonStr, len, 8);

TENON_SIZE(TenonStrs, 16);
TENON_FIELD(TenonStrs, ptr, 0);
TENON_FIELD(TenonStrs, len, 8);

TENON_SIZE(TenonDims, 16);
TENON_FIELD(TenonDims, ptr, 0);
TENON_FIELD(TenonDims, len, 8);

TENON_SIZE(TenonRange, 8);
TENON_FIELD(TenonRange, start, 0);
TENON_FIELD(TenonRange, len, 4);

TENON_SIZE(TenonSource, 40);
TENON_FIELD(TenonSource, krate, 0);
TENON_FIELD(TenonSource, file, 16);
TENON_FIELD(TenonSource, line, 32);

TENON_SIZE(TenonExtHeader, 32);
TENON_FIELD(TenonExtHeader, tag, 0);
TENON_FIELD(TenonExtHeader, version, 4);
TENON_FIELD(TenonExtHeader, size, 8);
TENON_FIELD(TenonExtHeader, layout_hash, 16);
TENON_FIELD(TenonExtHeader, next, 24);

TENON_SIZE(TenonExtCost, 48);
TENON_FIELD(TenonExtCost, header, 0);
TENON_FIELD(TenonExtCost, fixed_ns, 32);
TENON_FIELD(TenonExtCost, per_element_ns, 40);

TENON_SIZE(TenonExtCases, 48);
TENON_FIELD(TenonExtCases, header, 0);
TENON_FIELD(TenonExtCases, cases, 32);

TENON_SIZE(TenonExtBench, 80);
TENON_FIELD(TenonExtBench, header, 0);
TENON_FIELD(TenonExtBench, calls, 32);
TENON_FIELD(TenonExtBench, flops, 48);
TENON_FIELD(TenonExtBench, bytes, 64);

TENON_SIZE(TenonFacts, 40);
TENON_FIELD(TenonFacts, flags, 0);
TENON_FIELD(TenonFacts, role, 4);
TENON_FIELD(TenonFacts, value, 8);
TENON_FIELD(TenonFacts, refusal, 12);
TENON_FIELD(TenonFacts, symmetry, 16);
TENON_FIELD(TenonFacts, gradient, 20);
TENON_FIELD(TenonFacts, passed_input, 24);
TENON_FIELD(TenonFacts, passed_output, 28);
TENON_FIELD(TenonFacts, deciding_inputs, 32);

TENON_SIZE(TenonExtFacts, 72);
TENON_FIELD(TenonExtFacts, header, 0);
TENON_FIELD(TenonExtFacts, facts, 32);

TENON_SIZE(TenonExtPass, 120);
TENON_FIELD(TenonExtPass, header, 0);
TENON_FIELD(TenonExtPass, name, 32);
TENON_FIELD(TenonExtPass, help, 48);
TENON_FIELD(TenonExtPass, run, 64);
TENON_FIELD(TenonExtPass, source, 72);
TENON_FIELD(TenonExtPass, late, 112);

TENON_SIZE(TenonExtVariant, 80);
TENON_FIELD(TenonExtVariant, header, 0);
TENON_FIELD(TenonExtVariant, table, 32);
TENON_FIELD(TenonExtVariant, source, 40);

TENON_SIZE(TenonExtNative, 64);
TENON_FIELD(TenonExtNative, header, 0);
TENON_FIELD(TenonExtNative, api, 32);
TENON_FIELD(TenonExtNative, device, 48);
TENON_FIELD(TenonExtNative, stream, 56);

TENON_SIZE(TenonExtNativeOf, 40);
TENON_FIELD(TenonExtNativeOf, header, 0);
TENON_FIELD(TenonExtNativeOf, native, 32);

TENON_SIZE(TenonExtFunctions, 72);
TENON_FIELD(TenonExtFunctions, header, 0);
TENON_FIELD(TenonExtFunctions, find, 32);
TENON_FIELD(TenonExtFunctions, retain, 40);
TENON_FIELD(TenonExtFunctions, release, 48);
TENON_FIELD(TenonExtFunctions, call, 56);
TENON_FIELD(TenonExtFunctions, cancel, 64);

TENON_SIZE(TenonExtGradient, 40);
TENON_FIELD(TenonExtGradient, header, 0);
TENON_FIELD(TenonExtGradient, gradient, 32);

TENON_SIZE(TenonExtHandles, 48);
TENON_FIELD(TenonExtHandles, header, 0);
TENON_FIELD(TenonExtHandles, remove, 32);
TENON_FIELD(TenonExtHandles, has_name, 40);

TENON_SIZE(TenonExtVariants, 48);
TENON_FIELD(TenonExtVariants, header, 0);
TENON_FIELD(TenonExtVariants, encode, 32);
TENON_FIELD(TenonExtVariants, decode, 40);

TENON_SIZE(TenonCollectiveJoin, 48);
TENON_FIELD(TenonCollectiveJoin, struct_size, 0);
TENON_FIELD(TenonCollectiveJoin, kind, 4);
TENON_FIELD(TenonCollectiveJoin, group_key, 8);
TENON_FIELD(TenonCollectiveJoin, group_size, 12);
TENON_FIELD(TenonCollectiveJoin, instance_key, 16);
TENON_FIELD(TenonCollectiveJoin, dtype, 20);
TENON_FIELD(TenonCollectiveJoin, is_source, 24);
TENON_FIELD(TenonCollectiveJoin, rank, 28);
TENON_FIELD(TenonCollectiveJoin, dims, 32);
TENON_FIELD(TenonCollectiveJoin, timeout_ns, 40);

TENON_SIZE(TenonExtCollectives, 72);
TENON_FIELD(TenonExtCollectives, header, 0);
TENON_FIELD(TenonExtCollectives, join, 32);
TENON_FIELD(TenonExtCollectives, send, 40);
TENON_FIELD(TenonExtCollectives, recv, 48);
TENON_FIELD(TenonExtCollectives, abort, 56);
TENON_FIELD(TenonExtCollectives, release, 64);

TENON_SIZE(TenonExtTimers, 48);
TENON_FIELD(TenonExtTimers, header, 0);
TENON_FIELD(TenonExtTimers, create, 32);
TENON_FIELD(TenonExtTimers, elapsed_ns, 40);

TENON_SIZE(TenonExtCapture, 64);
TENON_FIELD(TenonExtCapture, header, 0);
TENON_FIELD(TenonExtCapture, begin, 32);
TENON_FIELD(TenonExtCapture, end, 40);
TENON_FIELD(TenonExtCapture, launch, 48);
TENON_FIELD(TenonExtCapture, destroy, 56);

TENON_SIZE(TenonNativeHandles, 32);
TENON_FIELD(TenonNativeHandles, api, 0);
TENON_FIELD(TenonNativeHandles, device, 16);
TENON_FIELD(TenonNativeHandles, stream, 24);

TENON_SIZE(TenonEdge, 8);
TENON_FIELD(TenonEdge, node, 0);
TENON_FIELD(TenonEdge, output, 4);

TENON_SIZE(TenonPassAttr, 40);
TENON_FIELD(TenonPassAttr, name, 0);
TENON_FIELD(TenonPassAttr, value, 16);

TENON_SIZE(TenonPassNode, 72);
TENON_FIELD(TenonPassNode, struct_size, 0);
TENON_FIELD(TenonPassNode, like, 4);
TENON_FIELD(TenonPassNode, op, 8);
TENON_FIELD(TenonPassNode, inputs, 24);
TENON_FIELD(TenonPassNode, input_count, 32);
TENON_FIELD(TenonPassNode, control, 40);
TENON_FIELD(TenonPassNode, control_count, 48);
TENON_FIELD(TenonPassNode, attrs, 56);
TENON_FIELD(TenonPassNode, attr_count, 64);

TENON_SIZE(TenonPassTable, 176);
TENON_FIELD(TenonPassTable, struct_size, 0);
TENON_FIELD(TenonPassTable, reserved, 4);
TENON_FIELD(TenonPassTable, nodes, 8);
TENON_FIELD(TenonPassTable, name, 16);
TENON_FIELD(TenonPassTable, op, 24);
TENON_FIELD(TenonPassTable, device, 32);
TENON_FIELD(TenonPassTable, attrs, 40);
TENON_FIELD(TenonPassTable, input_count, 48);
TENON_FIELD(TenonPassTable, input, 56);
TENON_FIELD(TenonPassTable, output_count, 64);
TENON_FIELD(TenonPassTable, dtype, 72);
TENON_FIELD(TenonPassTable, shape, 80);
TENON_FIELD(TenonPassTable, constant, 88);
TENON_FIELD(TenonPassTable, uses, 96);
TENON_FIELD(TenonPassTable, is_fed, 104);
TENON_FIELD(TenonPassTable, is_kept, 112);
TENON_FIELD(TenonPassTable, is_rewritable, 120);
TENON_FIELD(TenonPassTable, replace, 128);
TENON_FIELD(TenonPassTable, add, 136);
TENON_FIELD(TenonPassTable, redirect, 144);
TENON_FIELD(TenonPassTable, bypass, 152);
TENON_FIELD(TenonPassTable, note, 160);
TENON_FIELD(TenonPassTable, fail, 168);

TENON_SIZE(TenonGradientParts, 32);
TENON_FIELD(TenonGradientParts, kind, 0);
TENON_FIELD(TenonGradientParts, reserved, 4);
TENON_FIELD(TenonGradientParts, values, 8);
TENON_FIELD(TenonGradientParts, indices, 16);
TENON_FIELD(TenonGradientParts, dense_shape, 24);

TENON_SIZE(TenonGradientNode, 104);
TENON_FIELD(TenonGradientNode, struct_size, 0);
TENON_FIELD(TenonGradientNode, reserved, 4);
TENON_FIELD(TenonGradientNode, op, 8);
TENON_FIELD(TenonGradientNode, name, 24);
TENON_FIELD(TenonGradientNode, inputs, 40);
TENON_FIELD(TenonGradientNode, input_count, 48);
TENON_FIELD(TenonGradientNode, control, 56);
TENON_FIELD(TenonGradientNode, control_count, 64);
TENON_FIELD(TenonGradientNode, attrs, 72);
TENON_FIELD(TenonGradientNode, attr_count, 80);
TENON_FIELD(TenonGradientNode, copied, 88);

TENON_SIZE(TenonGradientTable, 152);
TENON_FIELD(TenonGradientTable, struct_size, 0);
TENON_FIELD(TenonGradientTable, reserved, 4);
TENON_FIELD(TenonGradientTable, name, 8);
TENON_FIELD(TenonGradientTable, op, 16);
TENON_FIELD(TenonGradientTable, scope, 24);
TENON_FIELD(TenonGradientTable, attrs, 32);
TENON_FIELD(TenonGradientTable, input_count, 40);
TENON_FIELD(TenonGradientTable, output_count, 48);
TENON_FIELD(TenonGradientTable, input, 56);
TENON_FIELD(TenonGradientTable, output, 64);
TENON_FIELD(TenonGradientTable, is_wanted, 72);
TENON_FIELD(TenonGradientTable, gradient, 80);
TENON_FIELD(TenonGradientTable, dense_gradient, 88);
TENON_FIELD(TenonGradientTable, dtype, 96);
TENON_FIELD(TenonGradientTable, shape, 104);
TENON_FIELD(TenonGradientTable, constant, 112);
TENON_FIELD(TenonGradientTable, same_shape, 120);
TENON_FIELD(TenonGradientTable, add, 128);
TENON_FIELD(TenonGradientTable, set, 136);
TENON_FIELD(TenonGradientTable, fail, 144);

TENON_SIZE(TenonSlot, 64);
TENON_FIELD(TenonSlot, data, 0);
TENON_FIELD(TenonSlot, dims, 8);
TENON_FIELD(TenonSlot, buffer, 16);
TENON_FIELD(TenonSlot, elements, 24);
TENON_FIELD(TenonSlot, bytes, 32);
TENON_FIELD(TenonSlot, dtype, 40);
TENON_FIELD(TenonSlot, rank, 44);
TENON_FIELD(TenonSlot, memory, 48);
TENON_FIELD(TenonSlot, alias, 52);
TENON_FIELD(TenonSlot, flags, 56);
TENON_FIELD(TenonSlot, reserved, 60);

TENON_SIZE(TenonStringElement, 24);
TENON_FIELD(TenonStringElement, data, 0);
TENON_FIELD(TenonStringElement, len, 8);
TENON_FIELD(TenonStringElement, capacity, 16);

TENON_SIZE(TenonResourceElement, 8);
TENON_FIELD(TenonResourceElement, resource, 0);

TENON_SIZE(TenonVariantElement, 16);
TENON_FIELD(TenonVariantElement, value, 0);
TENON_FIELD(TenonVariantElement, table, 8);

TENON_SIZE(TenonAttrView, 24);
TENON_FIELD(TenonAttrView, kind, 0);
TENON_FIELD(TenonAttrView, is_list, 4);
TENON_FIELD(TenonAttrView, data, 8);
TENON_FIELD(TenonAttrView, len, 16);

TENON_SIZE(TenonShapeView, 24);
TENON_FIELD(TenonShapeView, dims, 0);
TENON_FIELD(TenonShapeView, unknown_rank, 16);

TENON_SIZE(TenonFuncView, 48);
TENON_FIELD(TenonFuncView, name, 0);
TENON_FIELD(TenonFuncView, call, 16);
TENON_FIELD(TenonFuncView, definition, 32);

TENON_SIZE(TenonCreate, 184);
TENON_FIELD(TenonCreate, struct_size, 0);
TENON_FIELD(TenonCreate, input_count, 4);
TENON_FIELD(TenonCreate, output_count, 8);
TENON_FIELD(TenonCreate, reserved, 12);
TENON_FIELD(TenonCreate, attrs, 16);
TENON_FIELD(TenonCreate, op, 24);
TENON_FIELD(TenonCreate, node, 40);
TENON_FIELD(TenonCreate, device, 56);
TENON_FIELD(TenonCreate, device_state, 72);
TENON_FIELD(TenonCreate, input_types, 80);
TENON_FIELD(TenonCreate, output_types, 88);
TENON_FIELD(TenonCreate, input_shapes, 96);
TENON_FIELD(TenonCreate, constants, 104);
TENON_FIELD(TenonCreate, input_args, 112);
TENON_FIELD(TenonCreate, input_ranges, 128);
TENON_FIELD(TenonCreate, output_args, 136);
TENON_FIELD(TenonCreate, output_ranges, 152);
TENON_FIELD(TenonCreate, context, 160);
TENON_FIELD(TenonCreate, sink, 168);
TENON_FIELD(TenonCreate, ext, 176);

TENON_SIZE(TenonStep, 40);
TENON_FIELD(TenonStep, struct_size, 0);
TENON_FIELD(TenonStep, reserved, 4);
TENON_FIELD(TenonStep, step_id, 8);
TENON_FIELD(TenonStep, deadline_ns, 16);
TENON_FIELD(TenonStep, cancelled, 24);
TENON_FIELD(TenonStep, ext, 32);

TENON_SIZE(TenonCall, 128);
TENON_FIELD(TenonCall, struct_size, 0);
TENON_FIELD(TenonCall, input_count, 4);
TENON_FIELD(TenonCall, output_count, 8);
TENON_FIELD(TenonCall, tracing, 12);
TENON_FIELD(TenonCall, inputs, 16);
TENON_FIELD(TenonCall, outputs, 24);
TENON_FIELD(TenonCall, input_args, 32);
TENON_FIELD(TenonCall, output_args, 40);
TENON_FIELD(TenonCall, input_arg_count, 48);
TENON_FIELD(TenonCall, output_arg_count, 52);
TENON_FIELD(TenonCall, record, 56);
TENON_FIELD(TenonCall, services, 64);
TENON_FIELD(TenonCall, step, 72);
TENON_FIELD(TenonCall, device, 80);
TENON_FIELD(TenonCall, device_state, 88);
TENON_FIELD(TenonCall, stream, 96);
TENON_FIELD(TenonCall, frame, 104);
TENON_FIELD(TenonCall, iteration, 112);
TENON_FIELD(TenonCall, ext, 120);

TENON_SIZE(TenonCallServices, 120);
TENON_FIELD(TenonCallServices, struct_size, 0);
TENON_FIELD(TenonCallServices, reserved, 4);
TENON_FIELD(TenonCallServices, fail, 8);
TENON_FIELD(TenonCallServices, allocate, 16);
TENON_FIELD(TenonCallServices, forward, 24);
TENON_FIELD(TenonCallServices, share, 32);
TENON_FIELD(TenonCallServices, scratch, 40);
TENON_FIELD(TenonCallServices, on_cancel, 48);
TENON_FIELD(TenonCallServices, off_cancel, 56);
TENON_FIELD(TenonCallServices, output_kept, 64);
TENON_FIELD(TenonCallServices, complete, 72);
TENON_FIELD(TenonCallServices, parallel_for, 80);
TENON_FIELD(TenonCallServices, parallelism, 88);
TENON_FIELD(TenonCallServices, trace, 96);
TENON_FIELD(TenonCallServices, now_ns, 104);
TENON_FIELD(TenonCallServices, node, 112);

TENON_SIZE(TenonKernelTable, 72);
TENON_FIELD(TenonKernelTable, struct_size, 0);
TENON_FIELD(TenonKernelTable, flags, 4);
TENON_FIELD(TenonKernelTable, create, 8);
TENON_FIELD(TenonKernelTable, compute, 16);
TENON_FIELD(TenonKernelTable, destroy, 24);
TENON_FIELD(TenonKernelTable, prepack, 32);
TENON_FIELD(TenonKernelTable, attach_packed, 40);
TENON_FIELD(TenonKernelTable, release_packed, 48);
TENON_FIELD(TenonKernelTable, supports, 56);
TENON_FIELD(TenonKernelTable, ext, 64);

TENON_SIZE(TenonOpDef, 160);
TENON_FIELD(TenonOpDef, struct_size, 0);
TENON_FIELD(TenonOpDef, flags, 4);
TENON_FIELD(TenonOpDef, name, 8);
TENON_FIELD(TenonOpDef, inputs, 24);
TENON_FIELD(TenonOpDef, outputs, 40);
TENON_FIELD(TenonOpDef, attrs, 56);
TENON_FIELD(TenonOpDef, summary, 72);
TENON_FIELD(TenonOpDef, description, 88);
TENON_FIELD(TenonOpDef, shape, 104);
TENON_FIELD(TenonOpDef, source, 112);
TENON_FIELD(TenonOpDef, ext, 152);

TENON_SIZE(TenonTypeConstraint, 32);
TENON_FIELD(TenonTypeConstraint, attr, 0);
TENON_FIELD(TenonTypeConstraint, types, 16);
TENON_FIELD(TenonTypeConstraint, count, 24);

TENON_SIZE(TenonInPlace, 8);
TENON_FIELD(TenonInPlace, input, 0);
TENON_FIELD(TenonInPlace, output, 4);

TENON_SIZE(TenonNumerics, 40);
TENON_FIELD(TenonNumerics, tolerance, 0);
TENON_FIELD(TenonNumerics, determinism, 4);
TENON_FIELD(TenonNumerics, ulps, 8);
TENON_FIELD(TenonNumerics, absolute, 16);
TENON_FIELD(TenonNumerics, relative, 24);
TENON_FIELD(TenonNumerics, accumulation, 32);
TENON_FIELD(TenonNumerics, reserved, 36);

TENON_SIZE(TenonKernelDef, 224);
TENON_FIELD(TenonKernelDef, struct_size, 0);
TENON_FIELD(TenonKernelDef, flags, 4);
TENON_FIELD(TenonKernelDef, op, 8);
TENON_FIELD(TenonKernelDef, device_type, 24);
TENON_FIELD(TenonKernelDef, label, 40);
TENON_FIELD(TenonKernelDef, priority, 56);
TENON_FIELD(TenonKernelDef, reserved, 60);
TENON_FIELD(TenonKernelDef, constraints, 64);
TENON_FIELD(TenonKernelDef, constraint_count, 72);
TENON_FIELD(TenonKernelDef, host_memory, 80);
TENON_FIELD(TenonKernelDef, in_place, 96);
TENON_FIELD(TenonKernelDef, in_place_count, 104);
TENON_FIELD(TenonKernelDef, features, 112);
TENON_FIELD(TenonKernelDef, numerics, 128);
TENON_FIELD(TenonKernelDef, table, 168);
TENON_FIELD(TenonKernelDef, source, 176);
TENON_FIELD(TenonKernelDef, ext, 216);

TENON_SIZE(TenonKnobDef, 104);
TENON_FIELD(TenonKnobDef, struct_size, 0);
TENON_FIELD(TenonKnobDef, kind, 4);
TENON_FIELD(TenonKnobDef, name, 8);
TENON_FIELD(TenonKnobDef, default_value, 24);
TENON_FIELD(TenonKnobDef, help, 40);
TENON_FIELD(TenonKnobDef, source, 56);
TENON_FIELD(TenonKnobDef, ext, 96);

TENON_SIZE(TenonKnobValue, 40);
TENON_FIELD(TenonKnobValue, kind, 0);
TENON_FIELD(TenonKnobValue, boolean, 4);
TENON_FIELD(TenonKnobValue, int_value, 8);
TENON_FIELD(TenonKnobValue, float_value, 16);
TENON_FIELD(TenonKnobValue, text, 24);

TENON_SIZE(TenonHost, 160);
TENON_FIELD(TenonHost, struct_size, 0);
TENON_FIELD(TenonHost, abi_major, 4);
TENON_FIELD(TenonHost, abi_minor, 8);
TENON_FIELD(TenonHost, reserved, 12);
TENON_FIELD(TenonHost, report, 16);
TENON_FIELD(TenonHost, log, 24);
TENON_FIELD(TenonHost, attr, 32);
TENON_FIELD(TenonHost, knob, 40);
TENON_FIELD(TenonHost, retain_context, 48);
TENON_FIELD(TenonHost, release_context, 56);
TENON_FIELD(TenonHost, path, 64);
TENON_FIELD(TenonHost, allocate, 72);
TENON_FIELD(TenonHost, deallocate, 80);
TENON_FIELD(TenonHost, now_ns, 88);
TENON_FIELD(TenonHost, keep, 96);
TENON_FIELD(TenonHost, view, 104);
TENON_FIELD(TenonHost, release, 112);
TENON_FIELD(TenonHost, device_lost, 120);
TENON_FIELD(TenonHost, strings, 128);
TENON_FIELD(TenonHost, shapes, 136);
TENON_FIELD(TenonHost, state, 144);
TENON_FIELD(TenonHost, ext, 152);

TENON_SIZE(TenonShapeTable, 160);
TENON_FIELD(TenonShapeTable, struct_size, 0);
TENON_FIELD(TenonShapeTable, reserved, 4);
TENON_FIELD(TenonShapeTable, attrs, 8);
TENON_FIELD(TenonShapeTable, input_count, 16);
TENON_FIELD(TenonShapeTable, output_count, 24);
TENON_FIELD(TenonShapeTable, input, 32);
TENON_FIELD(TenonShapeTable, constant, 40);
TENON_FIELD(TenonShapeTable, constant_as_shape, 48);
TENON_FIELD(TenonShapeTable, rank, 56);
TENON_FIELD(TenonShapeTable, dim, 64);
TENON_FIELD(TenonShapeTable, value, 72);
TENON_FIELD(TenonShapeTable, make_dim, 80);
TENON_FIELD(TenonShapeTable, make_shape, 88);
TENON_FIELD(TenonShapeTable, unknown_shape, 96);
TENON_FIELD(TenonShapeTable, merge, 104);
TENON_FIELD(TenonShapeTable, merge_dim, 112);
TENON_FIELD(TenonShapeTable, with_rank, 120);
TENON_FIELD(TenonShapeTable, set_output, 128);
TENON_FIELD(TenonShapeTable, input_handle, 136);
TENON_FIELD(TenonShapeTable, add_output_handle, 144);
TENON_FIELD(TenonShapeTable, fail, 152);

TENON_SIZE(TenonStringTable, 32);
TENON_FIELD(TenonStringTable, struct_size, 0);
TENON_FIELD(TenonStringTable, reserved, 4);
TENON_FIELD(TenonStringTable, set, 8);
TENON_FIELD(TenonStringTable, reserve, 16);
TENON_FIELD(TenonStringTable, destroy, 24);

TENON_SIZE(TenonResourceType, 40);
TENON_FIELD(TenonResourceType, struct_size, 0);
TENON_FIELD(TenonResourceType, reserved, 4);
TENON_FIELD(TenonResourceType, name, 8);
TENON_FIELD(TenonResourceType, destroy, 24);
TENON_FIELD(TenonResourceType, ext, 32);

TENON_SIZE(TenonVariantTable, 88);
TENON_FIELD(TenonVariantTable, struct_size, 0);
TENON_FIELD(TenonVariantTable, reserved, 4);
TENON_FIELD(TenonVariantTable, type_name, 8);
TENON_FIELD(TenonVariantTable, clone, 24);
TENON_FIELD(TenonVariantTable, destroy, 32);
TENON_FIELD(TenonVariantTable, encode, 40);
TENON_FIELD(TenonVariantTable, decode, 48);
TENON_FIELD(TenonVariantTable, copy_to_device, 56);
TENON_FIELD(TenonVariantTable, zeros_like, 64);
TENON_FIELD(TenonVariantTable, add, 72);
TENON_FIELD(TenonVariantTable, ext, 80);

TENON_SIZE(TenonStateTable, 152);
TENON_FIELD(TenonStateTable, struct_size, 0);
TENON_FIELD(TenonStateTable, reserved, 4);
TENON_FIELD(TenonStateTable, resource, 8);
TENON_FIELD(TenonStateTable, resource_value, 16);
TENON_FIELD(TenonStateTable, retain_resource, 24);
TENON_FIELD(TenonStateTable, release_resource, 32);
TENON_FIELD(TenonStateTable, remove_resource, 40);
TENON_FIELD(TenonStateTable, variable, 48);
TENON_FIELD(TenonStateTable, as_variable, 56);
TENON_FIELD(TenonStateTable, variable_resource, 64);
TENON_FIELD(TenonStateTable, lock_variables, 72);
TENON_FIELD(TenonStateTable, share_variables, 80);
TENON_FIELD(TenonStateTable, unlock_variables, 88);
TENON_FIELD(TenonStateTable, read_variable, 96);
TENON_FIELD(TenonStateTable, output_variable, 104);
TENON_FIELD(TenonStateTable, assign_variable, 112);
TENON_FIELD(TenonStateTable, update_variable, 120);
TENON_FIELD(TenonStateTable, output_ref, 128);
TENON_FIELD(TenonStateTable, ref_variable, 136);
TENON_FIELD(TenonStateTable, output_value, 144);

TENON_SIZE(TenonMemoryInfo, 16);
TENON_FIELD(TenonMemoryInfo, kind, 0);
TENON_FIELD(TenonMemoryInfo, alignment, 4);
TENON_FIELD(TenonMemoryInfo, limit, 8);

TENON_SIZE(TenonDeviceAttributes, 64);
TENON_FIELD(TenonDeviceAttributes, struct_size, 0);
TENON_FIELD(TenonDeviceAttributes, flags, 4);
TENON_FIELD(TenonDeviceAttributes, description, 8);
TENON_FIELD(TenonDeviceAttributes, memories, 24);
TENON_FIELD(TenonDeviceAttributes, memory_count, 32);
TENON_FIELD(TenonDeviceAttributes, numa_node, 40);
TENON_FIELD(TenonDeviceAttributes, bus_id, 44);
TENON_FIELD(TenonDeviceAttributes, stream_count, 48);
TENON_FIELD(TenonDeviceAttributes, reserved, 52);
TENON_FIELD(TenonDeviceAttributes, ext, 56);

TENON_SIZE(TenonCopyRequest, 64);
TENON_FIELD(TenonCopyRequest, struct_size, 0);
TENON_FIELD(TenonCopyRequest, reserved, 4);
TENON_FIELD(TenonCopyRequest, source, 8);
TENON_FIELD(TenonCopyRequest, destination, 16);
TENON_FIELD(TenonCopyRequest, bytes, 24);
TENON_FIELD(TenonCopyRequest, source_memory, 32);
TENON_FIELD(TenonCopyRequest, destination_memory, 36);
TENON_FIELD(TenonCopyRequest, source_device, 40);
TENON_FIELD(TenonCopyRequest, destination_device, 48);
TENON_FIELD(TenonCopyRequest, ext, 56);

TENON_SIZE(TenonDeviceTable, 144);
TENON_FIELD(TenonDeviceTable, struct_size, 0);
TENON_FIELD(TenonDeviceTable, reserved, 4);
TENON_FIELD(TenonDeviceTable, destroy, 8);
TENON_FIELD(TenonDeviceTable, attributes, 16);
TENON_FIELD(TenonDeviceTable, allocate, 24);
TENON_FIELD(TenonDeviceTable, deallocate, 32);
TENON_FIELD(TenonDeviceTable, can_copy, 40);
TENON_FIELD(TenonDeviceTable, copy, 48);
TENON_FIELD(TenonDeviceTable, create_stream, 56);
TENON_FIELD(TenonDeviceTable, destroy_stream, 64);
TENON_FIELD(TenonDeviceTable, synchronize_stream, 72);
TENON_FIELD(TenonDeviceTable, notify, 80);
TENON_FIELD(TenonDeviceTable, create_event, 88);
TENON_FIELD(TenonDeviceTable, destroy_event, 96);
TENON_FIELD(TenonDeviceTable, record_event, 104);
TENON_FIELD(TenonDeviceTable, wait_event, 112);
TENON_FIELD(TenonDeviceTable, query_event, 120);
TENON_FIELD(TenonDeviceTable, synchronize, 128);
TENON_FIELD(TenonDeviceTable, ext, 136);

TENON_SIZE(TenonDeviceTypeDef, 96);
TENON_FIELD(TenonDeviceTypeDef, struct_size, 0);
TENON_FIELD(TenonDeviceTypeDef, priority, 4);
TENON_FIELD(TenonDeviceTypeDef, name, 8);
TENON_FIELD(TenonDeviceTypeDef, probe, 24);
TENON_FIELD(TenonDeviceTypeDef, create, 32);
TENON_FIELD(TenonDeviceTypeDef, table, 40);
TENON_FIELD(TenonDeviceTypeDef, source, 48);
TENON_FIELD(TenonDeviceTypeDef, ext, 88);

TENON_SIZE(TenonRegistrarTable, 48);
TENON_FIELD(TenonRegistrarTable, struct_size, 0);
TENON_FIELD(TenonRegistrarTable, reserved, 4);
TENON_FIELD(TenonRegistrarTable, op, 8);
TENON_FIELD(TenonRegistrarTable, kernel, 16);
TENON_FIELD(TenonRegistrarTable, device_type, 24);
TENON_FIELD(TenonRegistrarTable, knob, 32);
TENON_FIELD(TenonRegistrarTable, extension, 40);

TENON_SIZE(TenonPluginV1, 72);
TENON_FIELD(TenonPluginV1, struct_size, 0);
TENON_FIELD(TenonPluginV1, abi_major, 4);
TENON_FIELD(TenonPluginV1, abi_minor, 8);
TENON_FIELD(TenonPluginV1, reserved, 12);
TENON_FIELD(TenonPluginV1, name, 16);
TENON_FIELD(TenonPluginV1, version, 32);
TENON_FIELD(TenonPluginV1, open, 48);
TENON_FIELD(TenonPluginV1, register_all, 56);
TENON_FIELD(TenonPluginV1, ext, 64);

#undef TENON_SIZE
#undef TENON_FIELD
#undef TENON_STATIC_ASSERT

/** Initialiser of the header of a `TenonExtCost`, before the link `next` (or null). */
#define TENON_EXT_COST_HEADER(next) \
    { 6u, 1u, sizeof(TenonExtCost), UINT64_C(0x448917e9a54659a2), (next) }

/** Initialiser of the header of a `TenonExtCases`, before the link `next` (or null). */
#define TENON_EXT_CASES_HEADER(next) \
    { 5u, 1u, sizeof(TenonExtCases), UINT64_C(0x4f1dab5598ad75a7), (next) }

/** Initialiser of the header of a `TenonExtPass`, before the link `next` (or null). */
#define TENON_EXT_PASS_HEADER(next) \
    { 2u, 1u, sizeof(TenonExtPass), UINT64_C(0x9342396182d658e8), (next) }

/** Initialiser of the header of a `TenonExtNative`, before the link `next` (or null). */
#define TENON_EXT_NATIVE_HEADER(next) \
    { 7u, 1u, sizeof(TenonExtNative), UINT64_C(0xe53e44cd164586a2), (next) }

/** Initialiser of the header of a `TenonExtNativeOf`, before the link `next` (or null). */
#define TENON_EXT_NATIVEOF_HEADER(next) \
    { 8u, 1u, sizeof(TenonExtNativeOf), UINT64_C(0x955b069d114c2519), (next) }

/** Initialiser of the header of a `TenonExtTimers`, before the link `next` (or null). */
#define TENON_EXT_TIMERS_HEADER(next) \
    { 9u, 1u, sizeof(TenonExtTimers), UINT64_C(0xbffca8029ece101e), (next) }

/** Initialiser of the header of a `TenonExtCapture`, before the link `next` (or null). */
#define TENON_EXT_CAPTURE_HEADER(next) \
    { 10u, 1u, sizeof(TenonExtCapture), UINT64_C(0x605c6a2adf16baf7), (next) }

/** Initialiser of the header of a `TenonExtBench`, before the link `next` (or null). */
#define TENON_EXT_BENCH_HEADER(next) \
    { 11u, 1u, sizeof(TenonExtBench), UINT64_C(0x309a5e749584d10c), (next) }

/** Initialiser of the header of a `TenonExtFacts`, before the link `next` (or null). */
#define TENON_EXT_FACTS_HEADER(next) \
    { 12u, 1u, sizeof(TenonExtFacts), UINT64_C(0x379d1189573418dd), (next) }

/** Initialiser of the header of a `TenonExtFunctions`, before the link `next` (or null). */
#define TENON_EXT_FUNCTIONS_HEADER(next) \
    { 14u, 1u, sizeof(TenonExtFunctions), UINT64_C(0x5cf7e087f7d7d039), (next) }

/** Initialiser of the header of a `TenonExtHandles`, before the link `next` (or null). */
#define TENON_EXT_HANDLES_HEADER(next) \
    { 15u, 1u, sizeof(TenonExtHandles), UINT64_C(0x3d414dd4dfbbe0e2), (next) }

/** Initialiser of the header of a `TenonExtVariants`, before the link `next` (or null). */
#define TENON_EXT_VARIANTS_HEADER(next) \
    { 17u, 1u, sizeof(TenonExtVariants), UINT64_C(0x792f7af7c4be70c0), (next) }

/** Initialiser of the header of a `TenonExtGradient`, before the link `next` (or null). */
#define TENON_EXT_GRADIENT_HEADER(next) \
    { 1u, 1u, sizeof(TenonExtGradient), UINT64_C(0x46e1bf5ce65d01a8), (next) }

/** Initialiser of the header of a `TenonExtCollectives`, before the link `next` (or null). */
#define TENON_EXT_COLLECTIVES_HEADER(next) \
    { 16u, 1u, sizeof(TenonExtCollectives), UINT64_C(0x673a55cf14885e63), (next) }

/** Initialiser of the header of a `TenonExtVariant`, before the link `next` (or null). */
#define TENON_EXT_VARIANT_HEADER(next) \
    { 13u, 1u, sizeof(TenonExtVariant), UINT64_C(0x4fda4e76d0c27cc3), (next) }

/* ---------------------------------------------------------------------------------------------- */
/* Conveniences                                                                                   */
/* ---------------------------------------------------------------------------------------------- */

/**
 * Whether a plugin compiled with this header can serve a host of that version. Before 1.0 only an
 * equal one; from 1.0 on every one with the same major number.
 */
#define TENON_ABI_ACCEPTS(host_major, host_minor) \
    ((host_major) == TENON_ABI_MAJOR && (TENON_ABI_MAJOR != 0u || (host_minor) == TENON_ABI_MINOR))

/** Exports a function from the library. */
#if defined(_WIN32)
#define TENON_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define TENON_EXPORT __attribute__((visibility("default")))
#else
#define TENON_EXPORT
#endif

/** Device type of a kernel that serves devices of every type. */
#define TENON_DEFAULT_DEVICE "DEFAULT"

/** What the plugin exports; null declines the host's version. Defined by the plugin. */
TENON_EXPORT const TenonPluginV1 *tenon_plugin_v1(uint32_t host_major, uint32_t host_minor);

/** Initialiser of a TenonStr from a string literal, for tables in static memory. */
#define TENON_STR(literal) { (const uint8_t *)("" literal), sizeof("" literal) - 1 }

/** A string that ends in a zero byte, as TenonStr. It is borrowed, not copied. */
static inline TenonStr tenon_str(const char *text)
{
    TenonStr result;
    result.ptr = (const uint8_t *)text;
    result.len = text == NULL ? 0 : strlen(text);
    return result;
}

/**
 * The link with this tag that is at least `min_size` bytes long; null when there is none. `chain` is
 * the `ext` of a table and may be null.
 */
static inline const TenonExtHeader *tenon_find_ext(const TenonExtHeader *chain, uint32_t tag,
                                                   size_t min_size)
{
    uint32_t followed;
    for (followed = 0; chain != NULL && followed < TENON_MAX_LINKS; followed++) {
        if (chain->tag == tag && chain->size >= min_size) {
            return chain;
        }
        chain = chain->next;
    }
    return NULL;
}

/** The resource in element `at` of a slot, without a new reference; null when the element has none. */
static inline TenonResource *tenon_resource_at(const TenonSlot *slot, uint64_t at)
{
    if (slot->dtype != TENON_RESOURCE || at >= slot->elements || slot->data == NULL) {
        return NULL;
    }
    return ((const TenonResourceElement *)slot->data)[at].resource;
}

/** The value in element `at` of a slot; null when the element has no value of this type. */
static inline void *tenon_variant_at(const TenonSlot *slot, uint64_t at,
                                     const TenonVariantTable *table)
{
    const TenonVariantElement *elements = (const TenonVariantElement *)slot->data;
    if (slot->dtype != TENON_VARIANT || at >= slot->elements || elements == NULL) {
        return NULL;
    }
    return elements[at].table == table ? elements[at].value : NULL;
}

/**
 * Defines `id`, a link with the cases of an op, each a TENON_STR in the grammar of TenonExtCases. At
 * file scope; the op's `ext` is the address of its `header`, and the op's line of the manifest repeats
 * the texts (the word `cases` of tenon_plugin.h's TENON_OP does all of it):
 *
 *     TENON_CASES(my_cases, TENON_STR("one; x: [1]"), TENON_STR("any; x: [n]"));
 */
#define TENON_CASES(id, ...) \
    static const TenonStr id##_texts[] = { __VA_ARGS__ }; \
    static const TenonExtCases id = { \
        TENON_EXT_CASES_HEADER(NULL), { id##_texts, sizeof(id##_texts) / sizeof(id##_texts[0]) } \
    }

/**
 * Defines `id`, a link with the calls of an op that are worth measuring, each a TENON_STR in the grammar of
 * TenonExtBench, and formulas of the operations and bytes of a call ("" if they are not known). `next_link` is NULL,
 * or the header of another link of the op. At file scope; the op's `ext` is the address of its `header`:
 *
 *     TENON_BENCH(my_bench, &my_cases.header, "4 * x", "", TENON_STR("rows; n in {64, 4096}; x: [n, 768]"));
 */
#define TENON_BENCH(id, next_link, flops_text, bytes_text, ...) \
    static const TenonStr id##_calls[] = { __VA_ARGS__ }; \
    static const TenonExtBench id = { \
        TENON_EXT_BENCH_HEADER(next_link), { id##_calls, sizeof(id##_calls) / sizeof(id##_calls[0]) }, \
        TENON_STR(flops_text), TENON_STR(bytes_text) \
    }

/**
 * Defines `id`, a link with the facts of an op, each a field of TenonFacts. `next_link` is NULL, or the header of another
 * link of the op. At file scope; the op's `ext` is the address of its `header` (the word `facts` of tenon_plugin.h's
 * TENON_OP does all of it):
 *
 *     TENON_FACTS(my_facts, NULL, .flags = TENON_FACT_ELEMENTWISE, .refusal = TENON_REFUSES_NOTHING);
 */
#define TENON_FACTS(id, next_link, ...) \
    static const TenonExtFacts id = { TENON_EXT_FACTS_HEADER(next_link), { __VA_ARGS__ } }

#if defined(__GNUC__)
/** Whether the step of this call is cancelled, or its deadline has passed. A long computation asks from time to time. */
static inline int tenon_cancelled(const TenonCall *call)
{
    const TenonStep *step = call->step;
    return __atomic_load_n(step->cancelled, __ATOMIC_RELAXED) != 0
        || (step->deadline_ns != TENON_NO_DEADLINE && call->services->now_ns() >= step->deadline_ns);
}
#endif

/*
 * TENON_MANIFEST("{...}") puts one record, a line of JSON, into the library's manifest, which the host
 * reads before it runs anything of the library. At file scope, any number of them on a line of source:
 *
 *     TENON_MANIFEST("{\"...\": \"...\"}");
 *
 * After loading, the host compares the manifest with what was registered; a difference is an error.
 */
#if defined(__has_attribute)
#if __has_attribute(retain)
#define TENON_RETAIN , retain
#endif
#endif
#ifndef TENON_RETAIN
#define TENON_RETAIN
#endif
#if defined(__APPLE__)
#define TENON_MANIFEST_SECTION "__DATA,__tenon"
#elif defined(_WIN32)
#define TENON_MANIFEST_SECTION ".tenon"
#else
#define TENON_MANIFEST_SECTION "tenon_manifest"
#endif
#define TENON_JOIN_(a, b) a##b
#define TENON_JOIN(a, b) TENON_JOIN_(a, b)
#if defined(__GNUC__)
#define TENON_IN_MANIFEST __attribute__((section(TENON_MANIFEST_SECTION), used TENON_RETAIN, aligned(1)))
#define TENON_MANIFEST(json) TENON_RECORD(__COUNTER__, json)
/** As TENON_MANIFEST, under a number that no other record of the file has. */
#define TENON_RECORD(number, json) \
    static const char TENON_JOIN(tenon_manifest_, number)[] TENON_IN_MANIFEST = json "\n"
#endif

#ifdef __cplusplus
}
#endif

#endif /* TENON_H */
