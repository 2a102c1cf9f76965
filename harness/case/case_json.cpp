// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/case/case_file.h"
#include "harness/case/case_names.h"
#include "harness/io/atomic_file.h"

namespace gradguard::harness {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kDigits[] = "0123456789ABCDEF";

void append_hex(std::string& text, std::uint32_t word, int digits) {
    for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) text += kDigits[(word >> shift) & 0xFU];
}

std::string float_to_json(float x) {
    std::string text = "0x";
    append_hex(text, std::bit_cast<std::uint32_t>(x), 8);
    return text;
}

template <class Word>
void append_words(std::string& text, const std::vector<std::byte>& values) {
    for (std::size_t at = 0; at < values.size(); at += sizeof(Word)) {
        Word word = 0;
        std::memcpy(&word, values.data() + at, sizeof(Word));
        append_hex(text, word, 2 * sizeof(Word));
    }
}

std::string values_to_json(const std::vector<std::byte>& values, DType dtype) {
    std::string text;
    text.reserve(2 * values.size());
    if (dtype == DType::kF32) {
        append_words<std::uint32_t>(text, values);
    } else {
        append_words<std::uint16_t>(text, values);
    }
    return text;
}

void require_size(const std::vector<std::byte>& values, const CaseTensor& tensor) {
    const std::uint64_t want = is_readable(tensor) ? count(tensor) * element_bytes(tensor.layout.dtype) : 0;
    if (values.size() == want) return;
    throw std::invalid_argument("a case's tensor of shape " + list_to_string(tensor.layout.shape) + ": want " +
                                std::to_string(want) + " bytes of values, got " + std::to_string(values.size()));
}

Json values_or_null(const std::vector<std::byte>& values, const CaseTensor& tensor) {
    return is_readable(tensor) ? Json(values_to_json(values, tensor.layout.dtype)) : Json();
}

Json tensor_to_json(const CaseTensor& tensor) {
    require_size(tensor.values, tensor);
    Json json = Json::object();
    json["dtype"] = to_string(tensor.layout.dtype);
    json["shape"] = tensor.layout.shape;
    json["strides"] = tensor.layout.strides;
    json["byte_offset"] = tensor.layout.byte_offset;
    json["storage_bytes"] = tensor.storage_bytes;
    json["queue"] = tensor.queue;
    json["values"] = values_or_null(tensor.values, tensor);
    return json;
}

Json entry_to_json(const CaseEntry& entry) {
    Json json = Json::object();
    json["parameters"] = tensor_to_json(entry.parameters);
    json["gradients"] = tensor_to_json(entry.gradients);
    json["state"] = nullptr;
    if (!entry.state) return json;
    Json state = Json::object();
    state["step"] = entry.state->step;
    state["first_moment"] = tensor_to_json(entry.state->first_moment);
    state["second_moment"] = tensor_to_json(entry.state->second_moment);
    const auto& maximum = entry.state->max_second_moment;
    state["max_second_moment"] = maximum ? tensor_to_json(*maximum) : Json();
    json["state"] = std::move(state);
    return json;
}

Json control_to_json(const StepControl& control) {
    Json json = Json::object();
    json["gradient_scale"] = float_to_json(control.gradient_scale);
    json["skip_update"] = control.skip_update;
    return json;
}

Json options_to_json(const AdamWOptions& options) {
    Json json = Json::object();
    json["learning_rate"] = float_to_json(options.learning_rate);
    json["beta1"] = float_to_json(options.beta1);
    json["beta2"] = float_to_json(options.beta2);
    json["epsilon"] = float_to_json(options.epsilon);
    json["weight_decay"] = float_to_json(options.weight_decay);
    json["amsgrad"] = options.amsgrad;
    json["maximize"] = options.maximize;
    return json;
}

Json guard_to_json(const GradientGuardOptions& guard) {
    Json json = Json::object();
    json["max_norm"] = guard.max_norm ? Json(float_to_json(*guard.max_norm)) : Json();
    json["epsilon"] = float_to_json(guard.epsilon);
    json["nonfinite"] = to_string(guard.nonfinite);
    return json;
}

Json later_to_json(const LaterStep& later, const std::vector<CaseEntry>& entries) {
    if (later.gradients.size() != entries.size()) {
        throw std::invalid_argument("a later step of a case: want gradients for " + std::to_string(entries.size()) +
                                    " entries, got " + std::to_string(later.gradients.size()));
    }
    Json json = Json::object();
    json["control"] = control_to_json(later.control);
    json["gradients"] = Json::array();
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const CaseTensor& first = entries[i].gradients;
        require_size(later.gradients[i], first);
        json["gradients"].push_back(values_or_null(later.gradients[i], first));
    }
    return json;
}

/// dump() puts every number of a list on a line of its own; here a list of numbers is one line.
void print(std::string& text, const Json& json, std::size_t indent) {
    const bool flat = json.empty() || !json.is_structured() || (json.is_array() && json.front().is_number());
    if (flat) {
        text += json.dump();
        return;
    }
    const char* separator = "\n";
    text += json.is_object() ? '{' : '[';
    for (auto member = json.begin(); member != json.end(); ++member) {
        text += separator;
        text.append(indent + 2, ' ');
        if (json.is_object()) text += Json(member.key()).dump() + ": ";
        print(text, *member, indent + 2);
        separator = ",\n";
    }
    text += '\n';
    text.append(indent, ' ');
    text += json.is_object() ? '}' : ']';
}

}  // namespace

std::string case_to_json(const Case& c) {
    Json json = Json::object();
    json["schema"] = kCaseSchema;
    json["operation"] = to_string(c.operation);
    json["property"] = c.property;
    json["subject"] = c.subject;
    json["schedule_seed"] = c.schedule_seed;
    json["options"] = options_to_json(c.options);
    json["control"] = control_to_json(c.control);
    json["guard"] = guard_to_json(c.guard);
    json["entries"] = Json::array();
    for (const CaseEntry& entry : c.entries) json["entries"].push_back(entry_to_json(entry));
    json["later"] = Json::array();
    for (const LaterStep& later : c.later) json["later"].push_back(later_to_json(later, c.entries));
    std::string text;
    print(text, json, 0);
    return text + "\n";
}

void write_case(const std::string& path, const Case& c) {
    const std::string text = case_to_json(c);
    AtomicFile file(path);
    file.write(std::as_bytes(std::span(text)));
    file.commit();
}

}  // namespace gradguard::harness
