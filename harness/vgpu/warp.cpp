// SPDX-License-Identifier: Apache-2.0
#include "harness/vgpu/warp.h"

namespace gradguard::vgpu {

void Warp::reset(std::uint32_t lanes) {
    alive_ = lanes;
    ready_.assign(1, Path{lanes, 0, kNoJoin});
    waiting_.clear();
    joins_.clear();
    joins_in_use_ = 0;
    instructions_without_progress = 0;
    copies.clear();
}

std::uint32_t Warp::join_for(const Path& path, std::uint32_t reconverge) {
    if (reconverge == decode::kNoSegment) return path.join;
    // A loop that sheds lanes round by round has one join, not one for each round.
    if (path.join != kNoJoin && joins_[path.join].segment == reconverge) return path.join;
    std::uint32_t index = 0;
    if (joins_in_use_ == joins_.size()) {
        index = static_cast<std::uint32_t>(joins_.size());
        joins_.emplace_back();
    } else {
        while (joins_[index].in_use) ++index;
    }
    joins_[index] = {reconverge, path.mask, 0, path.join, true};
    ++joins_in_use_;
    return index;
}

bool Warp::arrive_at_join(Path& path) {
    while (path.join != kNoJoin && joins_[path.join].segment == path.segment) {
        Join& join = joins_[path.join];
        join.arrived |= path.mask;
        join.pending &= ~path.mask;
        if (join.pending != 0) return false;
        path.mask = join.arrived;
        path.join = join.parent;
        join.in_use = false;
        --joins_in_use_;
    }
    return true;
}

void Warp::exit(std::uint32_t lanes) {
    alive_ &= ~lanes;
    if (joins_in_use_ == 0) return;
    for (std::size_t i = 0; i < joins_.size(); ++i) {
        Join& join = joins_[i];
        if (!join.in_use) continue;
        join.pending &= ~lanes;
        if (join.pending != 0) continue;
        join.in_use = false;
        --joins_in_use_;
        if (join.arrived == 0) continue;
        Path path{join.arrived, join.segment, join.parent};
        if (arrive(path)) ready_.push_back(path);
    }
}

bool Warp::release_joins() {
    bool any = false;
    for (std::size_t i = 0; i < joins_.size(); ++i) {
        Join& join = joins_[i];
        if (!join.in_use || join.arrived == 0) continue;
        Path path{join.arrived, join.segment, join.parent};
        join.arrived = 0;
        any = true;
        if (arrive(path)) ready_.push_back(path);
    }
    return any;
}

std::uint32_t Warp::lanes_at_joins() const {
    std::uint32_t lanes = 0;
    for (const Join& join : joins_) lanes |= join.in_use ? join.arrived : 0;
    return lanes;
}

}  // namespace gradguard::vgpu
