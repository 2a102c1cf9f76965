// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <random>
#include <vector>

#include "harness/observers/races.h"
#include "tests/observers/fake_launch.h"

/// The races observer against the plainest model of the same relation: a full vector clock for each thread, all
/// accesses of each byte kept. Random event sequences; both must agree whether there is a race.
namespace gradguard::observers::test {
namespace {

constexpr std::uint32_t kBlocks = 2;
constexpr std::uint32_t kBlockThreads = 64;
constexpr std::uint32_t kThreads = kBlocks * kBlockThreads;
constexpr std::uint32_t kBytes = 512;
constexpr std::uint32_t kFlags = 2;
constexpr vgpu::Address kData = allocation(0);
constexpr vgpu::Address kFlag = allocation(1);

using Vector = std::array<std::uint32_t, kThreads>;

void join_into(Vector& target, const Vector& other) {
    for (std::uint32_t i = 0; i < kThreads; ++i) target[i] = std::max(target[i], other[i]);
}

class Reference {
  public:
    Reference() {
        for (std::uint32_t t = 0; t < kThreads; ++t) threads_[t].clock[t] = 1;
    }
    void access(bool shared, std::uint32_t thread, std::uint32_t byte, bool writes) {
        std::vector<Seen>& seen = shared ? shared_[thread / kBlockThreads][byte] : global_[byte];
        for (const Seen& other : seen) {
            race_ |= !is_ordered(other, thread) && (writes || other.writes);
        }
        seen.push_back({thread, threads_[thread].clock[thread], writes});
    }
    void barrier(std::uint32_t block) {
        Vector all{};
        Vector& published = published_[block];
        for (std::uint32_t t = block * kBlockThreads; t < (block + 1) * kBlockThreads; ++t) {
            join_into(all, threads_[t].clock);
            join_into(all, threads_[t].pending);
            if (threads_[t].has_fence) join_into(published, threads_[t].fence);
        }
        for (std::uint32_t t = block * kBlockThreads; t < (block + 1) * kBlockThreads; ++t) {
            threads_[t].clock = all;
            ++threads_[t].clock[t];
        }
    }
    void warp_sync(std::uint32_t block, std::uint32_t warp, std::uint32_t mask) {
        Vector all{};
        for (std::uint32_t i = 0; i < 32; ++i) {
            if (mask >> i & 1) {
                join_into(all, threads_[block * kBlockThreads + warp * 32 + i].clock);
                join_into(all, threads_[block * kBlockThreads + warp * 32 + i].pending);
            }
        }
        for (std::uint32_t i = 0; i < 32; ++i) {
            const std::uint32_t t = block * kBlockThreads + warp * 32 + i;
            if (mask >> i & 1) {
                join_into(threads_[t].clock, all);
                ++threads_[t].clock[t];
            }
        }
    }
    void fence(std::uint32_t t) {
        Thread& thread = threads_[t];
        join_into(thread.clock, thread.pending);
        join_into(thread.clock, thread.pending_load);
        thread.fence = thread.clock;
        thread.has_fence = true;
        ++thread.clock[t];
    }
    void atomic(std::uint32_t t, std::uint32_t flag) {
        Thread& thread = threads_[t];
        join_into(thread.pending, flags_[flag]);
        release(t, flag);
        strong(t, flag, Strong::Atomic);
    }
    void strong_load(std::uint32_t t, std::uint32_t flag) {
        join_into(threads_[t].pending_load, flags_[flag]);
        strong(t, flag, Strong::Load);
    }
    void strong_store(std::uint32_t t, std::uint32_t flag) {
        flags_[flag] = {};
        release(t, flag);
        strong(t, flag, Strong::Store);
    }
    /// A load or store of a flag that is not strong. A strong write is ordered before it also when an atomic or strong
    /// load that has read it is, directly or by a chain of atomics.
    void weak_flag(std::uint32_t t, std::uint32_t flag, bool writes) {
        for (const Seen& other : weak_[flag]) race_ |= !is_ordered(other, t) && (writes || other.writes);
        const std::vector<Link>& links = strong_[flag];
        for (std::size_t i = 0; i < links.size(); ++i) {
            if (links[i].kind == Strong::Load) {
                race_ |= writes && !is_ordered(links[i].seen, t);
                continue;
            }
            bool ordered = is_ordered(links[i].seen, t);
            for (std::size_t k = i + 1; k < links.size() && links[k].kind != Strong::Store; ++k)
                ordered |= is_ordered(links[k].seen, t);
            // What was ordered before a weak access of somebody is so before all that comes after that.
            for (const Seen& other : weak_[flag]) ordered |= other.index > i && is_ordered(other, t);
            race_ |= !ordered;
        }
        if (writes) strong_[flag].clear();
        weak_[flag].push_back({t, threads_[t].clock[t], writes, writes ? 0 : links.size()});
    }
    bool race() const { return race_; }

