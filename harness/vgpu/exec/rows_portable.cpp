// SPDX-License-Identifier: Apache-2.0
#include "harness/vgpu/exec/rows.inl"

namespace gradguard::vgpu::exec {
RowSpan portable_rows() { return all_rows(); }
}  // namespace gradguard::vgpu::exec
