// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "harness/vgpu/decode/ir.h"

namespace gradguard::vgpu::decode {
namespace {

/// Depth first, without recursion: blocks in post-order of `edges` from `root`.
std::vector<std::uint32_t> post_order(const std::vector<std::vector<std::uint32_t>>& edges, std::uint32_t root) {
    std::vector<std::uint32_t> order;
    std::vector<bool> seen(edges.size());
    std::vector<std::pair<std::uint32_t, std::size_t>> stack{{root, 0}};
    seen[root] = true;
    while (!stack.empty()) {
        auto& [node, next] = stack.back();
        if (next == edges[node].size()) {
            order.push_back(node);
            stack.pop_back();
            continue;
        }
        const std::uint32_t child = edges[node][next++];
        if (!seen[child]) {
            seen[child] = true;
            stack.emplace_back(child, 0);
        }
    }
    return order;
}

}  // namespace

std::vector<std::uint32_t> successors(const Segment& segment) {
    std::vector<std::uint32_t> result;
    if (segment.end == EndKind::Branch) result.push_back(segment.target);
    const bool goes_on = segment.end == EndKind::Fall || segment.end == EndKind::Barrier || segment.conditional;
    if (goes_on && segment.next != kNoSegment) result.push_back(segment.next);
    return result;
}

// Cooper, Harvey, Kennedy: a simple, fast dominance algorithm.
std::vector<std::uint32_t> immediate_dominators(const std::vector<std::vector<std::uint32_t>>& edges,
                                                std::uint32_t root) {
    const std::vector<std::uint32_t> order = post_order(edges, root);
    std::vector<std::uint32_t> number(edges.size(), 0);
    for (std::uint32_t i = 0; i < order.size(); ++i) number[order[i]] = i;
    std::vector<std::vector<std::uint32_t>> predecessors(edges.size());
    for (const std::uint32_t node : order) {
        for (const std::uint32_t child : edges[node]) predecessors[child].push_back(node);
    }
    std::vector<std::uint32_t> dominator(edges.size(), kNoSegment);
    dominator[root] = root;
    const auto meet = [&](std::uint32_t a, std::uint32_t b) {
        while (a != b) {
            while (number[a] < number[b]) a = dominator[a];
            while (number[b] < number[a]) b = dominator[b];
        }
        return a;
    };
    for (bool changed = true; changed;) {
        changed = false;
        for (auto it = order.rbegin(); it != order.rend(); ++it) {
            if (*it == root) continue;
            std::uint32_t best = kNoSegment;
            for (const std::uint32_t parent : predecessors[*it]) {
                if (dominator[parent] == kNoSegment) continue;
                best = best == kNoSegment ? parent : meet(best, parent);
            }
            if (best != dominator[*it]) {
                dominator[*it] = best;
                changed = true;
            }
        }
    }
    return dominator;
}

void find_reconvergence(Ir& ir) {
    // Post-dominators are dominators of the reversed graph from a virtual exit.
    const auto exit = static_cast<std::uint32_t>(ir.blocks.size());
    std::vector<std::vector<std::uint32_t>> reversed(ir.blocks.size() + 1);
    for (std::uint32_t i = 0; i < exit; ++i) {
        const Segment& segment = ir.blocks[i].segment;
        for (const std::uint32_t next : successors(segment)) reversed[next].push_back(i);
        if (segment.end == EndKind::Exit) reversed[exit].push_back(i);
    }
    const std::vector<std::uint32_t> post_dominator = immediate_dominators(reversed, exit);
    for (std::uint32_t i = 0; i < exit; ++i) {
        const std::uint32_t meeting = post_dominator[i];
        // Nobody waits for others in order to exit: else a lane that returns early would keep its warp at a barrier.
        const bool ends =
            meeting >= exit || (ir.blocks[meeting].ops.empty() && !ir.blocks[meeting].segment.conditional &&
                                ir.blocks[meeting].segment.end == EndKind::Exit);
        ir.blocks[i].segment.reconverge = ends ? kNoSegment : meeting;
    }
}

}  // namespace gradguard::vgpu::decode
