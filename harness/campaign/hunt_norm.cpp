// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/hunt_norm.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>

#include "harness/compare/norm_bound.h"
#include "reference/model/statistics.h"

namespace gradguard::harness {
namespace {

constexpr std::size_t kLanes = 256;
/// Without a better value among so many tries everything is drawn anew.
constexpr std::uint64_t kPatience = 400000;

/// The contract's pair and its bound, side by side.
struct Node {
    GradientSummary pair;
    BoundNode bound;
};

Node leaf(float value) { return {{value, 1.0F, 0.0F}, {value, static_cast<double>(value) * value, 0.0}}; }
Node merge(const Node& a, const Node& b) {
    return {reference::merge_summaries(a.pair, b.pair), merge_bounds(a.bound, b.bound)};
}

/// The contract's tree over 256 lanes with every level kept, so that one lane's change costs one path.
class LaneTree {
  public:
    void set(std::size_t lane, const Node& node) {
        levels_[0][lane] = node;
        std::size_t half = kLanes / 2;
        for (std::size_t level = 1; half != 0; ++level, half /= 2) {
            const std::size_t at = lane % half;
            levels_[level][at] = merge(levels_[level - 1][at], levels_[level - 1][at + half]);
        }
    }
    const Node& root() const { return levels_[8][0]; }

  private:
    std::array<std::array<Node, kLanes>, 9> levels_{};
};

/// One tensor's reduction (contract section 4), of up to 256 blocks.
class TensorTree {
  public:
    explicit TensorTree(std::vector<float> values)
        : values_(std::move(values)), blocks_(reference::reduction_blocks(values_.size())), trees_(blocks_) {
        for (std::size_t i = 0; i < values_.size(); ++i) set(i, values_[i]);
    }

    void set(std::size_t i, float value) {
        values_[i] = value;
        const std::size_t block = i / kLanes % blocks_;
        const std::size_t lane = i % kLanes;
        Node node{};
        for (std::size_t k = block * kLanes + lane; k < values_.size(); k += kLanes * blocks_) {
            node = merge(node, leaf(values_[k]));
        }
        trees_[block].set(lane, node);
        if (blocks_ > 1) partials_.set(block, trees_[block].root());
    }

    /// The signed error of sumsq as a share of its bound.
    double used() const {
        const Node& root = blocks_ > 1 ? partials_.root() : trees_[0].root();
        const auto scale = static_cast<double>(root.pair.scale);
        return (scale * scale * static_cast<double>(root.pair.sumsq) - root.bound.sum) / root.bound.error;
    }
    const std::vector<float>& values() const { return values_; }

  private:
    std::vector<float> values_;
    std::size_t blocks_;
    std::vector<LaneTree> trees_;
    LaneTree partials_;
};

float drawn(Random& random) { return 1.0F + static_cast<float>(random.below((1U << 23U) + 1)) * 0x1p-23F; }

/// A few bits beside it, or anything: small steps move the last levels of the tree, large ones the first.
float neighbour(float value, Random& random) {
    if (random.percent(40)) return drawn(random);
    return std::clamp(mutated(value, random), 1.0F, 2.0F);
}

/// Good subtrees, level by level: a lane's chain grows by one element, then two lanes (or blocks) merge. Which of the
/// level before a node was made of is kept, so that its leaves can be told.
class Pools {
  public:
    Pools(std::uint64_t chain, int merges, double sign) : chain_(chain), merges_(merges), sign_(sign) {}

    /// False when the budget ended on the way.
    bool grow(Random& random, ClimbBudget& budget) {
        pools_.assign(1, {});
        for (std::size_t i = 0; i < kTries; ++i) pools_[0].push_back({leaf(drawn(random)), 0, 0});
        for (std::uint64_t k = 1; k < chain_; ++k) {
            if (!next_level(random, budget, true)) return false;
        }
        for (int level = 0; level < merges_; ++level) {
            if (!next_level(random, budget, false)) return false;
        }
        return true;
    }

    /// The elements of the best tree, in the tensor's order.
    std::vector<float> best(std::uint64_t blocks) const {
        std::vector<float> values(chain_ << static_cast<unsigned>(merges_));
        place(values, pools_.size() - 1, 0, merges_, {0, blocks, blocks});
        return values;
    }

  private:
    static constexpr std::size_t kTries = 120000;  // of each level
    static constexpr std::size_t kKept = 3000;

    struct Subtree {
        Node node;
        std::uint32_t left;   ///< Of the level before.
        std::uint32_t right;  ///< Likewise, or a leaf where a chain grows.
    };
    /// Where a subtree lies: its lane (or block), and how many there are at its level.
    struct Place {
        std::uint64_t at, of, blocks;
    };

