// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/driver.h"

namespace gradguard::testing {

/// A driver whose calls are recorded and can be made to fail: a layer over the functions of another. There is one at a
/// time, for the driver's functions take no object; its tests use one thread.
class WatchedDriver {
  public:
    explicit WatchedDriver(const std::shared_ptr<const cuda::Driver>& inner);
    ~WatchedDriver();
    WatchedDriver(const WatchedDriver&) = delete;
    WatchedDriver& operator=(const WatchedDriver&) = delete;

    const std::shared_ptr<const cuda::Driver>& driver() const { return driver_; }

    /// Names of the calls since the last forget().
    const std::vector<std::string>& calls() const { return calls_; }
    std::size_t count(const std::string& name) const;
    void forget() { calls_.clear(); }

    /// The n-th call from now (0 is the next) returns `result` and does nothing.
    void fail(std::size_t n, cuda::CUresult result);
    /// The same for the n-th call of one name, and for `times` calls from it on.
    void fail(const std::string& name, std::size_t n, cuda::CUresult result, std::size_t times = 1);
    /// The call that was made to fail; empty as long as none was.
    const std::string& failed() const { return failed_; }

    /// What a call is to return instead of doing anything; for the functions that stand before the driver's.
    std::optional<cuda::CUresult> enter(const char* name);
    const cuda::DriverFunctions& inner() const { return inner_->functions(); }

  private:
    std::shared_ptr<const cuda::Driver> inner_;
    std::shared_ptr<const cuda::Driver> driver_;
    std::vector<std::string> calls_;
    std::optional<std::size_t> left_;
    std::string name_;  ///< Whose calls left_ counts; empty: all.
    cuda::CUresult result_ = cuda::CUDA_SUCCESS;
    std::size_t times_ = 1;
    std::string failed_;
};

}  // namespace gradguard::testing
