// SPDX-License-Identifier: Apache-2.0
// Graphs: nodes for kernels, copies, sets and host functions. A launch submits them to its stream one after the other,
// in an order that the dependencies allow; which one, the seed picks.
#include <algorithm>
#include <string>

#include "harness/vdriver/export.h"
#include "harness/vdriver/graph.h"
#include "harness/vdriver/requests.h"

using namespace gradguard::cuda;     // NOLINT: the API's own names
using namespace gradguard::vdriver;  // NOLINT
namespace vgpu = gradguard::vgpu;

namespace {

using Kind = GraphNode::Kind;

GraphNode* find(std::vector<GraphNode>& nodes, CUgraphNode handle) {
    const auto it =
        std::find_if(nodes.begin(), nodes.end(), [&](const GraphNode& node) { return node.handle == handle; });
    return it == nodes.end() ? nullptr : &*it;
}

/// What is said of a node, and how it becomes work.
using Prepared = std::function<void(const StreamOf&)>;

template <class Parameters>
Prepared kernel_work(Driver& driver, const Parameters* parameters) {
    require(parameters != nullptr);
    CUfunction function = parameters->func;
    if constexpr (std::is_same_v<Parameters, CUDA_KERNEL_NODE_PARAMS_v2>) {
        if (function == nullptr) function = reinterpret_cast<CUfunction>(parameters->kern);
    }
    const vgpu::LaunchConfig config{{parameters->gridDimX, parameters->gridDimY, parameters->gridDimZ},
                                    {parameters->blockDimX, parameters->blockDimY, parameters->blockDimZ},
                                    parameters->sharedMemBytes};
    return [request = launch_request(driver, function, config, parameters->kernelParams, parameters->extra)](
               const StreamOf& stream) { submit(stream, request); };
}

Prepared copy_work(Driver& driver, const CUDA_MEMCPY3D* copy) {
    require(copy != nullptr);
    return [request = copy_request(driver, *copy)](const StreamOf& stream) { submit(stream, request, false); };
}

Prepared set_work(Driver& driver, const CUDA_MEMSET_NODE_PARAMS* set) {
    require(set != nullptr);
    return [request = set_request(driver, set->dst, set->pitch, set->value, set->elementSize, set->width, set->height)](
               const StreamOf& stream) { submit(stream, request); };
}

Prepared host_work(const CUDA_HOST_NODE_PARAMS* host) {
    require(host != nullptr && host->fn != nullptr);
    return [function = host->fn, data = host->userData](const StreamOf& stream) {
        Queues& queues = stream.context->queues();
        stream.context->submit(stream.stream, [&queues, function, data] { queues.call_host([&] { function(data); }); });
    };
}

void check_dependencies(Graph& graph, const CUgraphNode* nodes, std::size_t count) {
    require(count == 0 || nodes != nullptr);
    for (std::size_t i = 0; i < count; ++i) {
        require(find(graph.nodes, nodes[i]) != nullptr);
        require(std::find(nodes, nodes + i, nodes[i]) == nodes + i);
    }
}

/// `prepare` gives the work, or throws Failure.
template <class Prepare>
CUresult add_node(const char* name, CUgraphNode* result, CUgraph handle, const CUgraphNode* after, std::size_t count,
                  Kind kind, Prepare&& prepare) {
    return call(name, Needs::kInit, [&](Driver& driver) {
        require(result != nullptr);
        const std::shared_ptr<Graph> graph = driver.graphs.get(handle);
        check_dependencies(*graph, after, count);
        GraphNode node{reinterpret_cast<CUgraphNode>(next_handle()), kind, prepare(driver), {after, after + count}};
        *result = node.handle;
        graph->nodes.push_back(std::move(node));
    });
}

template <class Prepare>
CUresult set_node(const char* name, CUgraphExec handle, CUgraphNode node_handle, Kind kind, Prepare&& prepare) {
    return call(name, Needs::kInit, [&](Driver& driver) {
        const std::shared_ptr<GraphExec> graph = driver.graph_execs.get(handle);
        GraphNode* const node = find(graph->nodes, node_handle);
        require(node != nullptr && node->kind == kind);
        node->submit = prepare(driver);
    });
}

CUresult instantiate(const char* name, CUgraphExec* result, CUgraph handle) {
    return call(name, Needs::kInit, [&](Driver& driver) {
        require(result != nullptr);
        *result = driver.graph_execs.add(std::make_shared<GraphExec>(GraphExec{driver.graphs.get(handle)->nodes}));
    });
}

/// Whether `node` comes, over however many others, behind `behind`.
bool depends_on(Graph& graph, CUgraphNode node, CUgraphNode behind) {
    if (node == behind) return true;
    const std::vector<CUgraphNode>& after = find(graph.nodes, node)->after;
    return std::any_of(after.begin(), after.end(), [&](CUgraphNode one) { return depends_on(graph, one, behind); });
}

CUresult add_dependencies(const char* name, CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                          std::size_t count) {
    return call(name, Needs::kInit, [&](Driver& driver) {
        const std::shared_ptr<Graph> graph = driver.graphs.get(handle);
        require(count == 0 || (from != nullptr && to != nullptr));
        for (std::size_t i = 0; i < count; ++i) {
            GraphNode* const node = find(graph->nodes, to[i]);
            require(node != nullptr && find(graph->nodes, from[i]) != nullptr);
            require(std::find(node->after.begin(), node->after.end(), from[i]) == node->after.end());
            require(!depends_on(*graph, from[i], to[i]));
            node->after.push_back(from[i]);
        }
    });
}

/// Submits all nodes: each time one of those that wait for nobody any more.
void run(GraphExec& graph, const StreamOf& stream, std::uint64_t seed) {
    std::vector<const GraphNode*> left;
    for (const GraphNode& node : graph.nodes) left.push_back(&node);
    vgpu::Random random(vgpu::mix(seed + graph.launches++));
    while (!left.empty()) {
        std::vector<std::size_t> ready;
        for (std::size_t i = 0; i < left.size(); ++i) {
            const auto is_left = [&](CUgraphNode handle) {
                return std::any_of(left.begin(), left.end(),
                                   [&](const GraphNode* node) { return node->handle == handle; });
            };
            if (std::none_of(left[i]->after.begin(), left[i]->after.end(), is_left)) ready.push_back(i);
        }
        const std::size_t chosen = ready[seed == 0 ? 0 : random.below(ready.size())];
        if (left[chosen]->submit) left[chosen]->submit(stream);
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(chosen));
    }
}

}  // namespace

