/* What the parts of the test program share. */
#ifndef COMMON_H
#define COMMON_H

#include "tenon_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern tn_status* status;
extern tn_runtime* runtime;

/* Ends the program with a message if the condition does not hold. */
#define EXPECT(condition) expect(condition, #condition, __FILE__, __LINE__)
/* Ends the program if the status is not OK. */
#define OK() expect_code(TN_OK, NULL, __FILE__, __LINE__)
/* Ends the program if the status has another code, or its message lacks the words. */
#define IS(code, words) expect_code(code, words, __FILE__, __LINE__)

void expect(bool holds, const char* what, const char* file, int line);
void expect_code(tn_code code, const char* words, const char* file, int line);

/* Short ways to build graphs. */
tn_graph* new_graph(void);
void placeholder(tn_graph* graph, const char* name, tn_dtype dtype, const int64_t* dims, int rank);
void node(tn_graph* graph, const char* op, const char* name, const char* x, const char* y);
void constant(tn_graph* graph, const char* name, float value);
tn_tensor* floats(const int64_t* dims, int rank, const float* values);
/* Runs a step with one feed or none, and gives the only value. */
tn_tensor* run_one(tn_session* session, const char* feed, tn_tensor* value, const char* fetch);
float number(tn_tensor* tensor);
/* The text of a list at a place, or of an empty list. */
bool has(tn_list* list, const char* text);

void statuses(void);
void runtimes(const char* plugin, const char* folder);
void tensors(void);
void dlpack(void);
void graphs(void);
void builders(void);
void functions(void);
void sessions(void);
void callables(void);
void cancellation(void);
void training(const char* folder);
void checkpoints(const char* folder);
void servers(void);
void models(const char* folder);
void logs(const char* folder);
void stale(void);

#endif
