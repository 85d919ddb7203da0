/* The part of TensorFlow's C API that libtenon_tensorflow has: the same names, layouts and meanings.
 *
 * A program that includes TensorFlow's own headers links the library too; this header is for those who have none. What it
 * declares is what the library exports, as a test makes sure.
 *
 * - A function sets the status that it takes; a caller that passes none does not learn of errors.
 * - What a function makes by `New`, `Allocate` or as a result is deleted by the caller, by the matching `Delete`.
 * - A graph and a session may be used by several threads at once, other handles by one at a time.
 * - Texts end with a zero byte.
 */
#ifndef TENON_TENSORFLOW_H_
#define TENON_TENSORFLOW_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Codes of statuses. */
typedef enum TF_Code {
  TF_OK = 0, TF_CANCELLED = 1, TF_UNKNOWN = 2, TF_INVALID_ARGUMENT = 3, TF_DEADLINE_EXCEEDED = 4,
  TF_NOT_FOUND = 5, TF_ALREADY_EXISTS = 6, TF_PERMISSION_DENIED = 7, TF_RESOURCE_EXHAUSTED = 8,
  TF_FAILED_PRECONDITION = 9, TF_ABORTED = 10, TF_OUT_OF_RANGE = 11, TF_UNIMPLEMENTED = 12,
  TF_INTERNAL = 13, TF_UNAVAILABLE = 14, TF_DATA_LOSS = 15, TF_UNAUTHENTICATED = 16
} TF_Code;

/* Element types, numbered as in the messages. */
typedef enum TF_DataType {
  TF_FLOAT = 1, TF_DOUBLE = 2, TF_INT32 = 3, TF_UINT8 = 4, TF_INT16 = 5, TF_INT8 = 6,
  TF_STRING = 7, TF_COMPLEX64 = 8, TF_COMPLEX = 8, TF_INT64 = 9, TF_BOOL = 10, TF_QINT8 = 11,
  TF_QUINT8 = 12, TF_QINT32 = 13, TF_BFLOAT16 = 14, TF_QINT16 = 15, TF_QUINT16 = 16,
  TF_UINT16 = 17, TF_COMPLEX128 = 18, TF_HALF = 19, TF_RESOURCE = 20, TF_VARIANT = 21,
  TF_UINT32 = 22, TF_UINT64 = 23, TF_FLOAT8_E5M2 = 24, TF_FLOAT8_E4M3FN = 25,
  TF_FLOAT8_E4M3FNUZ = 26, TF_FLOAT8_E4M3B11FNUZ = 27, TF_FLOAT8_E5M2FNUZ = 28, TF_INT4 = 29,
  TF_UINT4 = 30, TF_INT2 = 31, TF_UINT2 = 32, TF_FLOAT4_E2M1FN = 33
} TF_DataType;

/* Kinds of attributes. */
typedef enum TF_AttrType {
  TF_ATTR_STRING = 0, TF_ATTR_INT = 1, TF_ATTR_FLOAT = 2, TF_ATTR_BOOL = 3, TF_ATTR_TYPE = 4,
  TF_ATTR_SHAPE = 5, TF_ATTR_TENSOR = 6, TF_ATTR_PLACEHOLDER = 7, TF_ATTR_FUNC = 8
} TF_AttrType;

/* Handles. */
typedef struct TF_Status TF_Status;
typedef struct TF_Tensor TF_Tensor;
typedef struct TF_Graph TF_Graph;
typedef struct TF_Operation TF_Operation;
typedef struct TF_OperationDescription TF_OperationDescription;
typedef struct TF_ImportGraphDefOptions TF_ImportGraphDefOptions;
typedef struct TF_ImportGraphDefResults TF_ImportGraphDefResults;
typedef struct TF_Function TF_Function;
typedef struct TF_FunctionOptions TF_FunctionOptions;
typedef struct TF_SessionOptions TF_SessionOptions;
typedef struct TF_Session TF_Session;
typedef struct TF_DeviceList TF_DeviceList;
typedef struct TF_Library TF_Library;
typedef struct TF_Server TF_Server;

