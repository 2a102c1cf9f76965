// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gradguard::cuda {

/// A folder of texts by key, compiled kernels above all, shared by all processes of a user. A file carries its key and
/// a hash of its text: one that is damaged, cut off or another's is no entry, and is written anew. Files appear whole
/// or not at all. Nothing here is ever a failure: what the folder does not allow is said in problem(), and the caller
/// compiles.
class CompileCache {
  public:
    /// $XDG_CACHE_HOME/gradguard, else $HOME/.cache/gradguard; empty where neither variable is set.
    static std::string usual_folder();

    /// Makes the folder if need be, for this user alone. An empty name: no cache.
    explicit CompileCache(std::string folder);

    /// Why nothing is kept, in one line; empty as long as there is no problem.
    const std::string& problem() const { return problem_; }

    std::optional<std::string> find(const std::string& key) const;
    void store(const std::string& key, std::string_view text);

  private:
    std::string path_of(const std::string& key) const;

    std::string folder_;  ///< Empty: no cache.
    std::string problem_;
};

}  // namespace gradguard::cuda
