// SPDX-License-Identifier: Apache-2.0
// Which block, warp and path runs next, and barriers.
#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <sstream>

#include "harness/vgpu/launch.h"

namespace gradguard::vgpu {
namespace {

/// A cooperative grid needs all its blocks resident; no GPU holds more than this.
constexpr std::size_t kMaxResidents = 2048;
constexpr std::size_t kMaxPlaces = 8;

std::string hex_mask(std::uint32_t mask) {
    std::ostringstream text;
    text << "0x" << std::hex << mask;
    return text.str();
}

}  // namespace

/// A bijection of block numbers: multiplication by something that has no factor in common with their count.
std::uint64_t Launch::block_in_order(std::uint64_t position) const {
    const std::uint64_t count = config_.grid.count();
    if (!seeded_ || count < 2) return position;
    const std::uint64_t random = mix(options_.seed ^ mix(number_));
    std::uint64_t step = 1 + random % (count - 1);
    while (std::gcd(step, count) != 1) step = step % (count - 1) + 1;
    const unsigned __int128 product = static_cast<unsigned __int128>(position) * step + (random >> 20) % count;
    return static_cast<std::uint64_t>(product % count);
}

void Launch::admit() {
    while (residents_.size() < wanted_residents_ && next_block_ < config_.grid.count()) {
        std::unique_ptr<BlockRun> block;
        if (pool_.empty()) {
            block = new_block();
        } else {
            block = std::move(pool_.back());
            pool_.pop_back();
        }
        reset(*block, block_in_order(next_block_++));
        ++counters_.blocks;
        for (Observer* observer : observers_) observer->block_begin(block->index);
        residents_.push_back(std::move(block));
    }
}

void Launch::retire(std::size_t resident) {
    for (Observer* observer : observers_) observer->block_end(residents_[resident]->index);
    pool_.push_back(std::move(residents_[resident]));
    residents_.erase(residents_.begin() + static_cast<std::ptrdiff_t>(resident));
}

void Launch::run() {
    context_.allocations = memory_.views().data();
    context_.allocation_count = memory_.views().size();
    for (admit(); !residents_.empty(); admit()) {
        if (seeded_)
            current_resident_ = random_.below(residents_.size());
        else
            current_resident_ %= residents_.size();
        BlockRun& block = *residents_[current_resident_];
        const bool spins = take_turn(block);
        if (block.live_threads == 0) {
            retire(current_resident_);
        } else if (spins) {
            // Perhaps for something that a block does which is not here yet.
            wanted_residents_ = std::min(residents_.size() + 1, kMaxResidents);
            ++current_resident_;
        }
        if (counters_.warp_instructions > options_.instruction_budget) fail_no_progress();
    }
}

bool Launch::take_turn(BlockRun& block) {
    running_block_ = &block;
    do {
        Warp* const warp = pick_warp(block);
        if (!warp) {
            unblock(block);
            continue;
        }
        running_warp_ = static_cast<std::uint32_t>(warp - block.warps.data());
        const Path path = pick_path(*warp);
        const std::uint64_t most = slice();
        const Stop stop = watches_registers_ ? run_path<true, true>(block, *warp, path, most)
                          : watched_         ? run_path<true, false>(block, *warp, path, most)
                                             : run_path<false, false>(block, *warp, path, most);
        if (stop == Stop::Preempted && warp->instructions_without_progress >= options_.preemption_interval) {
            // Perhaps this path waits for lanes of its own warp that wait for it at a join.
            warp->release_joins();
            warp->instructions_without_progress = 0;
            ++block.current_warp;
            return true;
        }
        if (seeded_) return false;  // choose again, among the blocks too
        if (counters_.warp_instructions > options_.instruction_budget) fail_no_progress();
    } while (block.live_threads != 0);
    return false;
}

Warp* Launch::pick_warp(BlockRun& block) {
    const std::uint32_t first = seeded_ ? static_cast<std::uint32_t>(random_.below(block_warps_)) : block.current_warp;
    for (std::uint32_t i = 0; i < block_warps_; ++i) {
        const std::uint32_t candidate = (first + i) % block_warps_;
        if (block.warps[candidate].ready().empty()) continue;
        block.current_warp = candidate;
        return &block.warps[candidate];
    }
    return nullptr;
}

Path Launch::pick_path(Warp& warp) {
    std::vector<Path>& ready = warp.ready();
    // In turn: the path that was ready first; one that is preempted goes to the end.
    const std::size_t index = seeded_ ? random_.below(ready.size()) : 0;
    const Path path = ready[index];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(index));
    return path;
}