/* Bytes, and what frees them: null where the caller does. */
typedef struct TF_Buffer {
  const void* data;
  size_t length;
  void (*data_deallocator)(void* data, size_t length);
} TF_Buffer;

/* An output of an operation. */
typedef struct TF_Output {
  TF_Operation* oper;
  int index;
} TF_Output;

/* An input of an operation. */
typedef struct TF_Input {
  TF_Operation* oper;
  int index;
} TF_Input;

/* What an attribute is. `list_size` is -1 for a single value. `total_size` counts the bytes of texts and the dimensions of
 * shapes; it is -1 for other kinds, and for a shape of unknown rank. */
typedef struct TF_AttrMetadata {
  unsigned char is_list;
  int64_t list_size;
  TF_AttrType type;
  int64_t total_size;
} TF_AttrMetadata;

/* A loop under construction: the caller sets `cond_output`, `body_outputs` and `name`. */
typedef struct TF_WhileParams {
  const int ninputs;
  TF_Graph* const cond_graph;
  const TF_Output* const cond_inputs;
  TF_Output cond_output;
  TF_Graph* const body_graph;
  const TF_Output* const body_inputs;
  TF_Output* const body_outputs;
  const char* name;
} TF_WhileParams;

/* An element of a string tensor: only the functions below read and write it. */
typedef struct TF_TString {
  union {
    uint8_t raw[24];
    size_t words[3];
  } u;
} TF_TString;

/* Where the bytes of an element are. */
typedef enum TF_TString_Type {
  TF_TSTR_SMALL = 0, TF_TSTR_LARGE = 1, TF_TSTR_OFFSET = 2, TF_TSTR_VIEW = 3
} TF_TString_Type;

/* The version of TensorFlow whose C API this is, as a text. */
const char* TF_Version(void);

/* Statuses: the outcome of a call. A function that takes one sets it, also to TF_OK. */
TF_Status* TF_NewStatus(void);
void TF_DeleteStatus(TF_Status*);
void TF_SetStatus(TF_Status* s, TF_Code code, const char* msg);
void TF_SetStatusFromIOError(TF_Status* s, int error_code, const char* context);
/* Further texts of a failure, by keys. */
typedef void (*TF_PayloadVisitor)(const char* key, const char* value, void* capture);
void TF_SetPayload(TF_Status* s, const char* key, const char* value);
void TF_ForEachPayload(const TF_Status* s, TF_PayloadVisitor visitor, void* capture);
TF_Code TF_GetCode(const TF_Status* s);
const char* TF_Message(const TF_Status* s);

/* Buffers: bytes, mostly an encoded message. A buffer for a result is empty when it is passed. */
TF_Buffer* TF_NewBufferFromString(const void* proto, size_t proto_len);
TF_Buffer* TF_NewBuffer(void);
void TF_DeleteBuffer(TF_Buffer*);
TF_Buffer TF_GetBuffer(TF_Buffer* buffer);

/* Element types. */
size_t TF_DataTypeSize(TF_DataType dt);

/* Tensors. TF_NewTensor takes over memory of the caller's and calls the deallocator once; it copies
 * memory that is not aligned. */
TF_Tensor* TF_NewTensor(
    TF_DataType, const int64_t* dims, int num_dims, void* data, size_t len,
    void (*deallocator)(void* data, size_t len, void* arg), void* deallocator_arg);
size_t TF_TensorDefaultAlignment(void);
TF_Tensor* TF_AllocateTensor(TF_DataType, const int64_t* dims, int num_dims, size_t len);
TF_Tensor* TF_TensorMaybeMove(TF_Tensor* tensor);
void TF_DeleteTensor(TF_Tensor*);
TF_DataType TF_TensorType(const TF_Tensor*);
void TF_SetShape(TF_Tensor* tensor, const int64_t* dims, int num_dims);
int TF_NumDims(const TF_Tensor*);
int64_t TF_Dim(const TF_Tensor* tensor, int dim_index);
size_t TF_TensorByteSize(const TF_Tensor*);
void* TF_TensorData(const TF_Tensor*);
int64_t TF_TensorElementCount(const TF_Tensor* tensor);
void TF_TensorBitcastFrom(
    const TF_Tensor* from, TF_DataType type, TF_Tensor* to, const int64_t* new_dims,
    int num_new_dims, TF_Status* status);
