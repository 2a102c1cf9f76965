// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/host/device.h"
#include "reference/contract/tensor_layout.h"

namespace gradguard {

/// Typed view of device storage (contract section 1). A copy is another view of the same storage.
struct Tensor {
    TensorLayout layout;
    Buffer storage;
    std::shared_ptr<Queue> queue;

    /// New dense storage of `shape` on the queue's device; nothing is allocated when a dimension is 0.
    /// Throws Error{InvalidTensor} when the count breaks contract section 3, Error{DeviceFailure} without memory.
    static Tensor allocate(const std::shared_ptr<Queue>& queue, DType dtype, std::vector<std::uint64_t> shape);

    /// A dense view of existing storage, from `byte_offset` on.
    static Tensor over(const std::shared_ptr<Queue>& queue, DType dtype, std::vector<std::uint64_t> shape,
                       Buffer storage, std::uint64_t byte_offset = 0);

    /// Product of the shape; only for a layout that passes validation.
    std::uint64_t elements() const;
    std::uint64_t bytes() const { return elements() * element_bytes(layout.dtype); }
    bool empty() const { return elements() == 0; }
    /// Address of the first element.
    DeviceAddress data() const { return storage.address + layout.byte_offset; }

    /// Asynchronous copies of the whole (dense) tensor. Throw Error{InvalidTensor} when the host memory has not bytes()
    /// bytes, and the queue's errors. A download's destination holds the data after Queue::synchronize().
    void upload(std::span<const std::byte> source) const;
    void download(std::span<std::byte> destination) const;
};

/// Row-major strides in elements.
std::vector<std::int64_t> dense_strides(const std::vector<std::uint64_t>& shape);

/// The element count by contract section 3, or the reason why the shape has none: a dimension above 2^32 - 1, a product
/// that overflows u64 (left to right, even before a zero), or 4 x count above 2^32 - 1.
struct ElementCount {
    std::uint64_t count = 0;
    std::optional<std::string> problem;
};
ElementCount count_elements(const std::vector<std::uint64_t>& shape);

}  // namespace gradguard
