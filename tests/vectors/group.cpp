// SPDX-License-Identifier: Apache-2.0
#include "tests/vectors/group.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <iomanip>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "kernels/host/guarded_adamw.h"
#include "reference/contract/error.h"

namespace gradguard::testing {
namespace {

template <class Word>
std::string hex(Word word) {
    std::ostringstream text;
    text << "0x" << std::hex << std::uppercase << std::setfill('0') << std::setw(2 * sizeof word) << word;
    return text.str();
}

Tensor upload(const std::shared_ptr<Queue>& queue, DType dtype, std::span<const std::byte> bytes) {
    Tensor tensor = Tensor::allocate(queue, dtype, {bytes.size() / element_bytes(dtype)});
    if (!bytes.empty()) tensor.upload(bytes);
    return tensor;
}

Tensor upload(const std::shared_ptr<Queue>& queue, const std::vector<float>& values) {
    return upload(queue, DType::kF32, std::as_bytes(std::span(values)));
}

AdamWEntry upload(const std::shared_ptr<Queue>& queue, const reference::HostEntry& host) {
    AdamWEntry entry{upload(queue, host.parameters), upload(queue, host.gradient_dtype, host.gradients), std::nullopt};
    if (!host.state) return entry;
    AdamWState state{host.state->step, upload(queue, host.state->first_moment),
                     upload(queue, host.state->second_moment), std::nullopt};
    if (host.state->max_second_moment) state.max_second_moment = upload(queue, *host.state->max_second_moment);
    entry.state = std::move(state);
    return entry;
}

std::vector<float> download(const Tensor& tensor) {
    std::vector<float> values(tensor.elements());
    if (!values.empty()) tensor.download(std::as_writable_bytes(std::span(values)));
    return values;  // Returning moves nothing that a pending copy points to.
}

reference::HostUpdate download(const AdamWUpdate& update) {
    reference::HostUpdate host;
    host.updated = update.updated;
    host.parameters = download(update.parameters);
    if (!update.state) return host;
    reference::HostState state{update.state->step, download(update.state->first_moment),
                               download(update.state->second_moment), std::nullopt};
    if (update.state->max_second_moment) state.max_second_moment = download(*update.state->max_second_moment);
    host.state = std::move(state);
    return host;
}

}  // namespace

std::string bits_text(float value) { return hex(std::bit_cast<std::uint32_t>(value)); }
std::string bits_text(double value) { return hex(std::bit_cast<std::uint64_t>(value)); }

float float_of_text(const std::string& text) {
    std::uint32_t word = 0;
    const char* end = text.data() + text.size();
    if (text.size() != 10 || text.compare(0, 2, "0x") != 0 ||
        std::from_chars(text.data() + 2, end, word, 16).ptr != end) {
        throw std::invalid_argument("want the bits of an FP32 number as 0x and 8 digits, got '" + text + "'");
    }
    return std::bit_cast<float>(word);
}

void read_options(const nlohmann::json& json, Group& group) {
    const auto number = [&](const char* name) { return float_of_text(json.at(name).get<std::string>()); };
    group.options = {.learning_rate = number("learning_rate"),
                     .beta1 = number("beta1"),
                     .beta2 = number("beta2"),
                     .epsilon = number("epsilon"),
                     .weight_decay = number("weight_decay"),
                     .amsgrad = json.at("amsgrad").get<bool>(),
                     .maximize = json.at("maximize").get<bool>()};
    group.control.gradient_scale = number("gradient_scale");
    group.guard.epsilon = number("guard_epsilon");
    group.guard.max_norm = std::nullopt;
    if (!json.at("max_norm").is_null()) group.guard.max_norm = number("max_norm");
}

std::vector<float> floats_at(const harness::SafetensorsFile& file, const std::string& name) {
    const auto found = file.tensors().find(name);
    if (found == file.tensors().end() || found->second.dtype != "F32") {
        throw std::invalid_argument(file.path() + ": want a tensor " + name + " of F32");
    }
    const std::span<const std::byte> bytes = file.data(found->second);
    std::vector<float> values(bytes.size() / sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
}

void read_gradients(const harness::SafetensorsFile& file, const std::string& name, reference::HostEntry& entry) {
    const auto found = file.tensors().find(name);
    if (found == file.tensors().end() || !harness::contract_dtype(found->second.dtype)) {
        throw std::invalid_argument(file.path() + ": want a tensor " + name + " of F32, F16 or BF16");
    }
    const std::span<const std::byte> bytes = file.data(found->second);
    entry.gradient_dtype = *harness::contract_dtype(found->second.dtype);
    entry.gradients.assign(bytes.begin(), bytes.end());
}

reference::HostState read_state(const harness::SafetensorsFile& file, const std::string& prefix, std::uint64_t step,
                                bool amsgrad) {
    reference::HostState state{step, floats_at(file, prefix + ".exp_avg"), floats_at(file, prefix + ".exp_avg_sq"),
                               std::nullopt};
    if (amsgrad) state.max_second_moment = floats_at(file, prefix + ".max_exp_avg_sq");
    return state;
}

Group read_group(const harness::SafetensorsFile& file, const std::string& key) {
    const auto json = nlohmann::json::parse(file.metadata().at(key));
    Group group;
    read_options(json, group);
    group.names = json.at("entries").get<std::vector<std::string>>();
    const auto steps = json.at("steps").get<std::vector<std::uint64_t>>();
    if (steps.size() != group.names.size()) throw std::invalid_argument(key + ": not as many steps as entries");
    for (std::size_t i = 0; i < steps.size(); ++i) {
        std::string prefix = key;
        prefix.append("/").append(group.names[i]);
        reference::HostEntry entry;
        entry.parameters = floats_at(file, prefix + ".param");
        read_gradients(file, prefix + ".grad", entry);
        if (steps[i] != 0) entry.state = read_state(file, prefix, steps[i], group.options.amsgrad);
        group.entries.push_back(std::move(entry));
    }
    return group;
}

GroupResult run_group(const std::shared_ptr<Queue>& queue, const Group& group) {
    std::vector<AdamWEntry> entries;
    for (const reference::HostEntry& entry : group.entries) entries.push_back(upload(queue, entry));
    GroupResult result;
    try {
        const GuardedAdamWUpdate update = guarded_adamw_step(entries, group.options, group.control, group.guard);
        update.wait();
        result.report = update.report;
        result.clip_multiplier = update.clip_multiplier;
        result.skip_reason = update.skip_reason;
        for (const AdamWUpdate& entry : update.entries) result.entries.push_back(download(entry));
        queue->synchronize();
    } catch (const Error& error) {
        result = {};
        result.error = to_string(error.kind());
    }
    return result;
}

}  // namespace gradguard::testing
