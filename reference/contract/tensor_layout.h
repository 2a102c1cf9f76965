// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/contract/dtype.h"

namespace gradguard {

/// How a tensor lies in its storage (contract section 1). Rank 0 is one element.
struct TensorLayout {
    DType dtype = DType::kF32;
    std::vector<std::uint64_t> shape;
    std::vector<std::int64_t> strides;  ///< In elements, one for each dimension.
    std::uint64_t byte_offset = 0;      ///< From the start of the allocation.
};

/// "[3,4]" for messages; works for shapes and strides.
template <class Integer>
std::string list_to_string(const std::vector<Integer>& values) {
    std::string text = "[";
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (i != 0) text += ',';
        text += std::to_string(values[i]);
    }
    return text + "]";
}

}  // namespace gradguard
