// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "tests/vdriver/fixture.h"

namespace gradguard::cuda {
namespace {

class Graphs : public InContext {
  protected:
    CUgraph create() {
        CUgraph graph = nullptr;
        EXPECT_OK(cu.cuGraphCreate(&graph, 0));
        return graph;
    }
    /// `fill`s the first `count` words of `out` with `value`, behind `after`.
    CUgraphNode add_fill(CUgraph graph, CUdeviceptr out, std::uint32_t value, std::uint32_t count,
                         const std::vector<CUgraphNode>& after = {}) {
        void* arguments[] = {&out, &value, &count};
        const CUDA_KERNEL_NODE_PARAMS_v1 parameters{kernel("fill"), 1, 1, 1, count, 1, 1, 0, arguments, nullptr};
        CUgraphNode node = nullptr;
        EXPECT_OK(cu.cuGraphAddKernelNode(&node, graph, after.data(), after.size(), &parameters));
        return node;
    }
    CUgraphExec instantiate(CUgraph graph) {
        CUgraphExec exec = nullptr;
        EXPECT_OK(cu.cuGraphInstantiate_v2(&exec, graph, nullptr, nullptr, 0));
        return exec;
    }
    static CUDA_MEMCPY3D copy_of(CUdeviceptr target, CUdeviceptr source, std::size_t bytes) {
        CUDA_MEMCPY3D copy{};
        copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.srcDevice = source;
        copy.dstDevice = target;
        copy.WidthInBytes = bytes;
        copy.Height = copy.Depth = 1;
        return copy;
    }
};

TEST_F(Graphs, RunKernelsCopiesAndSetsInTheOrderOfTheirDependencies) {
    const CUgraph graph = create();
    const CUdeviceptr a = allocate(16), b = allocate(16);
    const CUDA_MEMSET_NODE_PARAMS set{a, 0, 1, 4, 4, 1};
    CUgraphNode first = nullptr, last = nullptr, empty = nullptr;
    EXPECT_OK(cu.cuGraphAddMemsetNode(&first, graph, nullptr, 0, &set, context));
    const CUgraphNode second = add_fill(graph, a, 5, 2, {first});
    EXPECT_OK(cu.cuGraphAddEmptyNode(&empty, graph, &second, 1));
    const CUDA_MEMCPY3D copy = copy_of(b, a, 16);
    EXPECT_OK(cu.cuGraphAddMemcpyNode(&last, graph, &empty, 1, &copy, context));
    const CUgraphExec exec = instantiate(graph);
    EXPECT_OK(cu.cuGraphDestroy(graph));  // what was instantiated is on its own
    for (int launch = 0; launch < 2; ++launch) {
        EXPECT_OK(cu.cuMemsetD32_v2(b, 0, 4));
        EXPECT_OK(cu.cuGraphLaunch(exec, nullptr));
        EXPECT_EQ(words(b, 4), (std::vector<std::uint32_t>{5, 5, 1, 1}));
    }
    EXPECT_OK(cu.cuGraphExecDestroy(exec));
    EXPECT_EQ(cu.cuGraphLaunch(exec, nullptr), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Graphs, ParametersOfNodesMayBeReplaced) {
    const CUgraph graph = create();
    CUdeviceptr out = allocate(8);
    const CUgraphNode node = add_fill(graph, out, 1, 2);
    const CUgraphExec exec = instantiate(graph);
    std::uint32_t value = 9, count = 1;
    void* arguments[] = {&out, &value, &count};
    const CUDA_KERNEL_NODE_PARAMS_v1 parameters{kernel("fill"), 1, 1, 1, 1, 1, 1, 0, arguments, nullptr};
    EXPECT_OK(cu.cuGraphLaunch(exec, nullptr));
    EXPECT_OK(cu.cuGraphExecKernelNodeSetParams(exec, node, &parameters));
    EXPECT_OK(cu.cuGraphLaunch(exec, nullptr));
    EXPECT_EQ(words(out, 2), (std::vector<std::uint32_t>{9, 1}));
    const CUDA_MEMCPY3D copy = copy_of(out, out, 4);
    EXPECT_EQ(cu.cuGraphExecMemcpyNodeSetParams(exec, node, &copy, context), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Graphs, TheSeedPicksAmongTheOrdersThatDependenciesLeave) {
    std::set<std::uint32_t> seen;
    for (int seed = 1; seed <= 12; ++seed) {
        restart("{\"seed\": " + std::to_string(seed) + "}");
        const CUgraph graph = create();
        const CUdeviceptr out = allocate(4);
        const CUgraphNode first = add_fill(graph, out, 1, 1);
        add_fill(graph, out, 2, 1, {first});
        add_fill(graph, out, 3, 1, {first});
        EXPECT_OK(cu.cuGraphLaunch(instantiate(graph), nullptr));
        seen.insert(words(out, 1)[0]);
    }
    EXPECT_EQ(seen, (std::set<std::uint32_t>{2, 3}));
}

TEST_F(Graphs, WrongDependenciesAreRefused) {
    const CUgraph graph = create(), other = create();
    const CUdeviceptr out = allocate(4);
    const CUgraphNode a = add_fill(graph, out, 1, 1), b = add_fill(graph, out, 2, 1, {a}),
                      foreign = add_fill(other, out, 3, 1);
    CUgraphNode node = nullptr;
    EXPECT_EQ(cu.cuGraphAddEmptyNode(&node, graph, &foreign, 1), CUDA_ERROR_INVALID_VALUE);
    const CUgraphNode twice[] = {a, a};
    EXPECT_EQ(cu.cuGraphAddEmptyNode(&node, graph, twice, 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.cuGraphAddDependencies(graph, &b, &a, 1), CUDA_ERROR_INVALID_VALUE);  // a circle
    EXPECT_EQ(cu.cuGraphAddDependencies(graph, &a, &b, 1), CUDA_ERROR_INVALID_VALUE);  // there already
    std::size_t count = 0;
    EXPECT_OK(cu.cuGraphGetNodes(graph, nullptr, &count));
    EXPECT_EQ(count, 2U);
}

class OldLaunches : public InContext {};

TEST_F(OldLaunches, AreSetUpOnTheFunctionPieceByPiece) {
    CUdeviceptr out = allocate(16);
    EXPECT_OK(cu.cuMemsetD32_v2(out, 0, 4));
    const CUfunction fill = kernel("fill");
    EXPECT_OK(cu.cuFuncSetBlockShape(fill, 2, 1, 1));
    EXPECT_OK(cu.cuParamSetv(fill, 0, &out, sizeof out));
    EXPECT_OK(cu.cuParamSeti(fill, 8, 6));
    EXPECT_OK(cu.cuParamSeti(fill, 12, 3));
    EXPECT_OK(cu.cuParamSetSize(fill, 16));
    EXPECT_OK(cu.cuLaunchGrid(fill, 2, 1));
    EXPECT_EQ(words(out, 4), (std::vector<std::uint32_t>{6, 6, 6, 0}));
    EXPECT_OK(cu.cuParamSetSize(fill, 12));
    EXPECT_EQ(cu.cuLaunchGridAsync(fill, 2, 1, nullptr), CUDA_ERROR_INVALID_VALUE);  // an argument is missing
    EXPECT_EQ(cu.cuParamSetv(fill, 40000, &out, 8), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu.cuFuncSetBlockShape(fill, 0, 1, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(OldLaunches, AContextLivesUntilTheLastOfItsUsersDetaches) {
    CUcontext made = nullptr, again = nullptr;
    EXPECT_OK(cu.cuCtxCreate_v2(&made, 0, 0));
    EXPECT_OK(cu.cuCtxAttach(&again, 0));
    EXPECT_EQ(again, made);
    EXPECT_OK(cu.cuCtxDetach(made));
    EXPECT_OK(cu.cuCtxSynchronize());
    EXPECT_OK(cu.cuCtxDetach(made));
    EXPECT_EQ(cu.cuCtxDetach(made), CUDA_ERROR_INVALID_CONTEXT);
}

}  // namespace
}  // namespace gradguard::cuda