  private:
    struct Seen {
        std::uint32_t thread;
        std::uint32_t time;
        bool writes;
        std::size_t index = 0;  ///< Weak accesses of a flag: how many strong ones there were.
    };
    enum class Strong { Load, Store, Atomic };
    struct Link {
        Seen seen;
        Strong kind;
    };
    void strong(std::uint32_t t, std::uint32_t flag, Strong kind) {
        for (const Seen& other : weak_[flag]) race_ |= !is_ordered(other, t) && (kind != Strong::Load || other.writes);
        strong_[flag].push_back({{t, threads_[t].clock[t], kind != Strong::Load}, kind});
    }
    void release(std::uint32_t t, std::uint32_t flag) {
        if (threads_[t].has_fence) join_into(flags_[flag], threads_[t].fence);
        join_into(flags_[flag], published_[t / kBlockThreads]);
    }
    struct Thread {
        Vector clock{};
        Vector fence{};
        Vector pending{};       ///< From atomics, until a fence or a barrier.
        Vector pending_load{};  ///< From strong loads, until a fence.
        bool has_fence = false;
    };
    bool is_ordered(const Seen& earlier, std::uint32_t thread) const {
        return earlier.thread == thread || earlier.time <= threads_[thread].clock[earlier.thread];
    }

    std::array<Thread, kThreads> threads_;
    std::array<Vector, kBlocks> published_{};
    std::array<Vector, kFlags> flags_{};
    std::array<std::vector<Link>, kFlags> strong_;  ///< Since the last weak store.
    std::array<std::vector<Seen>, kFlags> weak_;
    std::array<std::vector<Seen>, kBytes> global_;
    std::array<std::array<std::vector<Seen>, kBytes>, kBlocks> shared_;
    bool race_ = false;
};

/// One random access of a warp: neighbouring bytes, one place, or scattered places; any size and mask.
void random_access(std::mt19937& random, FakeLaunch& launch, Reference& reference, Warp warp) {
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    const bool shared = below(2) != 0;
    const bool writes = below(3) == 0;
    constexpr std::array<std::uint32_t, 6> kSizes{4, 4, 4, 1, 2, 16};
    const std::uint32_t bytes = kSizes[below(6)];
    constexpr std::array<std::uint32_t, 4> kMasks{~0U, 0xFFFF, 1, 0xFF00};
    warp.mask = kMasks[below(4)];
    std::array<std::uint32_t, 32> offsets{};
    const std::uint32_t shape = below(8);
    const std::uint32_t places = kBytes / bytes;
    const std::uint32_t start = below(2) != 0 ? warp.warp * 32 : below(places);
    for (std::uint32_t i = 0; i < 32; ++i) {
        if (shape == 0 && !writes)
            offsets[i] = start % places * bytes;
        else if (shape == 1)
            offsets[i] = (start + i * 5) % places * bytes;
        else
            offsets[i] = (start + i) % places * bytes;
    }
    const vgpu::Address base = shared ? 0 : kData;
    const How how{shared ? vgpu::Space::Shared : vgpu::Space::Global, bytes};
    const auto addresses = [&](std::uint32_t lane) { return base + offsets[lane]; };
    const std::uint32_t line = 1 + below(1000);
    if (writes)
        launch.store(warp, line, addresses, how);
    else
        launch.load(warp, line, addresses, how);
    const auto first = static_cast<std::uint32_t>(warp.block * kBlockThreads + warp.warp * 32);
    for (std::uint32_t i = 0; i < 32; ++i) {
        if ((warp.mask >> i & 1) == 0) continue;
        for (std::uint32_t byte = 0; byte < bytes; ++byte)
            reference.access(shared, first + i, offsets[i] + byte, writes);
    }
}

/// A load or store of a flag by the one lane of `warp`, weak or volatile.
void access_flag(FakeLaunch& launch, Reference& reference, Warp warp, std::uint32_t flag, std::uint32_t what) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(warp.mask));
    const auto thread = static_cast<std::uint32_t>(warp.block * kBlockThreads + warp.warp * 32 + lane);
    const bool writes = what % 2 != 0, weak = what < 2;
    const How how{vgpu::Space::Global, 4, weak ? vgpu::Order::Weak : vgpu::Order::Volatile, vgpu::Scope::System};
    if (writes)
        launch.store(warp, 2004, same(kFlag + flag * 4), how);
    else
        launch.load(warp, 2005, same(kFlag + flag * 4), how);
    if (weak)
        reference.weak_flag(thread, flag, writes);
    else if (writes)
        reference.strong_store(thread, flag);
    else
        reference.strong_load(thread, flag);
}

