// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "harness/vdriver/driver_abi_wide.h"

namespace gradguard::vdriver {

struct StreamOf;

/// A piece of work of a graph, and the nodes of the same graph that come before it.
struct GraphNode {
    enum class Kind : std::uint8_t { kKernel, kCopy, kSet, kHost, kEmpty };
    cuda::CUgraphNode handle = nullptr;
    Kind kind = Kind::kEmpty;
    std::function<void(const StreamOf&)> submit;
    std::vector<cuda::CUgraphNode> after;
};

struct Graph {
    std::vector<GraphNode> nodes;
};

/// A graph as it was when it was instantiated; parameters of its nodes may be replaced.
struct GraphExec {
    std::vector<GraphNode> nodes;
    std::uint64_t launches = 0;
};

}  // namespace gradguard::vdriver
