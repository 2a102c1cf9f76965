// SPDX-License-Identifier: Apache-2.0
// All of the handlers, for the vector unit that the including file is compiled for.
#if defined(__AVX2__) || defined(__AVX512F__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "harness/vgpu/exec/op.h"

namespace gradguard::vgpu::exec {
namespace {

// clang-format off
#include "harness/vgpu/exec/lanes.inl"
#include "harness/vgpu/exec/float_functions.inl"
#include "harness/vgpu/exec/integer_functions.inl"
#include "harness/vgpu/exec/conversions.inl"
#include "harness/vgpu/exec/memory.inl"
#include "harness/vgpu/exec/table.inl"
// clang-format on

constexpr std::size_t kRowCount = sizeof(kIntegerRows) / sizeof(Row) + sizeof(kMoveRows) / sizeof(Row) +
                                  sizeof(kFloatRows) / sizeof(Row) + sizeof(kConversionRows) / sizeof(Row) +
                                  sizeof(kMemoryRows) / sizeof(Row);

template <std::size_t n>
std::size_t append(Row* rows, std::size_t at, const Row (&part)[n]) {
    for (const Row& row : part) rows[at++] = row;
    return at;
}

struct AllRows {
    Row rows[kRowCount];
    AllRows() {
        std::size_t at = append(rows, 0, kIntegerRows);
        at = append(rows, at, kMoveRows);
        at = append(rows, at, kFloatRows);
        at = append(rows, at, kConversionRows);
        append(rows, at, kMemoryRows);
    }
};

RowSpan all_rows() {
    static const AllRows all;
    return {all.rows, kRowCount};
}

}  // namespace
}  // namespace gradguard::vgpu::exec