bool TF_TensorIsAligned(const TF_Tensor*);
void TF_TensorFromProto(const TF_Buffer* from, TF_Tensor* to, TF_Status* status);

/* Elements of string tensors, 24 bytes each. Those of a tensor from TF_AllocateTensor are empty. */
void TF_StringInit(TF_TString* t);
void TF_StringCopy(TF_TString* dst, const char* src, size_t size);
void TF_StringAssignView(TF_TString* dst, const char* src, size_t size);
const char* TF_StringGetDataPointer(const TF_TString* tstr);
TF_TString_Type TF_StringGetType(const TF_TString* str);
size_t TF_StringGetSize(const TF_TString* tstr);
size_t TF_StringGetCapacity(const TF_TString* str);
void TF_StringDealloc(TF_TString* tstr);

/* Graphs. A pointer to an operation is valid as long as its graph, or a session over it. */
TF_Graph* TF_NewGraph(void);
void TF_DeleteGraph(TF_Graph*);
void TF_GraphSetTensorShape(
    TF_Graph* graph, TF_Output output, const int64_t* dims, const int num_dims, TF_Status* status);
int TF_GraphGetTensorNumDims(TF_Graph* graph, TF_Output output, TF_Status* status);
void TF_GraphGetTensorShape(
    TF_Graph* graph, TF_Output output, int64_t* dims, int num_dims, TF_Status* status);
TF_Operation* TF_GraphOperationByName(TF_Graph* graph, const char* oper_name);
TF_Operation* TF_GraphNextOperation(TF_Graph* graph, size_t* pos);
void TF_GraphToGraphDef(TF_Graph* graph, TF_Buffer* output_graph_def, TF_Status* status);
void TF_GraphGetOpDef(
    TF_Graph* graph, const char* op_name, TF_Buffer* output_op_def, TF_Status* status);
void TF_GraphVersions(TF_Graph* graph, TF_Buffer* output_version_def, TF_Status* status);

/* Operations to be added. What is wrong with an argument is an error of TF_FinishOperation. */
TF_OperationDescription* TF_NewOperation(
    TF_Graph* graph, const char* op_type, const char* oper_name);
void TF_SetDevice(TF_OperationDescription* desc, const char* device);
void TF_AddInput(TF_OperationDescription* desc, TF_Output input);
void TF_AddInputList(TF_OperationDescription* desc, const TF_Output* inputs, int num_inputs);
void TF_AddControlInput(TF_OperationDescription* desc, TF_Operation* input);
void TF_ColocateWith(TF_OperationDescription* desc, TF_Operation* op);
void TF_SetAttrString(
    TF_OperationDescription* desc, const char* attr_name, const void* value, size_t length);
void TF_SetAttrStringList(
    TF_OperationDescription* desc, const char* attr_name, const void* const* values,
    const size_t* lengths, int num_values);
void TF_SetAttrInt(TF_OperationDescription* desc, const char* attr_name, int64_t value);
void TF_SetAttrIntList(
    TF_OperationDescription* desc, const char* attr_name, const int64_t* values, int num_values);
void TF_SetAttrFloat(TF_OperationDescription* desc, const char* attr_name, float value);
void TF_SetAttrFloatList(
    TF_OperationDescription* desc, const char* attr_name, const float* values, int num_values);
void TF_SetAttrBool(TF_OperationDescription* desc, const char* attr_name, unsigned char value);
void TF_SetAttrBoolList(
    TF_OperationDescription* desc, const char* attr_name, const unsigned char* values,
    int num_values);
