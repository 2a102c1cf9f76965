// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace gradguard::programs {

/// The device compiler of the CUDA toolkit as a library, where it is installed.
class Nvrtc {
  public:
    Nvrtc();
    bool found() const { return library_ != nullptr; }

    /// The PTX for compute_80 of a source file, named relative to the project's root. `flags` come on top of the usual.
    /// Throws std::runtime_error with the compiler's words.
    std::string compile(const std::string& source, const std::vector<std::string>& flags) const;

  private:
    void* library_ = nullptr;  ///< Stays open: it does not unload cleanly.
};

}  // namespace gradguard::programs
