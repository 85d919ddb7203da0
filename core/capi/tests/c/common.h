/* What the parts of the program share: a status, short ways to build graphs, and a reader of messages. */
#ifndef COMMON_H
#define COMMON_H

#include "tenon_tensorflow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern TF_Status* status;

/* Prints a line for the code of the status, and whether there is a message. */
void code(const char* what);
/* Ends the program if the status is not OK. */
void ok(const char* what);

TF_Output out(TF_Operation* oper, int index);
TF_Operation* placeholder(TF_Graph* graph, const char* name, TF_DataType type, const int64_t* dims, int rank);
TF_Operation* constant_f(TF_Graph* graph, const char* name, const int64_t* dims, int rank, const float* values);
TF_Operation* constant_i(TF_Graph* graph, const char* name, int32_t value);
TF_Operation* unary(TF_Graph* graph, const char* op, const char* name, TF_Operation* x);
TF_Operation* binary(TF_Graph* graph, const char* op, const char* name, TF_Operation* x, TF_Operation* y);
TF_Tensor* tensor_f(const int64_t* dims, int rank, const float* values);
TF_Tensor* scalar_i(int32_t value);
TF_Session* session(TF_Graph* graph);
/* Prints the values of a tensor, and deletes it. */
void show(const char* what, TF_Tensor* tensor);
/* Runs a step with one feed or none, prints the value of the fetch, or the code. */
void run(const char* what, TF_Session* session, TF_Operation* feed, TF_Tensor* value, TF_Output fetch);

/* A server for the first task of a job, in a cluster of one task, of the job "worker", at an address. */
TF_Server* server(const char* protocol, const char* job, const char* address);

/* A message, or a part of one. */
typedef struct message {
  const unsigned char* data;
  size_t length;
} message;

message whole(const TF_Buffer* buffer);
/* Takes the next field off a message: its number, and its bytes or its value. False at the end. */
bool next(message* from, int* field, message* bytes, uint64_t* value);
/* The bytes of the first field of this number. */
message part(message from, int field);
/* Prints the texts of all fields of this number, at the end of a path of fields, in the order of the alphabet. */
void names(const char* what, message from, int field, int inner);

void basics(void);
void strings(void);
void graphs(void);
void attributes(void);
void attribute_lists(void);
void imports(void);
void sessions(void);
void partial_runs(void);
void gradients(void);
void functions(void);
void loops(void);
void registered(void);
/* `folder` has saved models. */
void saved_models(const char* folder);
void servers(void);
void bad_input(void);

#endif
