/* Gradients, variables, savers and checkpoints. */
#include "common.h"

static char* path(const char* folder, const char* name) {
  static char text[4096];
  snprintf(text, sizeof text, "%s/%s", folder, name);
  return text;
}

static void gradients(tn_graph* graph, tn_session* session) {
  const char *y = "square", *x = "x", *xs[] = {"x", "start"};
  tn_list* made = tn_graph_gradients(graph, "slope", &y, 1, &x, 1, NULL, status);
  OK();
  EXPECT(tn_list_count(made) == 1 && strncmp(tn_list_at(made, 0), "slope/", 6) == 0);
  const float three = 3, ten = 10;
  tn_tensor *at = floats(NULL, 0, &three), *scale = floats(NULL, 0, &ten);
  EXPECT(number(run_one(session, "x", at, tn_list_at(made, 0))) == 6);
  tn_list_delete(made);
  placeholder(graph, "scale", TN_FLOAT, NULL, 0);
  const char* given = "scale";
  made = tn_graph_gradients(graph, NULL, &y, 1, &x, 1, &given, status);
  OK();
  const char *feeds[] = {"x", "scale"}, *fetch = tn_list_at(made, 0);
  tn_tensor *values[] = {at, scale}, *result = NULL;
  EXPECT(tn_session_run(session, NULL, feeds, values, 2, &fetch, &result, 1, NULL, 0, status));
  EXPECT(number(result) == 60);
  tn_list_delete(made);
  EXPECT(tn_graph_gradients(graph, "slope", &y, 1, &x, 1, NULL, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "slope");
  EXPECT(tn_graph_gradients(graph, NULL, &y, 1, xs, 2, NULL, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "no path");
  EXPECT(tn_graph_gradients(graph, NULL, NULL, 1, &x, 1, NULL, status) == NULL);
  EXPECT(tn_graph_gradients(NULL, NULL, &y, 1, &x, 1, NULL, status) == NULL);
  tn_tensor_delete(at);
  tn_tensor_delete(scale);
}

static void set(tn_session* session, const char* target, const char* feed, float value) {
  tn_tensor* tensor = floats(NULL, 0, &value);
  EXPECT(tn_session_run(session, NULL, &feed, &tensor, 1, NULL, NULL, 0, &target, 1, status));
  tn_tensor_delete(tensor);
}

static void savers(tn_graph* graph, tn_session* session, const char* handle, const char* value, const char* folder) {
  node(graph, "AssignVariableOp", "assign", handle, "x");
  tn_saver_options options = TN_INIT(tn_saver_options);
  options.max_to_keep = 1;
  options.scope = "keep";
  tn_saver* saver = tn_saver_new(graph, &options, status);
  OK();
  EXPECT(tn_graph_has(graph, "keep/restore_all", status));
  set(session, "assign", "x", 7);
  tn_list* first = tn_saver_save(saver, session, path(folder, "model"), 1, status);
  OK();
  set(session, "assign", "x", 8);
  tn_list* second = tn_saver_save(saver, session, path(folder, "model"), 2, status);
  OK();
  tn_list* kept = tn_saver_checkpoints(saver, status);
  EXPECT(tn_list_count(kept) == 1 && strcmp(tn_list_at(kept, 0), tn_list_at(second, 0)) == 0);
  tn_list_delete(kept);
  tn_list* latest = tn_checkpoint_latest(folder, status);
  OK();
  EXPECT(tn_list_count(latest) == 1 && strstr(tn_list_at(latest, 0), "model-2"));
  tn_list_delete(latest);
  set(session, "assign", "x", 9);
  EXPECT(!tn_saver_restore(saver, session, tn_list_at(first, 0), status));
  IS(TN_NOT_FOUND, "model-1");
  EXPECT(tn_saver_restore(saver, session, tn_list_at(second, 0), status));
  EXPECT(number(run_one(session, NULL, NULL, value)) == 8);
  tn_list* plain = tn_saver_save(saver, session, path(folder, "plain"), -1, status);
  OK();
  EXPECT(strstr(tn_list_at(plain, 0), "/plain") && !strstr(tn_list_at(plain, 0), "plain-"));
  tn_list_delete(plain);
  EXPECT(tn_saver_save(saver, NULL, path(folder, "model"), 1, status) == NULL);
  EXPECT(tn_saver_save(saver, session, NULL, 1, status) == NULL && tn_saver_save(NULL, session, "a", 1, status) == NULL);
  EXPECT(!tn_saver_restore(NULL, session, "a", status) && tn_saver_checkpoints(NULL, status) == NULL);
  options.max_to_keep = -2;
  EXPECT(tn_saver_new(graph, &options, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "max_to_keep");
  tn_list_delete(first);
  tn_list_delete(second);
  EXPECT(tn_saver_delete(saver) == TN_OK && tn_saver_delete(saver) == TN_INVALID_ARGUMENT && tn_saver_delete(NULL) == TN_OK);
}

void training(const char* folder) {
  tn_graph* graph = new_graph();
  EXPECT(tn_saver_new(graph, NULL, status) == NULL);
  IS(TN_INVALID_ARGUMENT, "variable");
  placeholder(graph, "x", TN_FLOAT, NULL, 0);
  node(graph, "Square", "square", "x", NULL);
  constant(graph, "start", 5);
  tn_session* session = tn_session_new(graph, NULL, status);
  gradients(graph, session);
  tn_list* names = tn_graph_add_variable(graph, "v", TN_FLOAT, NULL, 0, "start", NULL, true, status);
  OK();
  EXPECT(tn_list_count(names) == 3 && tn_graph_has(graph, tn_list_at(names, 2), status));
  tn_list* all = tn_graph_variables(graph, status);
  EXPECT(tn_list_count(all) == 1 && has(all, "v"));
  tn_list_delete(all);
  EXPECT(tn_graph_add_variable(graph, "v", TN_FLOAT, NULL, 0, "start", NULL, true, status) == NULL);
  EXPECT(strstr(tn_status_message(status), "v"));
  const int64_t dims[] = {2};
  EXPECT(tn_graph_add_variable(graph, "u", TN_FLOAT, dims, 1, "start", NULL, true, status) == NULL);
  EXPECT(tn_graph_add_variable(graph, "u", TN_FLOAT, NULL, 0, "nothing", NULL, true, status) == NULL);
  EXPECT(tn_graph_add_variable(graph, "u", (tn_dtype)99, NULL, 0, "start", NULL, true, status) == NULL);
  EXPECT(tn_graph_add_variable(NULL, "u", TN_FLOAT, NULL, 0, "start", NULL, true, status) == NULL);
  all = tn_graph_variables(graph, status);
  EXPECT(tn_list_count(all) == 1);
  tn_list_delete(all);
  EXPECT(tn_graph_add_initializer(graph, "init", status) && !tn_graph_add_initializer(graph, "init", status));
  EXPECT(!tn_graph_add_initializer(NULL, "init", status) && tn_graph_variables(NULL, status) == NULL);
  const char* init = "init";
  EXPECT(tn_session_run(session, NULL, NULL, NULL, 0, NULL, NULL, 0, &init, 1, status));
  EXPECT(number(run_one(session, NULL, NULL, tn_list_at(names, 1))) == 5);
  savers(graph, session, tn_list_at(names, 0), tn_list_at(names, 1), folder);
  tn_list_delete(names);
  tn_session_delete(session);
  tn_graph_delete(graph);
}

void checkpoints(const char* folder) {
  const int64_t dims[] = {2};
  const float values[] = {1, 2};
  const char *text = "words", *names[] = {"a", "b"};
  const size_t length = 5;
  tn_tensor* tensors[] = {floats(dims, 1, values), tn_tensor_from_strings(NULL, 0, &text, &length, 1, status)};
  EXPECT(tn_checkpoint_write(path(folder, "own"), names, tensors, 2, status));
  tn_checkpoint* checkpoint = tn_checkpoint_open(path(folder, "own"), status);
  OK();
  tn_list* all = tn_checkpoint_names(checkpoint, status);
  EXPECT(tn_list_count(all) == 2 && has(all, "a") && has(all, "b"));
  tn_list_delete(all);
  tn_value_info info = TN_INIT(tn_value_info);
  EXPECT(tn_checkpoint_info(checkpoint, "a", &info, status) && info.dtype == TN_FLOAT && info.rank == 1 && info.dims[0] == 2);
  tn_tensor* read = tn_checkpoint_read(checkpoint, "a", status);
  OK();
  EXPECT(((const float*)tn_tensor_data(read, status))[1] == 2);
  tn_tensor_delete(read);
  read = tn_checkpoint_read(checkpoint, "b", status);
  OK();
  size_t found = 0;
  EXPECT(memcmp(tn_tensor_string(read, 0, &found, status), "words", 5) == 0 && found == 5);
  tn_tensor_delete(read);
  EXPECT(tn_checkpoint_read(checkpoint, "c", status) == NULL);
  IS(TN_NOT_FOUND, "'c'");
  EXPECT(!tn_checkpoint_info(checkpoint, "c", &info, status));
  EXPECT(tn_checkpoint_delete(checkpoint) == TN_OK && tn_checkpoint_delete(checkpoint) == TN_INVALID_ARGUMENT);
  EXPECT(tn_checkpoint_names(checkpoint, status) == NULL && tn_checkpoint_delete(NULL) == TN_OK);
  /* A byte of a file that is damaged is found. */
  FILE* file = fopen(path(folder, "own.data-00000-of-00001"), "r+b");
  EXPECT(file != NULL && fputc(0x55, file) == 0x55 && fclose(file) == 0);
  checkpoint = tn_checkpoint_open(path(folder, "own"), status);
  OK();
  EXPECT(tn_checkpoint_read(checkpoint, "a", status) == NULL);
  IS(TN_DATA_LOSS, "own");
  tn_checkpoint_delete(checkpoint);
  EXPECT(tn_checkpoint_open(path(folder, "nothing"), status) == NULL);
  IS(TN_NOT_FOUND, "nothing");
  EXPECT(tn_checkpoint_open(NULL, status) == NULL);
  EXPECT(!tn_checkpoint_write("/dev/null/own", names, tensors, 2, status) && !tn_checkpoint_write(NULL, names, tensors, 2, status));
  EXPECT(!tn_checkpoint_write(path(folder, "own"), names, NULL, 2, status));
  tn_list* latest = tn_checkpoint_latest("/nowhere", status);
  OK();
  EXPECT(tn_list_count(latest) == 0);
  tn_list_delete(latest);
  EXPECT(tn_checkpoint_latest(NULL, status) == NULL);
  tn_tensor_delete(tensors[0]);
  tn_tensor_delete(tensors[1]);
}
