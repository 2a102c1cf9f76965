// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/observers/counts.h"
#include "harness/observers/detector.h"
#include "harness/observers/simple.h"

namespace gradguard::vgpu {
class Machine;
}

namespace gradguard::observers {

struct ObserverOptions {
    /// Reports unordered writes of one value to one place too (SameValueWrite).
    bool same_value_writes = false;
};

/// The names that make_observers knows, in the order in which `all` attaches them.
std::vector<std::string> observer_names();

/// `names` is "all", "none", or names of observer_names() with commas between, each at most once. Where both races
/// observers are asked for, one object does the work of both, under the name "races".
/// Throws std::invalid_argument for an unknown or repeated name, with the known ones in the message.
std::vector<std::unique_ptr<Detector>> make_observers(std::string_view names, const ObserverOptions& options = {});

/// The observers of one machine: attached from construction to destruction.
class ObserverSet {
  public:
    /// Throws like make_observers(). The machine must outlive the set.
    ObserverSet(vgpu::Machine& machine, std::string_view names, const ObserverOptions& options = {});
    ~ObserverSet();
    ObserverSet(const ObserverSet&) = delete;
    ObserverSet& operator=(const ObserverSet&) = delete;

    std::span<const std::unique_ptr<Detector>> detectors() const { return detectors_; }
    /// Null when it was not asked for.
    Inputs* inputs() const { return inputs_; }
    Counts* counts() const { return counts_; }
    std::vector<Checked> checked() const;
    /// Findings that belong to no launch (leaks).
    std::vector<vgpu::Finding> final_findings() const;

  private:
    vgpu::Machine& machine_;
    std::vector<std::unique_ptr<Detector>> detectors_;
    Inputs* inputs_ = nullptr;
    Counts* counts_ = nullptr;
};

/// Adds what one run checked to `total`, by observer.
void add_checked(std::vector<Checked>& total, std::span<const Checked> run);
/// Names of observers that had nothing to check: a test run that has any of these proves nothing about them.
std::vector<std::string> checked_nothing(std::span<const Checked> total);

}  // namespace gradguard::observers
