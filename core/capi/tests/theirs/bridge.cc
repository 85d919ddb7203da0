// What TensorFlow's own tests of its C API use beside the API: the folder of their files, and conversions between handles and
// TensorFlow's C++ tensors. TensorFlow's look into its handles; these do it by functions of the API, so that they fit any library.
#include "tensorflow/c/c_api.h"
#include "tensorflow/core/framework/tensor.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

// An experimental function, which the tests call to compile nothing by XLA. TensorFlow's writes into its own options of sessions.
extern "C" void TF_EnableXLACompilation(TF_SessionOptions *, unsigned char) {}

namespace tsl {

std::string GetDataDependencyFilepath(const std::string &path)
{
    const char *folder = std::getenv("SOURCE_FOLDER");
    return (folder ? std::string(folder) + "/" : std::string()) + path;
}

} // namespace tsl

namespace tensorflow {

TF_Tensor *TF_TensorFromTensor(const Tensor &from, absl::Status *status)
{
    *status = absl::OkStatus();
    std::vector<int64_t> dims;
    for (int axis = 0; axis < from.dims(); axis++) {
        dims.push_back(from.dim_size(axis));
    }
    const auto type = static_cast<TF_DataType>(from.dtype());
    if (from.dtype() != DT_STRING) {
        TF_Tensor *to = TF_AllocateTensor(type, dims.data(), from.dims(), from.TotalBytes());
        std::memcpy(TF_TensorData(to), from.data(), from.TotalBytes());
        return to;
    }
    const auto texts = from.flat<tstring>();
    TF_Tensor *to = TF_AllocateTensor(type, dims.data(), from.dims(), texts.size() * sizeof(TF_TString));
    auto *elements = static_cast<TF_TString *>(TF_TensorData(to));
    for (int64_t at = 0; at < texts.size(); at++) {
        TF_StringCopy(&elements[at], texts(at).data(), texts(at).size());
    }
    return to;
}

absl::Status TF_TensorToTensor(const TF_Tensor *from, Tensor *to)
{
    TensorShape shape;
    for (int axis = 0; axis < TF_NumDims(from); axis++) {
        shape.AddDim(TF_Dim(from, axis));
    }
    *to = Tensor(static_cast<DataType>(TF_TensorType(from)), shape);
    if (TF_TensorType(from) != TF_STRING) {
        std::memcpy(to->data(), TF_TensorData(from), TF_TensorByteSize(from));
        return absl::OkStatus();
    }
    const auto *elements = static_cast<const TF_TString *>(TF_TensorData(from));
    for (int64_t at = 0; at < shape.num_elements(); at++) {
        to->flat<tstring>()(at) = tstring(TF_StringGetDataPointer(&elements[at]), TF_StringGetSize(&elements[at]));
    }
    return absl::OkStatus();
}

} // namespace tensorflow
