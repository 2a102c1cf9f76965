// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "reference/contract/dtype.h"
#include "reference/exact/widen.h"

namespace gradguard::reference {

/// A gradient's stored values in host memory: [elements] of dtype, dense, any alignment, read only.
struct GradientView {
    DType dtype = DType::kF32;
    const void* data = nullptr;
    std::uint64_t elements = 0;
};

/// Reads one stored element as FP32, exactly. One type for each dtype, so that loops are compiled for each.
struct LoadF32 {
    static float at(const std::byte* data, std::uint64_t i) { return read<float>(data, i); }
    template <class T>
    static T read(const std::byte* data, std::uint64_t i) {
        T value;
        std::memcpy(&value, data + i * sizeof(T), sizeof(T));
        return value;
    }
};
struct LoadF16 {
    static float at(const std::byte* data, std::uint64_t i) { return widen_f16(LoadF32::read<std::uint16_t>(data, i)); }
};
struct LoadBF16 {
    static float at(const std::byte* data, std::uint64_t i) {
        return widen_bf16(LoadF32::read<std::uint16_t>(data, i));
    }
};

/// Calls `body(loader)` with the loader of `dtype`.
template <class Body>
decltype(auto) with_loader(DType dtype, Body&& body) {
    switch (dtype) {
        case DType::kF16:
            return std::forward<Body>(body)(LoadF16{});
        case DType::kBF16:
            return std::forward<Body>(body)(LoadBF16{});
        case DType::kF32:
            break;
    }
    return std::forward<Body>(body)(LoadF32{});
}

/// Element i widened to FP32 (contract section 4's `raw`).
inline float raw_value(const GradientView& view, std::uint64_t i) {
    return with_loader(view.dtype, [&](auto load) { return load.at(static_cast<const std::byte*>(view.data), i); });
}

}  // namespace gradguard::reference