void TF_SetAttrType(TF_OperationDescription* desc, const char* attr_name, TF_DataType value);
void TF_SetAttrTypeList(
    TF_OperationDescription* desc, const char* attr_name, const TF_DataType* values,
    int num_values);
void TF_SetAttrPlaceholder(TF_OperationDescription* desc, const char* attr_name, const char* placeholder);
void TF_SetAttrFuncName(
    TF_OperationDescription* desc, const char* attr_name, const char* value, size_t length);
void TF_SetAttrShape(
    TF_OperationDescription* desc, const char* attr_name, const int64_t* dims, int num_dims);
void TF_SetAttrShapeList(
    TF_OperationDescription* desc, const char* attr_name, const int64_t* const* dims,
    const int* num_dims, int num_shapes);
void TF_SetAttrTensorShapeProto(
    TF_OperationDescription* desc, const char* attr_name, const void* proto, size_t proto_len,
    TF_Status* status);
void TF_SetAttrTensorShapeProtoList(
    TF_OperationDescription* desc, const char* attr_name, const void* const* protos,
    const size_t* proto_lens, int num_shapes, TF_Status* status);
void TF_SetAttrTensor(
    TF_OperationDescription* desc, const char* attr_name, TF_Tensor* value, TF_Status* status);
void TF_SetAttrTensorList(
    TF_OperationDescription* desc, const char* attr_name, TF_Tensor* const* values, int num_values,
    TF_Status* status);
void TF_SetAttrValueProto(
    TF_OperationDescription* desc, const char* attr_name, const void* proto, size_t proto_len,
    TF_Status* status);
TF_Operation* TF_FinishOperation(TF_OperationDescription* desc, TF_Status* status);

/* Operations of a graph. */
const char* TF_OperationName(TF_Operation* oper);
const char* TF_OperationOpType(TF_Operation* oper);
const char* TF_OperationDevice(TF_Operation* oper);
int TF_OperationNumOutputs(TF_Operation* oper);
TF_DataType TF_OperationOutputType(TF_Output oper_out);
int TF_OperationOutputListLength(TF_Operation* oper, const char* arg_name, TF_Status* status);
int TF_OperationNumInputs(TF_Operation* oper);
TF_DataType TF_OperationInputType(TF_Input oper_in);
int TF_OperationInputListLength(TF_Operation* oper, const char* arg_name, TF_Status* status);
TF_Output TF_OperationInput(TF_Input oper_in);
void TF_OperationAllInputs(TF_Operation* oper, TF_Output* inputs, int max_inputs);
int TF_OperationOutputNumConsumers(TF_Output oper_out);
int TF_OperationOutputConsumers(TF_Output oper_out, TF_Input* consumers, int max_consumers);
int TF_OperationNumControlInputs(TF_Operation* oper);
int TF_OperationGetControlInputs(
    TF_Operation* oper, TF_Operation** control_inputs, int max_control_inputs);
int TF_OperationNumControlOutputs(TF_Operation* oper);
int TF_OperationGetControlOutputs(
    TF_Operation* oper, TF_Operation** control_outputs, int max_control_outputs);
TF_AttrMetadata TF_OperationGetAttrMetadata(
    TF_Operation* oper, const char* attr_name, TF_Status* status);
void TF_OperationGetAttrString(
    TF_Operation* oper, const char* attr_name, void* value, size_t max_length, TF_Status* status);
void TF_OperationGetAttrStringList(
    TF_Operation* oper, const char* attr_name, void** values, size_t* lengths, int max_values,
    void* storage, size_t storage_size, TF_Status* status);
void TF_OperationGetAttrInt(
    TF_Operation* oper, const char* attr_name, int64_t* value, TF_Status* status);
void TF_OperationGetAttrIntList(
    TF_Operation* oper, const char* attr_name, int64_t* values, int max_values, TF_Status* status);
void TF_OperationGetAttrFloat(
    TF_Operation* oper, const char* attr_name, float* value, TF_Status* status);
