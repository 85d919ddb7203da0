/* Calls each function of tenon_client.h, with arguments that are right and with ones that are wrong:
 * client PLUGIN FOLDER-WITH-PLUGINS FOLDER-TO-WRITE SAVED-MODELS */
#include "common.h"

int main(int count, char** arguments) {
  if (count != 5) return 2;
  status = tn_status_new();
  statuses();
  runtime = tn_runtime_new(NULL, status);
  OK();
  runtimes(arguments[1], arguments[2]);
  tensors();
  dlpack();
  graphs();
  builders();
  functions();
  sessions();
  callables();
  cancellation();
  training(arguments[3]);
  checkpoints(arguments[3]);
  servers();
  models(arguments[4]);
  logs(arguments[3]);
  stale();
  EXPECT(tn_runtime_delete(runtime) == TN_OK);
  EXPECT(tn_status_delete(status) == TN_OK);
  printf("as expected\n");
  return 0;
}
