// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/operation.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace gradguard::testing {
namespace {

using harness::DeviceCall;

// Strings and no streams: a stream that runs out of memory says less and keeps quiet about it.

template <class... Numbers>
void say(std::string& text, Numbers... numbers) {
    ((text += ' ', text += std::to_string(numbers)), ...);
}

void say(std::string& text, const GradientStatsReport& report) {
    const GradientStats& stats = report.stats;
    text += "norm";
    say(text, std::bit_cast<std::uint64_t>(stats.total_norm), std::bit_cast<std::uint32_t>(stats.max_finite_abs));
    text += stats.all_finite ? " all finite" : " not all finite";
    say(text, stats.elements, stats.tensors, std::bit_cast<std::uint32_t>(stats.gradient_scale));
    text += " accounting";
    say(text, report.reduction_launches, report.readback_bytes, report.scratch_bytes);
    text += " summaries";
    for (const GradientSummary& summary : report.summaries) {
        say(text, std::bit_cast<std::uint32_t>(summary.scale), std::bit_cast<std::uint32_t>(summary.sumsq),
            std::bit_cast<std::uint32_t>(summary.bad));
    }
    text += '\n';
}

void say(std::string& text, const std::vector<AdamWUpdate>& updates, const std::vector<AdamWEntry>& entries) {
    for (std::size_t i = 0; i < updates.size(); ++i) {
        const bool shares = updates[i].parameters.storage.address == entries[i].parameters.storage.address;
        text += updates[i].updated ? "updated" : "unchanged";
        if (shares) text += " sharing the input";
        text += " step";
        if (updates[i].state) say(text, updates[i].state->step);
        text += '\n';
    }
}

void wait_for(const std::vector<AdamWUpdate>& updates) {
    const auto updated = std::ranges::find_if(updates, &AdamWUpdate::updated);
    if (updated != updates.end()) updated->wait();
}

std::vector<AdamWUpdate> guarded(FaultBench& bench, std::string& said) {
    const Group& group = bench.group();
    GuardedAdamWUpdate result = guarded_adamw_step(bench.entries(), group.options, group.control, group.guard);
    if (result.report) say(said, *result.report);
    said += "clip";
    say(said, std::bit_cast<std::uint32_t>(result.clip_multiplier));
    said += result.skip_reason ? to_string(*result.skip_reason) : " no skip\n";
    result.wait();
    return std::move(result.entries);
}

std::vector<AdamWUpdate> stats(FaultBench& bench, std::string& said) {
    say(said, gradient_stats_sync(bench.gradients(), bench.group().control.gradient_scale));
    return {};
}

std::vector<AdamWUpdate> clipped(FaultBench& bench, std::string&) {
    const Group& group = bench.group();
    const GradientDecision decision = {.clip_multiplier = 0.5F};
    std::vector<AdamWUpdate> updates = clipped_adamw_step(decision, bench.entries(), group.options, group.control);
    wait_for(updates);
    return updates;
}

std::vector<AdamWUpdate> halves(FaultBench& bench, std::string& said) {
    const Group& group = bench.group();
    const GradientStatsReport report = gradient_stats_sync(bench.gradients(), group.control.gradient_scale);
    say(said, report);
    const GradientDecision decision = decide(report.stats, group.guard);
    std::vector<AdamWUpdate> updates = clipped_adamw_step(decision, bench.entries(), group.options, group.control);
    wait_for(updates);
    return updates;
}

std::vector<AdamWUpdate> unguarded(FaultBench& bench, std::string&) {
    const Group& group = bench.group();
    std::vector<AdamWUpdate> updates;
    for (const AdamWEntry& entry : bench.entries()) {
        updates.push_back(adamw_step(entry.parameters, entry.gradients, entry.state, group.options, group.control));
    }
    for (const AdamWUpdate& update : updates) update.wait();
    return updates;
}

/// Contract section 4: blocks = ceil(n/1024) here, and a second launch when there is more than one.
std::size_t reductions(std::uint64_t elements) { return elements <= 1024 ? 1 : 2; }

bool scans(const Group& group, const Operation& operation) {
    return operation.scans && !(operation.skips_scan && group.control.skip_update);
}

bool updates(const Group& group, const Operation& operation) {
    return operation.updates && !group.control.skip_update && !(operation.looks_for_bad && group.bad);
}

}  // namespace

