/* What TF_SessionRun takes, through whichever library of TensorFlow's C API the program is linked with: a step of one op, with
   two tensors of four elements in and one out. A result is deleted after each call.

   cc -O2 -I core/capi/include benches/peers/c/session_run.c LIBRARY -lpthread -o session_run
   session_run PEER */
#include "bench.h"
#include "tenon_tensorflow.h"

enum { ELEMENTS = 4 };

struct step {
    TF_Session *session;
    TF_Output feeds[2], fetch;
    TF_Tensor *values[2];
    TF_Status *status;
};

static void check(const TF_Status *status, const char *what) {
    if (TF_GetCode(status) != TF_OK) {
        fprintf(stderr, "session_run: %s: expected success, found: %s\n", what, TF_Message(status));
        exit(1);
    }
}

/* A sum of two placeholders, in a session of its own. */
static struct step prepared(void) {
    struct step made = {.status = TF_NewStatus()};
    TF_Graph *graph = TF_NewGraph();
    const char *names[] = {"a", "b"};
    const int64_t dims[] = {ELEMENTS};
    for (int i = 0; i < 2; i++) {
        TF_OperationDescription *node = TF_NewOperation(graph, "Placeholder", names[i]);
        TF_SetAttrType(node, "dtype", TF_FLOAT);
        TF_SetAttrShape(node, "shape", dims, 1);
        made.feeds[i] = (TF_Output){TF_FinishOperation(node, made.status), 0};
        check(made.status, names[i]);
        made.values[i] = TF_AllocateTensor(TF_FLOAT, dims, 1, ELEMENTS * sizeof(float));
        float *elements = TF_TensorData(made.values[i]);
        for (int at = 0; at < ELEMENTS; at++) elements[at] = (float)(at + i);
    }
    TF_OperationDescription *node = TF_NewOperation(graph, "AddV2", "sum");
    TF_AddInput(node, made.feeds[0]);
    TF_AddInput(node, made.feeds[1]);
    made.fetch = (TF_Output){TF_FinishOperation(node, made.status), 0};
    check(made.status, "the sum");
    TF_SessionOptions *options = TF_NewSessionOptions();
    made.session = TF_NewSession(graph, options, made.status);
    check(made.status, "the session");
    TF_DeleteSessionOptions(options);
    TF_DeleteGraph(graph);
    return made;
}

static void run(void *with) {
    struct step *step = with;
    TF_Tensor *result = NULL;
    TF_SessionRun(step->session, NULL, step->feeds, step->values, 2, &step->fetch, &result, 1, NULL, 0, NULL, step->status);
    check(step->status, "a step");
    const float *sum = TF_TensorData(result);
    if (sum[ELEMENTS - 1] != 2 * ELEMENTS - 1) {
        fprintf(stderr, "session_run: expected %d, found %g\n", 2 * ELEMENTS - 1, (double)sum[ELEMENTS - 1]);
        exit(1);
    }
    TF_DeleteTensor(result);
}

int main(int count, char **words) {
    struct step step = prepared();
    struct row row = {"session_run", count > 1 ? words[1] : "tenon", TF_Version(), "add_4", "Grun/s", 1, 1};
    bench_run(&row, run, &step);
    for (int i = 0; i < 2; i++) TF_DeleteTensor(step.values[i]);
    TF_CloseSession(step.session, step.status);
    TF_DeleteSession(step.session, step.status);
    check(step.status, "the end of the session");
    TF_DeleteStatus(step.status);
    return 0;
}