void TF_OperationGetAttrFloatList(
    TF_Operation* oper, const char* attr_name, float* values, int max_values, TF_Status* status);
void TF_OperationGetAttrBool(
    TF_Operation* oper, const char* attr_name, unsigned char* value, TF_Status* status);
void TF_OperationGetAttrBoolList(
    TF_Operation* oper, const char* attr_name, unsigned char* values, int max_values,
    TF_Status* status);
void TF_OperationGetAttrType(
    TF_Operation* oper, const char* attr_name, TF_DataType* value, TF_Status* status);
void TF_OperationGetAttrTypeList(
    TF_Operation* oper, const char* attr_name, TF_DataType* values, int max_values,
    TF_Status* status);
void TF_OperationGetAttrShape(
    TF_Operation* oper, const char* attr_name, int64_t* value, int num_dims, TF_Status* status);
void TF_OperationGetAttrShapeList(
    TF_Operation* oper, const char* attr_name, int64_t** dims, int* num_dims, int num_shapes,
    int64_t* storage, int storage_size, TF_Status* status);
void TF_OperationGetAttrTensorShapeProto(
    TF_Operation* oper, const char* attr_name, TF_Buffer* value, TF_Status* status);
void TF_OperationGetAttrTensorShapeProtoList(
    TF_Operation* oper, const char* attr_name, TF_Buffer** values, int max_values,
    TF_Status* status);
void TF_OperationGetAttrTensor(
    TF_Operation* oper, const char* attr_name, TF_Tensor** value, TF_Status* status);
void TF_OperationGetAttrTensorList(
    TF_Operation* oper, const char* attr_name, TF_Tensor** values, int max_values,
    TF_Status* status);
void TF_OperationGetAttrValueProto(
    TF_Operation* oper, const char* attr_name, TF_Buffer* output_attr_value, TF_Status* status);
int TF_OperationGetNumAttrs(TF_Operation* oper);
int TF_OperationGetAttrNameLength(TF_Operation* oper, int i);
void TF_OperationGetAttrName(TF_Operation* oper, int i, char* output, TF_Status* status);
void TF_OperationToNodeDef(TF_Operation* oper, TF_Buffer* output_node_def, TF_Status* status);

/* Imports of GraphDef messages. */
TF_ImportGraphDefOptions* TF_NewImportGraphDefOptions(void);
void TF_DeleteImportGraphDefOptions(TF_ImportGraphDefOptions* opts);
void TF_ImportGraphDefOptionsSetPrefix(TF_ImportGraphDefOptions* opts, const char* prefix);
void TF_ImportGraphDefOptionsSetDefaultDevice(TF_ImportGraphDefOptions* opts, const char* device);
void TF_ImportGraphDefOptionsSetUniquifyNames(
    TF_ImportGraphDefOptions* opts, unsigned char uniquify_names);
void TF_ImportGraphDefOptionsSetUniquifyPrefix(
    TF_ImportGraphDefOptions* opts, unsigned char uniquify_prefix);
void TF_ImportGraphDefOptionsAddInputMapping(
    TF_ImportGraphDefOptions* opts, const char* src_name, int src_index, TF_Output dst);
void TF_ImportGraphDefOptionsRemapControlDependency(
    TF_ImportGraphDefOptions* opts, const char* src_name, TF_Operation* dst);
void TF_ImportGraphDefOptionsAddControlDependency(
    TF_ImportGraphDefOptions* opts, TF_Operation* oper);
void TF_ImportGraphDefOptionsAddReturnOutput(
    TF_ImportGraphDefOptions* opts, const char* oper_name, int index);
int TF_ImportGraphDefOptionsNumReturnOutputs(const TF_ImportGraphDefOptions* opts);
void TF_ImportGraphDefOptionsAddReturnOperation(
    TF_ImportGraphDefOptions* opts, const char* oper_name);
int TF_ImportGraphDefOptionsNumReturnOperations(const TF_ImportGraphDefOptions* opts);
void TF_ImportGraphDefResultsReturnOutputs(
    TF_ImportGraphDefResults* results, int* num_outputs, TF_Output** outputs);