    double used(const Node& node) const {
        const auto scale = static_cast<double>(node.pair.scale);
        return sign_ * (scale * scale * static_cast<double>(node.pair.sumsq) - node.bound.sum) / node.bound.error;
    }

    bool next_level(Random& random, ClimbBudget& budget, bool chain) {
        const std::vector<Subtree>& last = pools_.back();
        const std::vector<Subtree>& others = chain ? pools_.front() : last;
        std::vector<Subtree> fresh;
        for (std::size_t i = 0; i < kTries; ++i) {
            if (!budget.take()) return false;
            const auto left = static_cast<std::uint32_t>(random.below(last.size()));
            const auto right = static_cast<std::uint32_t>(random.below(others.size()));
            fresh.push_back({merge(last[left].node, others[right].node), left, right});
        }
        std::partial_sort(fresh.begin(), fresh.begin() + kKept, fresh.end(),
                          [&](const auto& a, const auto& b) { return used(a.node) > used(b.node); });
        fresh.resize(kKept);
        pools_.push_back(std::move(fresh));
        return true;
    }

    /// `merges` levels above the chains; the uppermost ones merge blocks, the others lanes of a block.
    void place(std::vector<float>& values, std::size_t level, std::uint32_t which, int merges,
               const Place& where) const {
        const Subtree& tree = pools_[level][which];
        if (merges == 0) return place_chain(values, level, which, where);
        // A node of width w is lane (block) i of w; it was made of i and i + w of the level before. Widths double from
        // 1 to the blocks, then each block's lanes from 1 to 256.
        const std::uint64_t width = std::uint64_t{1} << static_cast<unsigned>(merges_ - merges);
        for (const bool second : {false, true}) {
            Place part = where;
            part.at += second ? width_step(width, where.blocks) : 0;
            place(values, level - 1, second ? tree.right : tree.left, merges - 1, part);
        }
    }
    /// Element offset of the second half: blocks are 256 elements apart, lanes one.
    static std::uint64_t width_step(std::uint64_t width, std::uint64_t blocks) {
        return width < blocks ? width * kLanes : width / blocks;
    }
    void place_chain(std::vector<float>& values, std::size_t level, std::uint32_t which, const Place& where) const {
        for (std::uint64_t k = level; k > 0; --k) {
            values[where.at + k * kLanes * where.blocks] = pools_[0][pools_[k][which].right].node.pair.scale;
            which = pools_[k][which].left;
        }
        values[where.at] = pools_[0][which].node.pair.scale;
    }

    std::uint64_t chain_;
    int merges_;
    double sign_;
    std::vector<std::vector<Subtree>> pools_;
};

/// One value after the other; each changes one path through the tree only.
bool climb(TensorTree& tree, double sign, Random& random, ClimbBudget& budget) {
    double now = sign * tree.used();
    for (std::uint64_t since = 0; since < kPatience; ++since) {
        if (!budget.take()) return false;
        const auto i = static_cast<std::size_t>(random.below(tree.values().size()));
        const float before = tree.values()[i];
        tree.set(i, neighbour(before, random));
        const double used = sign * tree.used();
        if (used > now) since = 0;
        if (used < now) tree.set(i, before);
        now = std::max(now, used);
    }
    return true;
}

}  // namespace

NormFind climb_norm(std::uint64_t elements, Random& random, ClimbBudget& budget) {
    const std::uint64_t blocks = elements == 0 ? 1 : reference::reduction_blocks(elements);
    const std::uint64_t chain = elements / (kLanes * blocks);
    if (!std::has_single_bit(elements) || chain == 0 || blocks > kLanes) {
        throw std::invalid_argument("climb_norm: want 256 times a power of two elements, at most 2^18, got " +
                                    std::to_string(elements));
    }
    NormFind best;
    for (double sign = 1.0;; sign = -sign) {
        Pools pools(chain, 8 + std::countr_zero(blocks), sign);
        const bool grown = pools.grow(random, budget);
        std::vector<float> values(elements);
        if (grown) {
            values = pools.best(blocks);
        } else {
            for (float& value : values) value = drawn(random);
        }
        TensorTree tree(std::move(values));
        const bool goes_on = climb(tree, sign, random, budget);
        const double used = sign * tree.used();
        if (used > best.fraction || best.values.empty()) best = {tree.values(), used};
        if (!goes_on) return best;
    }
}

}  // namespace gradguard::harness
