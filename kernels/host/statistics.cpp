// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/statistics.h"

#include <cstring>
#include <string>
#include <utility>

#include "kernels/device/params.h"
#include "kernels/host/launch_plan.h"
#include "kernels/host/option_rules.h"
#include "kernels/host/summary.h"
#include "kernels/host/validation.h"
#include "reference/contract/error.h"

namespace gradguard {
namespace {

const char* scan_entry_name(DType dtype) {
    switch (dtype) {
        case DType::kF32:
            return "gradient_statistics_f32";
        case DType::kF16:
            return "gradient_statistics_f16";
        case DType::kBF16:
            return "gradient_statistics_bf16";
    }
    return "";
}

/// Queues the one or two reductions of a non-empty tensor, adds to the accounting, returns where its summary will be.
BufferRange submit_reduction(const Tensor& gradients, float gradient_scale, GradientStatsReport& report) {
    Queue& queue = *gradients.queue;
    Device& device = queue.device();
    const std::uint64_t elements = gradients.elements();
    const std::uint32_t blocks = kernels::reduction_blocks(elements, device.properties().max_blocks_in_x);
    const Buffer triples = device.allocate(std::uint64_t{kTripleBytes} * blocks, queue);
    kernels::StatisticsArguments scan = {};
    scan.gradients = gradients.data();
    scan.triples = triples.address;
    scan.elements = static_cast<unsigned int>(elements);
    scan.reciprocal_scale = 1.0F / gradient_scale;
    queue.launch(device.kernel("statistics", scan_entry_name(gradients.layout.dtype)), {blocks, kThreadsPerBlock},
                 std::as_bytes(std::span(&scan, 1)), {gradients.storage, triples});
    report.reduction_launches += kernels::reduction_launches(blocks);
    report.scratch_bytes += kernels::reduction_scratch_bytes(blocks);
    if (blocks == 1) return {triples, 0, kTripleBytes};

    const Buffer summary = device.allocate(kTripleBytes, queue);
    kernels::MergeArguments merge = {};
    merge.triples = triples.address;
    merge.summary = summary.address;
    merge.blocks = blocks;
    queue.launch(device.kernel("statistics", kernels::kMergeEntry), {1, kThreadsPerBlock},
                 std::as_bytes(std::span(&merge, 1)), {triples, summary});
    return {summary, 0, kTripleBytes};
}

/// One batched readback call. A device that fails here fails the readback.
std::vector<std::vector<std::byte>> read_summaries(Queue& queue, std::vector<BufferRange> ranges) {
    try {
        return queue.readback(std::move(ranges))->wait();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::kDeviceFailure) throw;
        throw Error(ErrorKind::kReadback, {.operand = "readback"}, error.what());
    }
}

GradientSummary parse_summary(std::size_t entry, const std::vector<std::byte>& bytes) {
    if (bytes.size() != kTripleBytes) {
        throw Error(ErrorKind::kInvalidSummary, {.entry = entry, .operand = "summary"},
                    "want " + std::to_string(kTripleBytes) + " bytes, got " + std::to_string(bytes.size()));
    }
    float words[kTripleWords];
    std::memcpy(words, bytes.data(), sizeof words);
    return {words[0], words[1], words[2]};
}

}  // namespace

GradientStatsReport gradient_stats_sync(std::span<const Tensor> gradients, float gradient_scale) {
    kernels::validate_gradient_scale(gradient_scale);
    kernels::validate_gradients(gradients);

    GradientStatsReport report;
    report.summaries.resize(gradients.size());
    std::vector<std::size_t> live;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (!gradients[i].empty()) live.push_back(i);
    }
    std::vector<std::vector<std::byte>> read;
    if (!live.empty()) {
        Queue& queue = *gradients[live.front()].queue;
        kernels::validate_device(queue.device().properties(), true);
        std::vector<BufferRange> ranges;
        for (const std::size_t i : live) ranges.push_back(submit_reduction(gradients[i], gradient_scale, report));
        read = read_summaries(queue, std::move(ranges));
    }
    if (read.size() != live.size()) {
        throw Error(ErrorKind::kInvalidSummary, {.operand = "readback"},
                    "want " + std::to_string(live.size()) + " summaries, got " + std::to_string(read.size()));
    }
    report.readback_bytes = std::uint64_t{kTripleBytes} * live.size();

    kernels::SummaryTotals totals;
    auto next = read.begin();
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (gradients[i].empty()) {
            totals.add_empty();
        } else {
            report.summaries[i] = parse_summary(i, *next++);
            totals.add(i, report.summaries[i], gradients[i].elements());
        }
    }
    report.stats = totals.stats(gradient_scale);
    return report;
}

}  // namespace gradguard