/// Whether the observer and the reference found a race.
std::pair<bool, bool> random_launch(std::uint32_t seed, Races& races) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    FakeLaunch launch(races, {{kBlocks, 1, 1}, {kBlockThreads, 1, 1}}, kBytes);
    Reference reference;
    const std::uint32_t events = 4 + below(40);
    // Mostly synchronisation, so that many sequences are free of races.
    for (std::uint32_t i = 0; i < events && !reference.race(); ++i) {
        const std::uint32_t block = below(kBlocks), warp = below(2);
        const std::uint32_t thread = block * kBlockThreads + warp * 32;
        switch (below(12)) {
            case 0:
            case 1:
            case 2:
                launch.barrier(block, 2000);
                reference.barrier(block);
                break;
            case 3: {
                const std::uint32_t mask = below(2) != 0 ? ~0U : 0xFFFF;
                launch.warp_sync({block, warp, mask}, 2001);
                reference.warp_sync(block, warp, mask);
                break;
            }
            case 4: {
                const std::uint32_t mask = below(2) != 0 ? ~0U : 1;
                launch.fence({block, warp, mask}, 2002);
                for (std::uint32_t lane = 0; lane < 32; ++lane) {
                    if (mask >> lane & 1) reference.fence(thread + lane);
                }
                break;
            }
            case 5:
            case 6: {
                const std::uint32_t flag = below(kFlags), mask = 1 + below(3);
                launch.atomic({block, warp, mask}, 2003, same(kFlag + flag * 4));
                for (std::uint32_t lane = 0; lane < 2; ++lane) {
                    if (mask >> lane & 1) reference.atomic(thread + lane, flag);
                }
                break;
            }
            case 7: {
                access_flag(launch, reference, {block, warp, 1U << below(2)}, below(kFlags), below(4));
                break;
            }
            default:
                random_access(random, launch, reference, {block, warp});
        }
    }
    return {!launch.end().empty(), reference.race()};
}

TEST(RacesAgainstReference, AgreeOnRandomLaunches) {
    Races races{RaceOptions{}};
    races.allocated(kData, kBytes);
    races.allocated(kFlag, 64);
    std::uint32_t with_race = 0;
    constexpr std::uint32_t kLaunches = 20'000;
    for (std::uint32_t seed = 0; seed < kLaunches; ++seed) {
        const auto [found, wanted] = random_launch(seed, races);
        ASSERT_EQ(found, wanted) << "seed " << seed;
        with_race += wanted;
    }
    // Both kinds were there.
    EXPECT_GT(with_race, kLaunches / 10);
    EXPECT_LT(with_race, kLaunches - kLaunches / 10);
}

}  // namespace
}  // namespace gradguard::observers::test
