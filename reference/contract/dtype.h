// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace gradguard {

/// Element types of contract section 1. Parameters and moments are F32; gradients any of these.
enum class DType : std::uint8_t { kF32, kF16, kBF16 };

inline constexpr DType kAllDTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

/// Size of one element in bytes.
constexpr std::uint64_t element_bytes(DType dtype) { return dtype == DType::kF32 ? 4 : 2; }

/// "F32", "F16" or "BF16": the spelling of the contract and of safetensors.
constexpr std::string_view to_string(DType dtype) {
    switch (dtype) {
        case DType::kF32:
            return "F32";
        case DType::kF16:
            return "F16";
        case DType::kBF16:
            return "BF16";
    }
    return "?";
}

}  // namespace gradguard
