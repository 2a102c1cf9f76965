// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/group_run.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <utility>

#include "harness/compare/report.h"
#include "tools/cli/error_text.h"
#include "tools/cli/number_text.h"

namespace gradguard::tools {
namespace {

using harness::OutcomeEntry;
using harness::SafetensorsFile;
using harness::SafetensorsTensor;

std::vector<float> floats_of(const SafetensorsFile& file, const SafetensorsTensor& tensor) {
    const std::span<const std::byte> bytes = file.data(tensor);
    std::vector<float> values(bytes.size() / sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
}

/// The entry as the library takes it; `tensor_of` says where a tensor's storage comes from.
template <class TensorOf>
AdamWEntry library_entry(const FileEntry& state_entry, const SafetensorsTensor& grad, TensorOf tensor_of) {
    AdamWEntry entry{tensor_of(*state_entry.param), tensor_of(grad), std::nullopt};
    if (!state_entry.has_state()) return entry;
    AdamWState state{state_entry.step, tensor_of(*state_entry.exp_avg), tensor_of(*state_entry.exp_avg_sq),
                     std::nullopt};
    if (state_entry.max_exp_avg_sq != nullptr) state.max_second_moment = tensor_of(*state_entry.max_exp_avg_sq);
    entry.state = std::move(state);
    return entry;
}

std::vector<float> downloaded(const Tensor& tensor) {
    std::vector<float> values(tensor.elements());
    tensor.download(std::as_writable_bytes(std::span(values)));
    return values;
}

bool same_bytes(std::span<const float> a, std::span<const float> b) {
    return std::ranges::equal(std::as_bytes(a), std::as_bytes(b));
}

/// The same state, byte for byte.
bool same_values(const OutcomeEntry& a, const OutcomeEntry& b) {
    if (!same_bytes(a.parameters, b.parameters) || a.state.has_value() != b.state.has_value()) return false;
    if (!a.state) return true;
    const auto& one = a.state->max_second_moment;
    const auto& two = b.state->max_second_moment;
    return same_bytes(a.state->first_moment, b.state->first_moment) &&
           same_bytes(a.state->second_moment, b.state->second_moment) && one.has_value() == two.has_value() &&
           (!one || same_bytes(*one, *two));
}

}  // namespace

float scale_of(const ScanRequest& request, const GroupFile& file) {
    return request.gradient_scale.value_or(file.gradient_scale.value_or(StepControl{}.gradient_scale));
}

JudgedGroup judged_gradients(const ScanRequest& request, const OpenDevice& device, const GroupFile& file,
                             std::string replay) {
    JudgedGroup group;
    group.gradient_scale = scale_of(request, file);
    group.block_limit = device.properties().max_blocks_in_x;
    group.replay = std::move(replay);
    for (const FileEntry& entry : file.entries) {
        const DType dtype = *harness::contract_dtype(entry.grad->dtype);
        const std::span<const std::byte> bytes = file.file->data(*entry.grad);
        group.names.push_back(entry.name);
        group.gradients.push_back({dtype, bytes.data(), bytes.size() / element_bytes(dtype)});
    }
    return group;
}

GroupRun::GroupRun(const StepRequest& request, const OpenDevice& device, std::vector<GroupFile> files,
                   std::string replay)
    : request_(request), device_(device), files_(std::move(files)), replay_(std::move(replay)) {
    for (const GroupFile& file : files_) {
        if (&file != &files_.front()) require_same_names(files_.front(), file);
        try {
            validate(file);
        } catch (const Error& error) {
            throw located(error, file, request_.scan);
        }
    }
    upload_first();
}

const GroupFile& GroupRun::file_of(std::size_t index) const { return files_[std::min(index, files_.size() - 1)]; }

StepControl GroupRun::control_of(const GroupFile& file) const {
    return {.gradient_scale = scale_of(request_.scan, file), .skip_update = request_.skip_update};
}

/// Options first, by a step over nothing; then the entries, by a step that a decision skips: the library's own checks
/// in the contract's order, without a device call. What is no entry at all comes where its turn would be.
void GroupRun::validate(const GroupFile& file) const {
    const StepControl control = control_of(file);
    guarded_adamw_step({}, request_.options, control, request_.guard);
    std::vector<AdamWEntry> placeholders;
    const auto check = [&] {
        clipped_adamw_step({.clip_multiplier = 1.0F, .skip_update = true}, placeholders, request_.options, control);
    };
    for (std::size_t i = 0; i < file.entries.size(); ++i) {
        const std::optional<Error>& first_defect = files_.front().entries[i].defect;
        const std::optional<Error>& defect = first_defect ? first_defect : file.entries[i].defect;
        if (defect) {
            check();
            throw *defect;
        }
        placeholders.push_back(
            library_entry(files_.front().entries[i], *file.entries[i].grad,
                          [&](const SafetensorsTensor& tensor) { return device_.placeholder(tensor); }));
    }
    check();
}

void GroupRun::upload_first() {
    const GroupFile& file = files_.front();
    for (const FileEntry& entry : file.entries) {
        entries_.push_back(library_entry(
            entry, *entry.grad, [&](const SafetensorsTensor& tensor) { return device_.upload(*file.file, tensor); }));
        OutcomeEntry value;
        value.parameters = floats_of(*file.file, *entry.param);
        if (entry.has_state()) {
            value.state = harness::OutcomeState{entry.step, floats_of(*file.file, *entry.exp_avg),
                                                floats_of(*file.file, *entry.exp_avg_sq), std::nullopt};
            if (entry.max_exp_avg_sq != nullptr)
                value.state->max_second_moment = floats_of(*file.file, *entry.max_exp_avg_sq);
        }
        values_.push_back(std::move(value));
    }
    gradients_from_ = &file;
}

void GroupRun::upload_gradients(const GroupFile& file) {
    if (gradients_from_ == &file) return;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        entries_[i].gradients = device_.upload(*file.file, *file.entries[i].grad);
    }
    gradients_from_ = &file;
}

/// Inputs are read-only (contract section 2).
OpenDevice::ReadOnly GroupRun::mark_inputs() const {
    OpenDevice::ReadOnly handles;
    for (const AdamWEntry& entry : entries_) {
        device_.mark_read_only(entry.parameters, handles);
        device_.mark_read_only(entry.gradients, handles);
        if (!entry.state) continue;
        device_.mark_read_only(entry.state->first_moment, handles);
        device_.mark_read_only(entry.state->second_moment, handles);
        if (entry.state->max_second_moment) device_.mark_read_only(*entry.state->max_second_moment, handles);
    }
    return handles;
}

JudgedGroup GroupRun::judged_group(const GroupFile& file) const {
    return judged_gradients(request_.scan, device_, file, replay_);
}

std::vector<OutcomeEntry> GroupRun::download(const std::vector<AdamWUpdate>& updates) const {
    std::vector<OutcomeEntry> values;
    for (const AdamWUpdate& update : updates) {
        OutcomeEntry value;
        value.updated = update.updated;
        value.parameters = downloaded(update.parameters);
        if (update.state) {
            value.state = harness::OutcomeState{update.state->step, downloaded(update.state->first_moment),
                                                downloaded(update.state->second_moment), std::nullopt};
            if (update.state->max_second_moment)
                value.state->max_second_moment = downloaded(*update.state->max_second_moment);
        }
        values.push_back(std::move(value));
    }
    // Moving a vector keeps its storage, so the copies under way still have their destinations.
    device_.queue()->synchronize();
    return values;
}

/// Inputs are read-only (contract section 2): what was uploaded is still there, byte for byte.
void GroupRun::require_inputs_untouched(const std::vector<AdamWEntry>& inputs, const GroupFile& file,
                                        harness::StepResult& result) const {
    std::vector<AdamWUpdate> as_results;
    std::vector<std::vector<std::byte>> gradients;
    for (const AdamWEntry& input : inputs) {
        as_results.push_back({input.parameters, input.state, false});
        gradients.emplace_back(input.gradients.bytes());
        input.gradients.download(gradients.back());
    }
    const std::vector<OutcomeEntry> now = download(as_results);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const std::span<const std::byte> stored = file.file->data(*file.entries[i].grad);
        if (std::ranges::equal(gradients[i], stored) && same_values(now[i], values_[i])) continue;
        harness::Failure failure;
        failure.fact = "a step writes to none of its inputs";
        failure.entry = i;
        failure.entry_name = file.entries[i].name;
        failure.operand = "inputs";
        failure.got = "other bytes after the step";
        failure.want = {"the bytes that were uploaded"};
        failure.notes = {"replay: " + replay_};
        result.failures.push_back(harness::describe(failure));
        return;
    }
}

