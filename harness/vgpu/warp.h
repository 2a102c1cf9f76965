// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/vgpu/async_copy.h"
#include "harness/vgpu/decode/program.h"

namespace gradguard::vgpu {

inline constexpr std::uint32_t kNoJoin = 0xFFFFFFFFU;

/// Lanes of a warp that go the same way.
struct Path {
    std::uint32_t mask = 0;
    std::uint32_t segment = 0;  ///< Where it goes on.
    std::uint32_t join = kNoJoin;
};

/// Where lanes that went different ways meet again: the immediate post-dominator of the branch.
struct Join {
    std::uint32_t segment = 0;
    std::uint32_t pending = 0;  ///< Lanes still under way.
    std::uint32_t arrived = 0;
    std::uint32_t parent = kNoJoin;
    bool in_use = false;
};

/// A path that waits at a barrier. Its `segment` is the one that the barrier ends.
struct WaitingPath {
    Path path;
    std::uint32_t barrier = 0;
};

/// A warp is a set of paths. Any that is ready may run next; none has to wait for another but at joins and barriers,
/// and joins give way when somebody spins (release_joins).
class Warp {
  public:
    void reset(std::uint32_t lanes);

    std::uint32_t alive() const { return alive_; }
    std::vector<Path>& ready() { return ready_; }
    std::vector<WaitingPath>& waiting() { return waiting_; }
    const std::vector<Path>& ready() const { return ready_; }
    const std::vector<WaitingPath>& waiting() const { return waiting_; }

    /// The join of a branch at which `path` splits; kNoJoin when the sides meet no more.
    std::uint32_t join_for(const Path& path, std::uint32_t reconverge);
    /// `path` has come to its segment: true if it goes on (perhaps with more lanes, from a join that is now full),
    /// false if it waits there for others.
    bool arrive(Path& path) {
        if (path.join == kNoJoin || joins_[path.join].segment != path.segment) return true;
        return arrive_at_join(path);
    }
    /// Ends lanes; paths that waited for them alone become ready.
    void exit(std::uint32_t lanes);
    /// Lets lanes that wait at joins go on without the others. False if none waits.
    bool release_joins();
    /// Lanes that wait at joins.
    std::uint32_t lanes_at_joins() const;

    std::byte* frame = nullptr;
    std::byte* local = nullptr;  ///< Memory of its threads.
    // By tracked register (decode::Definedness), where observers ask for it: lanes in which a bit is undefined, which
    // bits of these (32 masks each, one for a lane), and where they come from (Launch::origin_of_load).
    std::uint32_t* undefined = nullptr;
    std::uint64_t* undefined_bits = nullptr;
    std::uint32_t* copied = nullptr;  ///< Of these lanes, those that hold what a load gave of which a part is defined.
    std::uint32_t* origins = nullptr;
    std::uint64_t instructions_without_progress = 0;
    AsyncCopies copies;

  private:
    bool arrive_at_join(Path& path);

    std::uint32_t alive_ = 0;
    std::vector<Path> ready_;
    std::vector<WaitingPath> waiting_;
    std::vector<Join> joins_;
    std::uint32_t joins_in_use_ = 0;
};

}  // namespace gradguard::vgpu