std::uint64_t Launch::slice() {
    if (!seeded_) return std::max<std::uint64_t>(1, options_.preemption_interval);
    return std::max<std::uint64_t>(
        1, std::min<std::uint64_t>(std::uint64_t{1} << random_.below(13), options_.preemption_interval));
}

// ---- barriers ------------------------------------------------------------------------------------------------------

void Launch::arrive_at_barrier(BlockRun& block, Warp& warp, const Path& path) {
    const decode::Segment& segment = program_.segments[path.segment];
    const std::uint32_t number = lane_value(segment.barrier, path.mask);
    const std::uint32_t count = segment.has_thread_count ? lane_value(segment.thread_count, path.mask) : 0;
    if (number >= kBarriers || count % exec::kLanes != 0 || (segment.has_thread_count && count == 0)) {
        throw LaunchError("kernel " + entry_.name + ", " + module_.file_name + ":" +
                          std::to_string(entry_.instructions[segment.end_instruction].line) + ": barrier " +
                          std::to_string(number) + " for " + std::to_string(count) +
                          " threads: numbers go to 15 and counts are multiples of 32");
    }
    Barrier& barrier = block.barriers[number];
    barrier.thread_count = count;
    if (segment.reduction != decode::Reduction::None) add_to_reduction(barrier, segment, path.mask);
    if (segment.waits) {
        barrier.waiting_threads += static_cast<std::uint32_t>(std::popcount(path.mask));
        warp.waiting().push_back({path, number});
    } else {
        barrier.arrived_threads +=
            path.mask == warp.alive() ? exec::kLanes : static_cast<std::uint32_t>(std::popcount(path.mask));
    }
    warp.instructions_without_progress = 0;
    if (!observers_.empty()) {
        const BarrierEvent event{{block.index, static_cast<std::uint32_t>(&warp - block.warps.data())},
                                 segment.end_instruction,
                                 number,
                                 path.mask,
                                 warp.alive(),
                                 segment.aligned,
                                 segment.waits,
                                 count};
        for (Observer* observer : observers_) observer->barrier(event);
    }
    check_barrier(block, number);
}

/// Threads that a barrier with a count has seen: a warp that is there with all it has counts as 32.
std::uint32_t Launch::counted_threads(const BlockRun& block, std::uint32_t number) const {
    std::uint32_t threads = block.barriers[number].arrived_threads;
    for (const Warp& warp : block.warps) {
        std::uint32_t mask = 0;
        for (const WaitingPath& waiting : warp.waiting()) mask |= waiting.barrier == number ? waiting.path.mask : 0;
        threads += mask != 0 && mask == warp.alive() ? exec::kLanes : static_cast<std::uint32_t>(std::popcount(mask));
    }
    return threads;
}

void Launch::check_barrier(BlockRun& block, std::uint32_t number) {
    const Barrier& barrier = block.barriers[number];
    if (barrier.waiting_threads + barrier.arrived_threads == 0) return;
    const bool full = barrier.thread_count == 0 ? barrier.waiting_threads == block.live_threads
                                                : counted_threads(block, number) >= barrier.thread_count;
    if (full) release_barrier(block, number);
}

void Launch::check_barriers(BlockRun& block) {
    for (std::uint32_t number = 0; number < kBarriers; ++number) check_barrier(block, number);
}

void Launch::release_barrier(BlockRun& block, std::uint32_t number) {
    ++counters_.barriers;
    release_reductions(block, number);
    block.barriers[number] = {};
    for (std::uint32_t w = 0; w < block_warps_; ++w) {
        Warp& warp = block.warps[w];
        if (warp.waiting().size() == 1 && warp.waiting()[0].barrier == number) {
            const Path path = warp.waiting()[0].path;
            warp.waiting().clear();
            pass_barrier(warp, path);
        } else if (!warp.waiting().empty()) {
            release_split_warp(block, w, number);
        }
    }
    for (Observer* observer : observers_) observer->barrier_complete(block.index, number);
}

void Launch::pass_barrier(Warp& warp, Path path) {
    path.segment = program_.segments[path.segment].next;
    if (warp.arrive(path)) warp.ready().push_back(path);
}

/// A warp of which several paths wait.
void Launch::release_split_warp(BlockRun& block, std::uint32_t index, std::uint32_t number) {
    Warp& warp = block.warps[index];
    std::vector<Path> released;
    for (const WaitingPath& one : warp.waiting()) {
        if (one.barrier != number) continue;
        const bool other_place =
            std::any_of(released.begin(), released.end(), [&](const Path& p) { return p.segment != one.path.segment; });
        if (other_place && program_.segments[one.path.segment].aligned) {
            report_divergent_barrier(block, index, one,
                                     "threads of one warp fill the barrier from different instructions");
        }
        // Paths that split before the barrier and met in it go on as one.
        const auto same = std::find_if(released.begin(), released.end(), [&](const Path& p) {
            return p.segment == one.path.segment && p.join == one.path.join;
        });
        if (same != released.end())
            same->mask |= one.path.mask;
        else
            released.push_back(one.path);
    }
    std::erase_if(warp.waiting(), [&](const WaitingPath& one) { return one.barrier == number; });
    for (const Path& path : released) pass_barrier(warp, path);
}

