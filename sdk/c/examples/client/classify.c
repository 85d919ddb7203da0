/* Classifies an image by a saved model: classify FOLDER
 *
 * The image is a pattern that is computed, so that the result can be compared with that of another program. */
#include <stdio.h>
#include <stdlib.h>
#include <tenon_client.h>

static void check(const tn_status* status) {
  if (tn_status_code(status) == TN_OK) return;
  fprintf(stderr, "%s: %s\n", tn_code_name(tn_status_code(status)), tn_status_message(status));
  exit(1);
}

int main(int count, char** arguments) {
  if (count != 2) {
    fprintf(stderr, "usage: classify FOLDER\n");
    return 2;
  }
  tn_status* status = tn_status_new();
  tn_runtime* runtime = tn_runtime_new(NULL, status);
  check(status);
  tn_model* model = tn_model_load(runtime, arguments[1], NULL, 0, status);
  check(status);

  /* The signature says what goes in and comes out. */
  tn_list* inputs = tn_model_inputs(model, NULL, status);
  tn_list* outputs = tn_model_outputs(model, NULL, status);
  check(status);
  const char* input = tn_list_at(inputs, 0);
  const char* output = tn_list_at(outputs, 0);
  tn_value_info info = TN_INIT(tn_value_info);
  tn_model_input_info(model, NULL, input, &info, status);
  check(status);

  /* One image: the first dimension, the number of images, is not known. */
  info.dims[0] = 1;
  tn_tensor* image = tn_tensor_new(info.dtype, info.dims, info.rank, status);
  check(status);
  float* pixels = tn_tensor_mutable_data(image, status);
  check(status);
  for (size_t i = 0; i < tn_tensor_elements(image); i++) pixels[i] = (float)(i % 7) / 7 - 0.5f;

  tn_tensor* scores = NULL;
  tn_model_run(model, NULL, NULL, &input, &image, 1, &output, &scores, 1, status);
  check(status);
  const float* score = tn_tensor_data(scores, status);
  check(status);
  size_t best = 0;
  for (size_t i = 1; i < tn_tensor_elements(scores); i++) {
    if (score[i] > score[best]) best = i;
  }
  printf("class %zu of %zu, score %.3f\n", best, tn_tensor_elements(scores), (double)score[best]);

  tn_tensor_delete(scores);
  tn_tensor_delete(image);
  tn_list_delete(inputs);
  tn_list_delete(outputs);
  tn_model_delete(model);
  tn_runtime_delete(runtime);
  tn_status_delete(status);
  return 0;
}
