// Loads a plugin, and lists its devices and its kernels: devices PLUGIN
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <tenon_client.h>

static void check(const tn_status* status) {
  if (tn_status_code(status) == TN_OK) return;
  std::fprintf(stderr, "%s: %s\n", tn_code_name(tn_status_code(status)), tn_status_message(status));
  std::exit(1);
}

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: devices PLUGIN\n");
    return 2;
  }
  tn_status* status = tn_status_new();
  tn_runtime_options options = TN_INIT(tn_runtime_options);
  options.named_only = true;
  tn_runtime* runtime = tn_runtime_new(&options, status);
  check(status);
  tn_list* loaded = tn_runtime_load(runtime, arguments[1], status);
  check(status);
  const char* plugin = tn_list_at(loaded, 0);
  std::printf("plugin %s\n", plugin);

  tn_devices* devices = tn_runtime_devices(runtime, status);
  check(status);
  for (size_t at = 0; at < tn_devices_count(devices); at++) {
    tn_device_info info = TN_INIT(tn_device_info);
    tn_devices_get(devices, at, &info, status);
    check(status);
    std::printf("device %s of type %s\n", info.name, info.device_type);
  }
  tn_kernels* kernels = tn_runtime_kernels(runtime, nullptr, status);
  check(status);
  size_t of_plugin = 0;
  for (size_t at = 0; at < tn_kernels_count(kernels); at++) {
    tn_kernel_info info = TN_INIT(tn_kernel_info);
    tn_kernels_get(kernels, at, &info, status);
    check(status);
    of_plugin += std::strcmp(info.plugin, plugin) == 0;
  }
  std::printf("its kernels are all there are: %s\n", of_plugin == tn_kernels_count(kernels) && of_plugin > 0 ? "yes" : "no");

  tn_kernels_delete(kernels);
  tn_devices_delete(devices);
  tn_list_delete(loaded);
  tn_runtime_delete(runtime);
  tn_status_delete(status);
  return 0;
}
