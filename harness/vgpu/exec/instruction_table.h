// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "harness/vgpu/exec/op.h"
#include "harness/vgpu/options.h"

namespace gradguard::vgpu::exec {

/// The rows by name, for one vector level.
class InstructionTable {
  public:
    /// Throws std::invalid_argument when the processor or the build lacks it. `Best` picks.
    static const InstructionTable& of(VectorLevel level);

    const Row* find(std::string_view name) const;
    /// The PTX row whose name has the same modifiers in another order, types in this one and the last one last;
    /// null when there is none or more than one.
    const Row* find_reordered(std::string_view name) const;
    /// Names of PTX instructions, sorted; internal rows left out.
    std::vector<std::string> names() const;

  private:
    explicit InstructionTable(RowSpan rows);
    void add(RowSpan rows);

    std::unordered_map<std::string_view, const Row*> rows_;
    /// By key_of(); made when it is first asked for, as few programs need it.
    mutable std::unordered_map<std::string, const Row*> reordered_;
    mutable std::once_flag reordered_once_;
};

/// What `Best` means on this processor.
VectorLevel resolve(VectorLevel level);

}  // namespace gradguard::vgpu::exec