GRADGUARD_DRIVER_API cuGraphCreate(CUgraph* graph, unsigned flags) {
    return initialized(__func__, [&](Driver& driver) {
        require(graph != nullptr && flags == 0);
        *graph = driver.graphs.add(std::make_shared<Graph>());
    });
}
GRADGUARD_DRIVER_API cuGraphDestroy(CUgraph graph) {
    return initialized(__func__, [&](Driver& driver) { require(driver.graphs.erase(graph)); });
}

GRADGUARD_DRIVER_API cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, std::size_t count,
                                          const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    return add_node(__func__, node, graph, after, count, Kind::kKernel,
                    [&](Driver& driver) { return kernel_work(driver, parameters); });
}
GRADGUARD_DRIVER_API cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                             std::size_t count, const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    return add_node(__func__, node, graph, after, count, Kind::kKernel,
                    [&](Driver& driver) { return kernel_work(driver, parameters); });
}
GRADGUARD_DRIVER_API cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, std::size_t count,
                                          const CUDA_MEMCPY3D* copy, CUcontext) {
    return add_node(__func__, node, graph, after, count, Kind::kCopy,
                    [&](Driver& driver) { return copy_work(driver, copy); });
}
GRADGUARD_DRIVER_API cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, std::size_t count,
                                          const CUDA_MEMSET_NODE_PARAMS* set, CUcontext) {
    return add_node(__func__, node, graph, after, count, Kind::kSet,
                    [&](Driver& driver) { return set_work(driver, set); });
}
GRADGUARD_DRIVER_API cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, std::size_t count,
                                        const CUDA_HOST_NODE_PARAMS* host) {
    return add_node(__func__, node, graph, after, count, Kind::kHost, [&](Driver&) { return host_work(host); });
}
GRADGUARD_DRIVER_API cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                         std::size_t count) {
    return add_node(__func__, node, graph, after, count, Kind::kEmpty, [](Driver&) { return Prepared(); });
}