harness::StepResult GroupRun::step(std::size_t index) {
    const GroupFile& file = file_of(index);
    upload_gradients(file);
    const StepControl control = control_of(file);
    const OpenDevice::ReadOnly inputs = mark_inputs();
    GuardedAdamWUpdate result;
    try {
        result = guarded_adamw_step(entries_, request_.options, control, request_.guard);
        result.wait();
    } catch (const Error& error) {
        // A finding says more than the failure that follows from it.
        device_.require_no_findings();
        throw located(error, file, request_.scan);
    }
    harness::StepOutcome outcome;
    outcome.entries = download(result.entries);
    outcome.report = std::move(result.report);
    outcome.clip_multiplier = result.clip_multiplier;
    outcome.skip_reason = result.skip_reason;
    device_.require_no_findings();

    const auto contraction =
        request_.scan.contracted ? harness::Contraction::kAllowed : harness::Contraction::kForbidden;
    harness::StepResult verdict =
        judge_step(judged_group(file), {request_.options, control, request_.guard, contraction, values_, outcome});
    verdict.source = file.file->path();
    require_inputs_untouched(entries_, file, verdict);

    for (std::size_t i = 0; i < entries_.size(); ++i) {
        entries_[i].parameters = result.entries[i].parameters;
        entries_[i].state = result.entries[i].state;
    }
    values_ = std::move(outcome.entries);
    return verdict;
}

void GroupRun::write(const std::string& path) const {
    const GroupFile& first = files_.front();
    const GroupFile& last = *gradients_from_;
    std::map<std::string, harness::SafetensorsOutput> tensors;
    std::map<std::string, std::string> metadata;
    metadata["gradient_scale"] = float_text(scale_of(request_.scan, last));
    for (std::size_t i = 0; i < values_.size(); ++i) {
        const std::string& name = first.entries[i].name;
        const std::vector<std::uint64_t>& shape = first.entries[i].param->shape;
        const OutcomeEntry& value = values_[i];
        const auto put = [&](const char* suffix, const std::vector<float>& data) {
            tensors[name + suffix] = {"F32", shape, std::as_bytes(std::span(data))};
        };
        const SafetensorsTensor& grad = *last.entries[i].grad;
        tensors[name + ".grad"] = {grad.dtype, grad.shape, last.file->data(grad)};
        put(".param", value.parameters);
        metadata[name + ".step"] = std::to_string(value.state ? value.state->step : 0);
        if (!value.state) continue;
        put(".exp_avg", value.state->first_moment);
        put(".exp_avg_sq", value.state->second_moment);
        if (value.state->max_second_moment) put(".max_exp_avg_sq", *value.state->max_second_moment);
    }
    harness::write_safetensors(path, tensors, metadata);
}

}  // namespace gradguard::tools
