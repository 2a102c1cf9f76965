// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "harness/vgpu/decode/program.h"
#include "harness/vgpu/module.h"

namespace gradguard::vgpu {

/// Decoded entries, kept from machine to machine: decoding takes longer than a small launch. Seeds that fuse the same
/// pairs share a program. All options but the fusion seed must be the same at each call. Not for several threads at
/// once.
class ProgramCache {
  public:
    /// Valid as long as the cache. Throws PtxError.
    const decode::Program& get(const Module& module, const ast::Entry& entry, const decode::Options& options);

  private:
    struct Decoded {
        bool seeded = false;
        std::vector<std::uint64_t> choices;  ///< At each of the program's places.
        std::unique_ptr<const decode::Program> program;
    };
    /// By the id of the module, which is never reused, and the entry.
    std::map<std::pair<std::uint64_t, const ast::Entry*>, std::vector<Decoded>> entries_;
};

}  // namespace gradguard::vgpu
