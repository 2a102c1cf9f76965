// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace gradguard::cuda {

/// A library or a symbol of it is not there; the message says which, and what the loader said.
class LibraryError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A shared library that is looked for at run time, so that one binary runs with and without it. It stays loaded until
/// the process ends: threads and exit handlers of a driver outlive every object of ours.
class DynamicLibrary {
  public:
    /// `name` is a file name (found as the loader finds libraries) or a path. Throws LibraryError.
    static DynamicLibrary open(const std::string& name);
    /// The first of `names` that loads; throws LibraryError with what the loader said of each.
    static DynamicLibrary open_first(const std::vector<std::string>& names);

    const std::string& name() const { return name_; }
    /// The path of the file that was loaded, by a symbol of it.
    std::string path_of(const std::string& symbol) const;

    /// Null when the library does not export it.
    void* find(const std::string& symbol) const;
    /// Throws LibraryError.
    template <typename Function>
    Function* function(const std::string& symbol) const {
        return reinterpret_cast<Function*>(require(symbol));
    }

  private:
    DynamicLibrary(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}
    void* require(const std::string& symbol) const;

    std::string name_;
    void* handle_;
};

}  // namespace gradguard::cuda