const std::vector<Operation>& operations() {
    static const std::vector<Operation> all = {
        {.name = "guarded_adamw_step",
         .scans = true,
         .skips_scan = true,
         .updates = true,
         .looks_for_bad = true,
         .run = guarded},
        {.name = "gradient_stats_sync", .scans = true, .run = stats},
        {.name = "clipped_adamw_step", .updates = true, .run = clipped},
        {.name = "three_halves", .scans = true, .updates = true, .looks_for_bad = true, .run = halves},
        {.name = "adamw_step", .updates = true, .one_by_one = true, .run = unguarded}};
    return all;
}

const Operation& operation_named(const std::string& name) {
    for (const Operation& operation : operations()) {
        if (operation.name == name) return operation;
    }
    throw std::invalid_argument("no operation " + name);
}

std::vector<std::string> operation_names() {
    std::vector<std::string> names;
    for (const Operation& operation : operations()) names.push_back(operation.name);
    return names;
}

std::size_t total(const CallCounts& calls) {
    std::size_t sum = 0;
    for (const auto& [call, times] : calls) sum += times;
    return sum;
}

Outcome take_step(FaultBench& bench, const Operation& operation) {
    bench.upload_gradients();
    Outcome outcome;
    std::vector<AdamWUpdate> updates;
    try {
        updates = operation.run(bench, outcome.said);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::kNonFiniteGradients) throw;
        outcome.said = error.what();
        return outcome;
    }
    say(outcome.said, updates, bench.entries());
    std::vector<const Tensor*> tensors;
    for (const AdamWUpdate& update : updates) {
        if (!update.updated) continue;
        for (const Tensor* tensor : {&update.parameters, &update.state->first_moment, &update.state->second_moment}) {
            tensors.push_back(tensor);
        }
        if (update.state->max_second_moment) tensors.push_back(&*update.state->max_second_moment);
    }
    outcome.values = bench.download(tensors);
    return outcome;
}

std::size_t contract_launches(const Group& group, const Operation& operation) {
    std::size_t launches = 0;
    for (const std::uint64_t elements : group.live_sizes()) {
        if (scans(group, operation)) launches += reductions(elements);
        if (updates(group, operation)) ++launches;
    }
    return launches;
}

CallCounts contract_calls(const Group& group, const Operation& operation) {
    CallCounts calls;
    const std::vector<std::uint64_t> sizes = group.live_sizes();
    if (sizes.empty()) return calls;
    calls[DeviceCall::kCopyToDevice] = sizes.size();
    if (scans(group, operation)) {
        // Scratch: one buffer for the triples, one more for the summary where there is a second launch.
        for (const std::uint64_t elements : sizes) calls[DeviceCall::kAllocate] += reductions(elements);
        calls[DeviceCall::kLoadModule] += 1;
        calls[DeviceCall::kReadback] = calls[DeviceCall::kReadbackWait] = 1;
    }
    if (updates(group, operation)) {
        const std::size_t outputs = (group.options.amsgrad ? 4 : 3) * sizes.size();
        calls[DeviceCall::kAllocate] += outputs;
        calls[DeviceCall::kLoadModule] += 1;
        calls[DeviceCall::kCopyToHost] = outputs;
        calls[DeviceCall::kSynchronize] = (operation.one_by_one ? sizes.size() : 1) + 1;
    }
    if (const std::size_t launches = contract_launches(group, operation)) calls[DeviceCall::kLaunch] = launches;
    return calls;
}

}  // namespace gradguard::testing
