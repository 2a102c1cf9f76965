// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "reference/model/validation.h"

namespace gradguard::testing {

using Shape = std::vector<std::uint64_t>;

/// A dense tensor in an allocation of its own.
inline reference::TensorDescription dense(const Shape& shape, DType dtype = DType::kF32) {
    reference::TensorDescription tensor;
    tensor.layout = {dtype, shape, std::vector<std::int64_t>(shape.size(), 1), 0};
    std::uint64_t count = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        tensor.layout.strides[i] = static_cast<std::int64_t>(count);
        count *= shape[i];
    }
    tensor.storage_bytes = count * element_bytes(dtype);
    return tensor;
}

/// A valid entry; with a state (of 3 completed steps) unless `fresh`.
inline reference::EntryDescription entry(const Shape& shape, bool amsgrad = false, bool fresh = false,
                                         DType gradient = DType::kF32) {
    reference::EntryDescription result{dense(shape), dense(shape, gradient), std::nullopt};
    if (!fresh) {
        result.state = reference::StateDescription{3, dense(shape), dense(shape), std::nullopt};
        if (amsgrad) result.state->max_second_moment = dense(shape);
    }
    return result;
}

inline const char* const kOperandNames[] = {"parameters", "gradients", "first_moment", "second_moment",
                                            "max_second_moment"};

/// The operand of an entry that has all five.
inline reference::TensorDescription& operand(reference::EntryDescription& description, std::size_t index) {
    switch (index) {
        case 0:
            return description.parameters;
        case 1:
            return description.gradients;
        case 2:
            return description.state->first_moment;
        case 3:
            return description.state->second_moment;
        default:
            return *description.state->max_second_moment;
    }
}

}  // namespace gradguard::testing