void TF_ImportGraphDefResultsReturnOperations(
    TF_ImportGraphDefResults* results, int* num_opers, TF_Operation*** opers);
void TF_ImportGraphDefResultsMissingUnusedInputMappings(
    TF_ImportGraphDefResults* results, int* num_missing_unused_input_mappings,
    const char*** src_names, int** src_indexes);
void TF_DeleteImportGraphDefResults(TF_ImportGraphDefResults* results);
TF_ImportGraphDefResults* TF_GraphImportGraphDefWithResults(
    TF_Graph* graph, const TF_Buffer* graph_def, const TF_ImportGraphDefOptions* options,
    TF_Status* status);
void TF_GraphImportGraphDefWithReturnOutputs(
    TF_Graph* graph, const TF_Buffer* graph_def, const TF_ImportGraphDefOptions* options,
    TF_Output* return_outputs, int num_return_outputs, TF_Status* status);
void TF_GraphImportGraphDef(
    TF_Graph* graph, const TF_Buffer* graph_def, const TF_ImportGraphDefOptions* options,
    TF_Status* status);

/* The value of an output that depends on constants alone: 1, and a tensor that the caller deletes. */
unsigned char TF_TryEvaluateConstant(
    TF_Graph* graph, TF_Output output, TF_Tensor** result, TF_Status* status);

/* Gradients, added to a graph. */
void TF_AddGradients(
    TF_Graph* g, TF_Output* y, int ny, TF_Output* x, int nx, TF_Output* dx, TF_Status* status,
    TF_Output* dy);
void TF_AddGradientsWithPrefix(
    TF_Graph* g, const char* prefix, TF_Output* y, int ny, TF_Output* x, int nx, TF_Output* dx,
    TF_Status* status, TF_Output* dy);

/* Functions. */
void TF_GraphCopyFunction(
    TF_Graph* g, const TF_Function* func, const TF_Function* grad, TF_Status* status);
int TF_GraphNumFunctions(TF_Graph* g);
int TF_GraphGetFunctions(TF_Graph* g, TF_Function** funcs, int max_func, TF_Status* status);
TF_Function* TF_GraphToFunction(
    const TF_Graph* fn_body, const char* fn_name, unsigned char append_hash_to_fn_name,
    int num_opers, const TF_Operation* const* opers, int ninputs, const TF_Output* inputs,
    int noutputs, const TF_Output* outputs, const char* const* output_names,
    const TF_FunctionOptions* opts, const char* description, TF_Status* status);
TF_Function* TF_GraphToFunctionWithControlOutputs(
    const TF_Graph* fn_body, const char* fn_name, unsigned char append_hash_to_fn_name,
    int num_opers, const TF_Operation* const* opers, int ninputs, const TF_Output* inputs,
    int noutputs, const TF_Output* outputs, const char* const* output_names, int ncontrol_outputs,
    const TF_Operation* const* control_outputs, const char* const* control_output_names,
    const TF_FunctionOptions* opts, const char* description, TF_Status* status);
const char* TF_FunctionName(TF_Function* func);
void TF_FunctionToFunctionDef(TF_Function* func, TF_Buffer* output_func_def, TF_Status* status);
TF_Function* TF_FunctionImportFunctionDef(const void* proto, size_t proto_len, TF_Status* status);
void TF_FunctionSetAttrValueProto(
    TF_Function* func, const char* attr_name, const void* proto, size_t proto_len,
    TF_Status* status);
void TF_FunctionGetAttrValueProto(
    TF_Function* func, const char* attr_name, TF_Buffer* output_attr_value, TF_Status* status);
void TF_DeleteFunction(TF_Function* func);

/* While loops: TF_NewWhile makes two graphs, which the caller completes for TF_FinishWhile. */
TF_WhileParams TF_NewWhile(TF_Graph* g, TF_Output* inputs, int ninputs, TF_Status* status);
void TF_FinishWhile(const TF_WhileParams* params, TF_Status* status, TF_Output* outputs);
void TF_AbortWhile(const TF_WhileParams* params);