void Launch::report_divergent_barrier(const BlockRun& block, std::uint32_t warp, const WaitingPath& waiting,
                                      std::string detail) {
    Finding finding;
    finding.kind = FindingKind::DivergentBarrier;
    finding.place = place(program_.segments[waiting.path.segment].end_instruction);
    finding.block = block_id(block.index);
    finding.thread = thread_id(warp, static_cast<unsigned>(std::countr_zero(waiting.path.mask)));
    finding.detail = std::move(detail);
    report(std::move(finding));
}

// ---- no way on -----------------------------------------------------------------------------------------------------

/// No path of the block can run. Lanes that wait at joins go on, as they may on a GPU; else it is a deadlock.
void Launch::unblock(BlockRun& block) {
    bool any = false;
    for (std::uint32_t w = 0; w < block_warps_; ++w) {
        Warp& warp = block.warps[w];
        if (warp.lanes_at_joins() == 0) continue;
        for (const WaitingPath& waiting : warp.waiting()) {
            if (!program_.segments[waiting.path.segment].aligned) continue;
            report_divergent_barrier(block, w, waiting,
                                     "lanes " + hex_mask(waiting.path.mask) + " of " + hex_mask(warp.alive()) +
                                         " reach it, the others of the warp do not");
        }
        any |= warp.release_joins();
    }
    if (!any) fail_stuck(block);
}

std::string Launch::describe(const BlockRun& block) const {
    std::ostringstream text;
    std::size_t places = 0;
    const auto add = [&](std::uint32_t warp, std::uint32_t mask, std::uint32_t instruction, const std::string& what) {
        if (places++ >= kMaxPlaces) return;
        const Place at = place(instruction);
        text << (places > 1 ? "; " : "") << "warp " << warp << " lanes " << hex_mask(mask) << ' ' << what << " at line "
             << at.ptx_line << " '" << at.instruction << "'";
        if (at.source_line != 0) text << " (" << at.source_file << ":" << at.source_line << ")";
    };
    for (std::uint32_t w = 0; w < block_warps_; ++w) {
        for (const WaitingPath& waiting : block.warps[w].waiting()) {
            add(w, waiting.path.mask, program_.segments[waiting.path.segment].end_instruction,
                waiting.barrier == kWarpBarrier ? std::string("wait for lanes of their warp")
                                                : "wait at barrier " + std::to_string(waiting.barrier));
        }
        for (const Path& path : block.warps[w].ready()) {
            add(w, path.mask, program_.segments[path.segment].first_instruction, "run");
        }
    }
    if (places > kMaxPlaces) text << "; and " << places - kMaxPlaces << " more";
    return text.str();
}

void Launch::fail_stuck(const BlockRun& block) {
    Finding finding;
    finding.kind = FindingKind::Deadlock;
    for (std::uint32_t w = 0; w < block_warps_; ++w) {
        if (block.warps[w].waiting().empty()) continue;
        const WaitingPath& first = block.warps[w].waiting().front();
        finding.place = place(program_.segments[first.path.segment].end_instruction);
        finding.thread = thread_id(w, static_cast<unsigned>(std::countr_zero(first.path.mask)));
        break;
    }
    finding.block = block_id(block.index);
    finding.detail = describe(block);
    report(finding);
    throw LaunchError(std::move(finding));
}

void Launch::fail_no_progress() {
    const BlockRun& block = *residents_[std::min(current_resident_, residents_.size() - 1)];
    Finding finding;
    finding.kind = FindingKind::NoProgress;
    finding.place.kernel = entry_.name;
    finding.place.ptx_file = module_.file_name;
    finding.block = block_id(block.index);
    for (std::uint32_t w = 0; w < block_warps_; ++w) {
        if (block.warps[w].ready().empty()) continue;
        const Path& path = block.warps[w].ready().front();
        finding.place = place(program_.segments[path.segment].first_instruction);
        finding.thread = thread_id(w, static_cast<unsigned>(std::countr_zero(path.mask)));
        break;
    }
    finding.detail =
        "more than " + std::to_string(options_.instruction_budget) + " warp instructions; " + describe(block);
    report(finding);
    throw LaunchError(std::move(finding));
}

}  // namespace gradguard::vgpu
