// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/tensor.h"

#include <limits>
#include <string>

#include "reference/contract/error.h"

namespace gradguard {
namespace {

/// Host memory for a whole tensor has the tensor's size; anything else would fail on the device, and stay failed.
void require_size(const Tensor& tensor, std::size_t bytes) {
    if (bytes == tensor.bytes()) return;
    throw Error(ErrorKind::kInvalidTensor, {.operand = "host memory"},
                "want " + std::to_string(tensor.bytes()) + " bytes for shape " + list_to_string(tensor.layout.shape) +
                    ", got " + std::to_string(bytes));
}

}  // namespace

ElementCount count_elements(const std::vector<std::uint64_t>& shape) {
    constexpr std::uint64_t kMaxDimension = 0xFFFFFFFF;
    constexpr std::uint64_t kMaxFp32Bytes = 0xFFFFFFFF;
    constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
    for (const std::uint64_t dimension : shape) {
        if (dimension > kMaxDimension) {
            return {0, "want each dimension <= 4294967295, got shape " + list_to_string(shape)};
        }
    }
    std::uint64_t count = 1;
    for (const std::uint64_t dimension : shape) {
        if (dimension != 0 && count > kMax / dimension) {
            return {0, "want an element count that fits in 64 bits, got shape " + list_to_string(shape)};
        }
        count *= dimension;
    }
    if (count > kMaxFp32Bytes / 4) {
        return {0,
                "want at most " + std::to_string(kMaxFp32Bytes / 4) + " elements, got shape " + list_to_string(shape)};
    }
    return {count, std::nullopt};
}

std::vector<std::int64_t> dense_strides(const std::vector<std::uint64_t>& shape) {
    std::vector<std::int64_t> strides(shape.size());
    std::uint64_t stride = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        strides[i] = static_cast<std::int64_t>(stride);
        stride *= shape[i];
    }
    return strides;
}

Tensor Tensor::over(const std::shared_ptr<Queue>& queue, DType dtype, std::vector<std::uint64_t> shape, Buffer storage,
                    std::uint64_t byte_offset) {
    std::vector<std::int64_t> strides = dense_strides(shape);
    return {{dtype, std::move(shape), std::move(strides), byte_offset}, std::move(storage), queue};
}

Tensor Tensor::allocate(const std::shared_ptr<Queue>& queue, DType dtype, std::vector<std::uint64_t> shape) {
    const ElementCount count = count_elements(shape);
    if (count.problem) throw Error(ErrorKind::kInvalidTensor, {.operand = "shape"}, *count.problem);
    Buffer storage;
    if (count.count > 0) storage = queue->device().allocate(count.count * element_bytes(dtype), *queue);
    return over(queue, dtype, std::move(shape), std::move(storage));
}

std::uint64_t Tensor::elements() const {
    std::uint64_t count = 1;
    for (const std::uint64_t dimension : layout.shape) count *= dimension;
    return count;
}

void Tensor::upload(std::span<const std::byte> source) const {
    require_size(*this, source.size());
    if (!source.empty()) queue->copy_to_device({storage, layout.byte_offset, source.size()}, source);
}

void Tensor::download(std::span<std::byte> destination) const {
    require_size(*this, destination.size());
    if (!destination.empty()) queue->copy_to_host(destination, {storage, layout.byte_offset, destination.size()});
}

}  // namespace gradguard
