/* tenon_client.hpp - tenon_client.h for C++17: handles that delete themselves, and errors as exceptions.
 *
 *     tn::runtime runtime(tn::call(tn_runtime_new, nullptr));
 *     tn::graph graph(tn::call(tn_graph_new, runtime.get()));
 *     std::vector<std::string> nodes = tn::texts(tn::call(tn_graph_nodes, graph.get()));
 *
 * All functions are those of tenon_client.h; this header adds no object of its own but the exception.
 */
#ifndef TENON_CLIENT_HPP
#define TENON_CLIENT_HPP

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tenon_client.h"

namespace tn {

/** What a status says: its message is what(). */
class error : public std::runtime_error {
 public:
  explicit error(const tn_status* status)
      : std::runtime_error(tn_status_message(status)), code_(tn_status_code(status)), node_(tn_status_node(status)) {}

  /** The canonical code. */
  tn_code code() const noexcept { return code_; }

  /** The name of the node that failed; empty where no node did. */
  const std::string& node() const noexcept { return node_; }

 private:
  tn_code code_;
  std::string node_;
};

/** Deletes a handle by the function of its kind. */
struct deleter {
  void operator()(tn_buffer* handle) const noexcept { tn_buffer_delete(handle); }
  void operator()(tn_builder* handle) const noexcept { tn_builder_delete(handle); }
  void operator()(tn_callable* handle) const noexcept { tn_callable_delete(handle); }
  void operator()(tn_cancel* handle) const noexcept { tn_cancel_delete(handle); }
  void operator()(tn_checkpoint* handle) const noexcept { tn_checkpoint_delete(handle); }
  void operator()(tn_devices* handle) const noexcept { tn_devices_delete(handle); }
  void operator()(tn_graph* handle) const noexcept { tn_graph_delete(handle); }
  void operator()(tn_kernels* handle) const noexcept { tn_kernels_delete(handle); }
  void operator()(tn_list* handle) const noexcept { tn_list_delete(handle); }
  void operator()(tn_model* handle) const noexcept { tn_model_delete(handle); }
  void operator()(tn_node* handle) const noexcept { tn_node_delete(handle); }
  void operator()(tn_runtime* handle) const noexcept { tn_runtime_delete(handle); }
  void operator()(tn_saver* handle) const noexcept { tn_saver_delete(handle); }
  void operator()(tn_server* handle) const noexcept { tn_server_delete(handle); }
  void operator()(tn_session* handle) const noexcept { tn_session_delete(handle); }
  void operator()(tn_status* handle) const noexcept { tn_status_delete(handle); }
  void operator()(tn_tensor* handle) const noexcept { tn_tensor_delete(handle); }
};

/** A handle that is deleted with the object. */
template <class Kind>
using owned = std::unique_ptr<Kind, deleter>;

using buffer = owned<tn_buffer>;
using builder = owned<tn_builder>;
using callable = owned<tn_callable>;
using cancel = owned<tn_cancel>;
using checkpoint = owned<tn_checkpoint>;
using devices = owned<tn_devices>;
using graph = owned<tn_graph>;
using kernels = owned<tn_kernels>;
using list = owned<tn_list>;
using model = owned<tn_model>;
using node = owned<tn_node>;
using runtime = owned<tn_runtime>;
using saver = owned<tn_saver>;
using server = owned<tn_server>;
using session = owned<tn_session>;
using status = owned<tn_status>;
using tensor = owned<tn_tensor>;

/** Calls a function of tenon_client.h that takes a status, without the status. Throws an error where it fails. */
template <class Result, class... Parameters, class... Arguments>
Result call(Result (*function)(Parameters...), Arguments&&... arguments) {
  status told(tn_status_new());
  Result result = function(std::forward<Arguments>(arguments)..., told.get());
  if (tn_status_code(told.get()) != TN_OK) throw error(told.get());
  return result;
}

/** The texts of a list, which is deleted. */
inline std::vector<std::string> texts(tn_list* handle) {
  const list taken(handle);
  std::vector<std::string> found;
  for (size_t at = 0; at < tn_list_count(handle); at++) found.emplace_back(tn_list_at(handle, at));
  return found;
}

}  // namespace tn

#endif /* TENON_CLIENT_HPP */
