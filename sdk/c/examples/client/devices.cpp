// Loads a plugin, and lists its devices and its kernels: devices PLUGIN
#include <cstdio>

#include <tenon_client.hpp>

static void show(const char* file) {
  tn_runtime_options options = TN_INIT(tn_runtime_options);
  options.named_only = true;
  const tn::runtime runtime(tn::call(tn_runtime_new, &options));
  const std::string plugin = tn::texts(tn::call(tn_runtime_load, runtime.get(), file)).at(0);
  std::printf("plugin %s\n", plugin.c_str());

  const tn::devices devices(tn::call(tn_runtime_devices, runtime.get()));
  for (size_t at = 0; at < tn_devices_count(devices.get()); at++) {
    tn_device_info info = TN_INIT(tn_device_info);
    tn::call(tn_devices_get, devices.get(), at, &info);
    std::printf("device %s of type %s\n", info.name, info.device_type);
  }
  const tn::kernels kernels(tn::call(tn_runtime_kernels, runtime.get(), nullptr));
  const size_t count = tn_kernels_count(kernels.get());
  size_t of_plugin = 0;
  for (size_t at = 0; at < count; at++) {
    tn_kernel_info info = TN_INIT(tn_kernel_info);
    tn::call(tn_kernels_get, kernels.get(), at, &info);
    of_plugin += plugin == info.plugin;
  }
  std::printf("it has most kernels: %s\n", of_plugin > count / 2 ? "yes" : "no");
}

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: devices PLUGIN\n");
    return 2;
  }
  try {
    show(arguments[1]);
    show("/nowhere/libtenon_none.so");
  } catch (const tn::error& error) {
    std::printf("%s\n", error.code() == TN_NOT_FOUND ? "a plugin that is not there" : error.what());
  }
  return 0;
}