GRADGUARD_DRIVER_API cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                            std::size_t count) {
    return add_dependencies(__func__, graph, from, to, count);
}
/// Edges that say more than "after" are for kernels that start each other, which this driver does not run.
GRADGUARD_DRIVER_API cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                               const void* edges, std::size_t count) {
    if (edges != nullptr) {
        return initialized(__func__, [](Driver& driver) {
            driver.record.not_supported("cuGraphAddDependencies_v2 with edge data");
            return CUDA_ERROR_NOT_SUPPORTED;
        });
    }
    return add_dependencies(__func__, graph, from, to, count);
}
GRADGUARD_DRIVER_API cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, std::size_t* count) {
    return initialized(__func__, [&](Driver& driver) {
        require(count != nullptr);
        const std::shared_ptr<Graph> graph = driver.graphs.get(handle);
        const std::size_t size = graph->nodes.size();
        if (nodes != nullptr) {
            for (std::size_t i = 0; i < *count; ++i) nodes[i] = i < size ? graph->nodes[i].handle : nullptr;
            *count = std::min(*count, size);
        } else {
            *count = size;
        }
    });
}

GRADGUARD_DRIVER_API cuGraphInstantiate(CUgraphExec* result, CUgraph graph, CUgraphNode*, char*, std::size_t) {
    return instantiate(__func__, result, graph);
}
GRADGUARD_DRIVER_API cuGraphInstantiate_v2(CUgraphExec* result, CUgraph graph, CUgraphNode*, char*, std::size_t) {
    return instantiate(__func__, result, graph);
}
/// Flags speak of memory that graphs allocate and of launches from kernels; there are no such graphs here.
GRADGUARD_DRIVER_API cuGraphInstantiateWithFlags(CUgraphExec* result, CUgraph graph, unsigned long long) {
    return instantiate(__func__, result, graph);
}
GRADGUARD_DRIVER_API cuGraphExecDestroy(CUgraphExec graph) {
    return initialized(__func__, [&](Driver& driver) { require(driver.graph_execs.erase(graph)); });
}

GRADGUARD_DRIVER_API cuGraphExecKernelNodeSetParams(CUgraphExec graph, CUgraphNode node,
                                                    const CUDA_KERNEL_NODE_PARAMS_v1* parameters) {
    return set_node(__func__, graph, node, Kind::kKernel,
                    [&](Driver& driver) { return kernel_work(driver, parameters); });
}
GRADGUARD_DRIVER_API cuGraphExecKernelNodeSetParams_v2(CUgraphExec graph, CUgraphNode node,
                                                       const CUDA_KERNEL_NODE_PARAMS_v2* parameters) {
    return set_node(__func__, graph, node, Kind::kKernel,
                    [&](Driver& driver) { return kernel_work(driver, parameters); });
}
GRADGUARD_DRIVER_API cuGraphExecMemcpyNodeSetParams(CUgraphExec graph, CUgraphNode node, const CUDA_MEMCPY3D* copy,
                                                    CUcontext) {
    return set_node(__func__, graph, node, Kind::kCopy, [&](Driver& driver) { return copy_work(driver, copy); });
}
GRADGUARD_DRIVER_API cuGraphExecMemsetNodeSetParams(CUgraphExec graph, CUgraphNode node,
                                                    const CUDA_MEMSET_NODE_PARAMS* set, CUcontext) {
    return set_node(__func__, graph, node, Kind::kSet, [&](Driver& driver) { return set_work(driver, set); });
}
GRADGUARD_DRIVER_API cuGraphExecHostNodeSetParams(CUgraphExec graph, CUgraphNode node,
                                                  const CUDA_HOST_NODE_PARAMS* host) {
    return set_node(__func__, graph, node, Kind::kHost, [&](Driver&) { return host_work(host); });
}

/// There is nothing to prepare.
GRADGUARD_DRIVER_API cuGraphUpload(CUgraphExec graph, CUstream stream) {
    return initialized(__func__, [&](Driver& driver) {
        driver.graph_execs.get(graph);
        driver.stream(stream);
    });
}
GRADGUARD_DRIVER_API cuGraphLaunch(CUgraphExec handle, CUstream stream) {
    return initialized(__func__, [&](Driver& driver) {
        const std::shared_ptr<GraphExec> graph = driver.graph_execs.get(handle);
        run(*graph, driver.stream(stream), driver.configuration.machine.seed);
    });
}
