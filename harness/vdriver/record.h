// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "harness/observers/counts.h"
#include "harness/observers/detector.h"
#include "harness/vgpu/finding_log.h"
#include "harness/vgpu/module.h"
#include "harness/vgpu/options.h"

namespace gradguard::vdriver {

class Context;
class Driver;

/// What one kernel did, all launches together.
struct KernelRecord {
    std::string ptx_file;
    std::uint64_t launches = 0;
    std::uint64_t failed_launches = 0;
    vgpu::Counters counters;
    std::set<std::string> approximate;                  ///< In the kernel, executed or not.
    std::set<std::string> flushing;                     ///< The same, instructions with .ftz.
    std::map<std::string, std::uint64_t> instructions;  ///< Lane instructions by name, when counted.
};

/// What the report tells, gathered while the program runs.
class Record {
  public:
    /// Before a launch.
    KernelRecord& of_kernel(const vgpu::Module& program, const vgpu::EntryInfo& entry);
    /// Says it on standard error, each text once.
    void say(const std::string& text);
    void refused(const std::string& text);
    void failed(const std::string& text);
    /// Says the name once.
    void not_supported(const std::string& function);
    /// Takes over what a context has found and counted.
    void add(const Context& context);

    nlohmann::ordered_json to_json(const Driver& driver) const;

  private:
    std::map<std::string, KernelRecord, std::less<>> kernels_;
    std::map<std::string, observers::Totals> totals_;
    vgpu::FindingLog findings_;
    std::vector<observers::Checked> checked_;
    std::vector<std::string> refused_;
    std::vector<std::string> failures_;
    std::map<std::string, std::uint64_t> not_supported_;
    std::set<std::string> said_;
};

/// Writes the report where the configuration wants it. Called when the process ends.
void write_report();

}  // namespace gradguard::vdriver