/* Sessions. One runs its graph as it grows. */
TF_SessionOptions* TF_NewSessionOptions(void);
void TF_SetTarget(TF_SessionOptions* options, const char* target);
void TF_SetConfig(
    TF_SessionOptions* options, const void* proto, size_t proto_len, TF_Status* status);
void TF_DeleteSessionOptions(TF_SessionOptions*);
TF_Session* TF_NewSession(TF_Graph* graph, const TF_SessionOptions* opts, TF_Status* status);
/* `graph` is empty and gets the graph with exactly these tags; `meta_graph_def` is null or empty. */
TF_Session* TF_LoadSessionFromSavedModel(
    const TF_SessionOptions* session_options, const TF_Buffer* run_options, const char* export_dir,
    const char* const* tags, int tags_len, TF_Graph* graph, TF_Buffer* meta_graph_def,
    TF_Status* status);
void TF_CloseSession(TF_Session*, TF_Status* status);
void TF_DeleteSession(TF_Session*, TF_Status* status);
void TF_SessionRun(
    TF_Session* session, const TF_Buffer* run_options, const TF_Output* inputs,
    TF_Tensor* const* input_values, int ninputs, const TF_Output* outputs,
    TF_Tensor** output_values, int noutputs, const TF_Operation* const* target_opers, int ntargets,
    TF_Buffer* run_metadata, TF_Status*);
void TF_SessionPRunSetup(
    TF_Session*, const TF_Output* inputs, int ninputs, const TF_Output* outputs, int noutputs,
    const TF_Operation* const* target_opers, int ntargets, const char** handle, TF_Status*);
void TF_SessionPRun(
    TF_Session*, const char* handle, const TF_Output* inputs, TF_Tensor* const* input_values,
    int ninputs, const TF_Output* outputs, TF_Tensor** output_values, int noutputs,
    const TF_Operation* const* target_opers, int ntargets, TF_Status*);
void TF_DeletePRunHandle(const char* handle);

/* Devices of a session. */
TF_DeviceList* TF_SessionListDevices(TF_Session* session, TF_Status* status);
void TF_DeleteDeviceList(TF_DeviceList* list);
int TF_DeviceListCount(const TF_DeviceList* list);
const char* TF_DeviceListName(const TF_DeviceList* list, int index, TF_Status* status);
const char* TF_DeviceListType(const TF_DeviceList* list, int index, TF_Status* status);
int64_t TF_DeviceListMemoryBytes(const TF_DeviceList* list, int index, TF_Status* status);
uint64_t TF_DeviceListIncarnation(const TF_DeviceList* list, int index, TF_Status* status);

/* Servers: one task of a cluster, which a ServerDef message describes. Clients that connect before the start wait for it. It
 * listens at an address of this machine only (127.0.0.1, localhost). One thread may join while another one stops. */
TF_Server* TF_NewServer(const void* proto, size_t proto_len, TF_Status* status);
void TF_ServerStart(TF_Server* server, TF_Status* status);
void TF_ServerStop(TF_Server* server, TF_Status* status);
void TF_ServerJoin(TF_Server* server, TF_Status* status);
const char* TF_ServerTarget(TF_Server* server);
void TF_DeleteServer(TF_Server* server);

/* Registered ops and kernels, and plugins, which add to them. */
TF_Library* TF_LoadLibrary(const char* library_filename, TF_Status* status);
TF_Buffer TF_GetOpList(TF_Library* lib_handle);
void TF_DeleteLibraryHandle(TF_Library* lib_handle);
TF_Buffer* TF_GetAllOpList(void);
TF_Buffer* TF_GetAllRegisteredKernels(TF_Status* status);
TF_Buffer* TF_GetRegisteredKernelsForOp(const char* name, TF_Status* status);

#ifdef __cplusplus
}
#endif

#endif
