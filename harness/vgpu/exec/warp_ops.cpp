// SPDX-License-Identifier: Apache-2.0
// shfl, vote, match, redux, elect: lanes of a warp together. The scheduler runs them once the members are there. Also
// what a barrier with a reduction hands out. One form for all vector units.
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "harness/vgpu/exec/op.h"

namespace gradguard::vgpu::exec {
namespace {

#include "harness/vgpu/exec/lanes.inl"

/// What a lane gets from a lane that does not take part: the manual leaves it open.
constexpr u32 kNobodysValue = 0xFFC5DEADU;

template <class T>
struct LaneValues {
    T lane[kLanes];

    LaneValues(Context& c, const Op& op, unsigned operand) {
        for (unsigned i = 0; i < kLanes; ++i) lane[i] = Slot<T>::read(slot<T>(c, op, operand)[i]);
    }
};

/// Calls f(lane) for every lane of the mask.
template <class F>
void each_lane(u32 mask, F&& f) {
    for (; mask != 0; mask &= mask - 1) f(static_cast<unsigned>(__builtin_ctz(mask)));
}

void set_lane(u32& predicate_bits, unsigned lane, bool value) {
    predicate_bits = value ? predicate_bits | kBit32[lane] : predicate_bits & ~kBit32[lane];
}

enum class Shuffle { Up, Down, Butterfly, Index };

template <Shuffle kMode>
struct ShuffleLanes {
    template <bool>
    static void run(Context& c, const Op& op) {
        const LaneValues<u32> a(c, op, 2), b(c, op, 3), control(c, op, 4);
        u32& in_range = predicate(c, op, 1);
        each_lane(c.mask, [&](unsigned i) {
            const u32 amount = b.lane[i] & 31U;
            const u32 segment = control.lane[i] >> 8 & 31U, clamp = control.lane[i] & 31U;
            const int limit = static_cast<int>((i & segment) | (clamp & ~segment));
            int j = 0;
            if (kMode == Shuffle::Up) j = static_cast<int>(i) - static_cast<int>(amount);
            if (kMode == Shuffle::Down) j = static_cast<int>(i + amount);
            if (kMode == Shuffle::Butterfly) j = static_cast<int>(i ^ amount);
            if (kMode == Shuffle::Index) j = static_cast<int>((i & segment) | (amount & ~segment));
            const bool inside = kMode == Shuffle::Up ? j >= limit : j <= limit;
            const unsigned source = inside ? static_cast<unsigned>(j) : i;
            const bool takes_part = (c.mask & c.members[i] & kBit32[source]) != 0;
            slot<u32>(c, op, 0)[i] = takes_part ? a.lane[source] : kNobodysValue;
            set_lane(in_range, i, inside);
        });
    }
};

enum class Vote { All, Any, Uniform };

template <Vote kVote>
struct VoteLanes {
    template <bool>
    static void run(Context& c, const Op& op) {
        const u32 votes = predicate(c, op, 1);
        u32 result = predicate(c, op, 0);
        each_lane(c.mask, [&](unsigned i) {
            const u32 members = c.mask & c.members[i], yes = votes & members;
            set_lane(result, i,
                     kVote == Vote::All   ? yes == members
                     : kVote == Vote::Any ? yes != 0
                                          : yes == members || yes == 0);
        });
        predicate(c, op, 0) = result;
    }
};

struct Ballot {
    template <bool>
    static void run(Context& c, const Op& op) {
        const u32 votes = predicate(c, op, 1);
        each_lane(c.mask, [&](unsigned i) { slot<u32>(c, op, 0)[i] = votes & c.mask & c.members[i]; });
    }
};

template <class T>
u32 lanes_equal_to(const LaneValues<T>& values, T wanted, u32 members) {
    u32 equal = 0;
    each_lane(members, [&](unsigned i) { equal |= values.lane[i] == wanted ? kBit32[i] : 0; });
    return equal;
}

template <class T>
struct MatchAny {
    template <bool>
    static void run(Context& c, const Op& op) {
        const LaneValues<T> values(c, op, 1);
        each_lane(c.mask, [&](unsigned i) {
            slot<u32>(c, op, 0)[i] = lanes_equal_to(values, values.lane[i], c.mask & c.members[i]);
        });
    }
};

template <class T>
struct MatchAll {
    template <bool>
    static void run(Context& c, const Op& op) {
        const LaneValues<T> values(c, op, 2);
        u32& same = predicate(c, op, 1);
        each_lane(c.mask, [&](unsigned i) {
            const u32 members = c.mask & c.members[i];
            const bool all = lanes_equal_to(values, values.lane[i], members) == members;
            slot<u32>(c, op, 0)[i] = all ? members : 0;
            set_lane(same, i, all);
        });
    }
};

#define REDUCTION(name, expression) \
    struct name {                   \
        template <class T>          \
        static T apply(T a, T b) {  \
            return expression;      \
        }                           \
    }
REDUCTION(Sum, static_cast<T>(static_cast<u32>(a) + static_cast<u32>(b)));
REDUCTION(Least, b < a ? b : a);
REDUCTION(Greatest, b > a ? b : a);
REDUCTION(And, a& b);
REDUCTION(Or, a | b);
REDUCTION(Xor, a ^ b);
#undef REDUCTION

template <class F, class T>
struct Reduce {
    template <bool>
    static void run(Context& c, const Op& op) {
        const LaneValues<T> values(c, op, 1);
        each_lane(c.mask, [&](unsigned i) {
            const u32 members = c.mask & c.members[i];
            T result = values.lane[__builtin_ctz(members)];
            each_lane(members & (members - 1), [&](unsigned k) { result = F::apply(result, values.lane[k]); });
            slot<T>(c, op, 0)[i] = Slot<T>::write(result);
        });
    }
};

/// One lane of the members leads; which one the manual leaves open, but for the same members it is the same. The seed
/// picks; without one it is the first.
struct Elect {
    template <bool>
    static void run(Context& c, const Op& op) {
        u32& leads = predicate(c, op, 1);
        each_lane(c.mask, [&](unsigned i) {
            u32 candidates = c.mask & c.members[i];
            u64 skipped = c.approximation_seed == 0 ? 0 : (c.approximation_seed ^ candidates) * 0x9E3779B97F4A7C15ULL;
            for (skipped = (skipped >> 32) % static_cast<u64>(__builtin_popcount(candidates)); skipped != 0; --skipped)
                candidates &= candidates - 1;
            const auto leader = static_cast<unsigned>(__builtin_ctz(candidates));
            slot<u32>(c, op, 0)[i] = leader;
            set_lane(leads, i, leader == i);
        });
    }
};

struct ActiveMask {
    template <bool>
    static void run(Context& c, const Op& op) {
        each_lane(c.mask, [&](unsigned i) { slot<u32>(c, op, 0)[i] = c.mask; });
    }
};

/// What all threads of a barrier get.
struct BarrierResult {
    template <bool>
    static void run(Context& c, const Op& op) {
        each_lane(c.mask, [&](unsigned i) { slot<u32>(c, op, 0)[i] = c.reduction; });
    }
};
struct BarrierVerdict {
    template <bool>
    static void run(Context& c, const Op& op) {
        u32& d = predicate(c, op, 0);
        d = (d & ~c.mask) | (c.reduction != 0 ? c.mask : 0);
    }
};

// NOLINTBEGIN(bugprone-macro-parentheses): types and templates as arguments
#define ROW(name, format, flags, ...) \
    { name, format, &__VA_ARGS__::template run<false>, &__VA_ARGS__::template run<true>, flags }
const Row kRows[] = {
    ROW("shfl.sync.up.b32", "Wp=Www", kWarp, ShuffleLanes<Shuffle::Up>),
    ROW("shfl.sync.down.b32", "Wp=Www", kWarp, ShuffleLanes<Shuffle::Down>),
    ROW("shfl.sync.bfly.b32", "Wp=Www", kWarp, ShuffleLanes<Shuffle::Butterfly>),
    ROW("shfl.sync.idx.b32", "Wp=Www", kWarp, ShuffleLanes<Shuffle::Index>),
    ROW("vote.sync.all.pred", "p=p", kWarp, VoteLanes<Vote::All>),
    ROW("vote.sync.any.pred", "p=p", kWarp, VoteLanes<Vote::Any>),
    ROW("vote.sync.uni.pred", "p=p", kWarp, VoteLanes<Vote::Uniform>),
    ROW("vote.sync.ballot.b32", "W=p", kWarp, Ballot),
    ROW("match.any.sync.b32", "W=W", kWarp, MatchAny<u32>),
    ROW("match.any.sync.b64", "W=D", kWarp, MatchAny<u64>),
    ROW("match.all.sync.b32", "Wp=W", kWarp, MatchAll<u32>),
    ROW("match.all.sync.b64", "Wp=D", kWarp, MatchAll<u64>),
    ROW("redux.sync.add.u32", "w=w", kWarp, Reduce<Sum, u32>),
    ROW("redux.sync.add.s32", "w=w", kWarp, Reduce<Sum, s32>),
    ROW("redux.sync.min.u32", "w=w", kWarp, Reduce<Least, u32>),
    ROW("redux.sync.min.s32", "w=w", kWarp, Reduce<Least, s32>),
    ROW("redux.sync.max.u32", "w=w", kWarp, Reduce<Greatest, u32>),
    ROW("redux.sync.max.s32", "w=w", kWarp, Reduce<Greatest, s32>),
    ROW("redux.sync.and.b32", "W=W", kWarp, Reduce<And, u32>),
    ROW("redux.sync.or.b32", "W=W", kWarp, Reduce<Or, u32>),
    ROW("redux.sync.xor.b32", "W=W", kWarp, Reduce<Xor, u32>),
    ROW("elect.sync", "Wp=", kWarp, Elect),
    ROW("activemask.b32", "W=", kPlain, ActiveMask),
    ROW("%barrier.u32", "w=p", kInternal, BarrierResult),
    ROW("%barrier.pred", "p=p", kInternal, BarrierVerdict),
};
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace

RowSpan warp_rows() { return {kRows, sizeof(kRows) / sizeof(Row)}; }

}  // namespace gradguard::vgpu::exec
