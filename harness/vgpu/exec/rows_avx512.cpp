// SPDX-License-Identifier: Apache-2.0
#if defined(__AVX512F__)
#include "harness/vgpu/exec/rows.inl"

namespace gradguard::vgpu::exec {
RowSpan avx512_rows() { return all_rows(); }
}  // namespace gradguard::vgpu::exec
#else
#include "harness/vgpu/exec/op.h"

namespace gradguard::vgpu::exec {
RowSpan avx512_rows() { return {nullptr, 0}; }
}  // namespace gradguard::vgpu::exec
#endif
