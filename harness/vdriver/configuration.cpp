// SPDX-License-Identifier: Apache-2.0
#include "harness/vdriver/configuration.h"

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "harness/observers/registry.h"
#include "harness/vgpu/error.h"

namespace gradguard::vdriver {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(const std::string& member, const std::string& wanted) {
    throw std::invalid_argument("configuration: \"" + member + "\" must be " + wanted);
}

bool to_bool(const std::string& member, const Json& value) {
    if (!value.is_boolean()) refuse(member, "true or false");
    return value.get<bool>();
}

template <class Integer>
Integer to_integer(const std::string& member, const Json& value, std::uint64_t least = 0) {
    const std::uint64_t most = std::numeric_limits<Integer>::max();
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() < least || value.get<std::uint64_t>() > most)
        refuse(member, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return static_cast<Integer>(value.get<std::uint64_t>());
}

std::string to_text(const std::string& member, const Json& value) {
    if (!value.is_string()) refuse(member, "a string");
    return value.get<std::string>();
}

vgpu::Dim3 to_dim(const std::string& member, const Json& value) {
    if (!value.is_array() || value.size() != 3) refuse(member, "three whole numbers");
    return {to_integer<std::uint32_t>(member, value[0], 1), to_integer<std::uint32_t>(member, value[1], 1),
            to_integer<std::uint32_t>(member, value[2], 1)};
}

using Readers = std::map<std::string, std::function<void(const std::string&, const Json&)>, std::less<>>;

void read_object(const std::string& where, const Json& json, const Readers& readers) {
    if (!json.is_object()) refuse(where, "an object");
    for (const auto& [name, value] : json.items()) {
        const auto reader = readers.find(name);
        if (reader == readers.end()) {
            std::string known;
            for (const auto& entry : readers) known += (known.empty() ? "" : ", ") + entry.first;
            throw std::invalid_argument(
                vgpu::one_line("configuration: unknown member \"" + name + "\"; known are " + known));
        }
        reader->second(name, value);
    }
}

void read_limits(const Json& json, vgpu::MachineOptions& machine) {
    vgpu::Limits& limits = machine.limits;
    read_object("limits", json,
                {{"memory_bytes", [&](const auto& name,
                                      const Json& v) { limits.max_memory_bytes = to_integer<std::uint64_t>(name, v); }},
                 {"shared_bytes_per_block",
                  [&](const auto& name, const Json& v) {
                      limits.max_shared_bytes_per_block = to_integer<std::uint32_t>(name, v);
                  }},
                 {"threads_per_block",
                  [&](const auto& name, const Json& v) {
                      limits.max_threads_per_block = to_integer<std::uint32_t>(name, v, 1);
                  }},
                 {"block", [&](const auto& name, const Json& v) { limits.max_block = to_dim(name, v); }},
                 {"grid", [&](const auto& name, const Json& v) { limits.max_grid = to_dim(name, v); }},
                 {"instruction_budget", [&](const auto& name, const Json& v) {
                      machine.instruction_budget = to_integer<std::uint64_t>(name, v, 1);
                  }}});
}

void read_capability(const std::string& member, const Json& value, Configuration& into) {
    const std::string text = to_text(member, value);
    const bool fits = (text.size() == 3 && text[1] == '.') || (text.size() == 4 && text[2] == '.');
    if (!fits || text.find_first_not_of("0123456789.") != std::string::npos ||
        std::count(text.begin(), text.end(), '.') != 1)
        refuse(member, "\"8.0\" or the like");
    into.capability_major = std::stoi(text);
    into.capability_minor = text.back() - '0';
}

std::vector<std::string> split(const std::string& names) {
    std::vector<std::string> result{""};
    for (const char c : names) {
        if (c == ',') {
            result.emplace_back();
        } else {
            result.back() += c;
        }
    }
    return result;
}

}  // namespace

vgpu::MachineOptions Configuration::default_machine() {
    vgpu::MachineOptions machine;
    machine.host_addresses = true;
    machine.limits.max_memory_bytes = std::uint64_t{1} << 34;
    machine.limits.max_shared_bytes_per_block = 166912;  // of compute capability 8.0, one KiB of 164 being reserved
    return machine;
}

bool Configuration::wants_leaks() const {
    const std::vector<std::string> names = split(observers);
    return std::find(names.begin(), names.end(), "leaks") != names.end();
}

std::string Configuration::observers_to_attach() const {
    if (observers == "none") return observers;
    std::string attached;
    for (const std::string& name : observers == "all" ? observers::observer_names() : split(observers)) {
        if (name != "leaks") attached += (attached.empty() ? "" : ",") + name;
    }
    return attached.empty() ? "none" : attached;
}

Configuration parse_configuration(std::string_view text) {
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded())
        throw std::invalid_argument(vgpu::one_line("configuration: not JSON: " + std::string(text)));
    Configuration result;
    vgpu::MachineOptions& machine = result.machine;
    read_object(
        "configuration", json,
        {{"observers", [&](const auto& name, const Json& v) { result.observers = to_text(name, v); }},
         {"seed", [&](const auto& name, const Json& v) { machine.seed = to_integer<std::uint64_t>(name, v); }},
         {"hold_back", [&](const auto& name, const Json& v) { result.hold_back = to_bool(name, v); }},
         {"count", [&](const auto& name, const Json& v) { result.count = to_bool(name, v); }},
         {"allow_approximate", [&](const auto& name, const Json& v) { machine.allow_approximate = to_bool(name, v); }},
         {"flush_subnormals", [&](const auto& name, const Json& v) { machine.flush_subnormals = to_bool(name, v); }},
         {"report", [&](const auto& name, const Json& v) { result.report = to_text(name, v); }},
         {"driver_version",
          [&](const auto& name, const Json& v) {
              result.driver_version = to_integer<int>(name, v, 2000);
              result.version_was_given = true;
          }},
         {"compute_capability", [&](const auto& name, const Json& v) { read_capability(name, v, result); }},
         {"limits", [&](const auto&, const Json& v) { read_limits(v, machine); }}});
    machine.count_by_kind = result.count;
    observers::make_observers(result.observers);  // throws for an unknown name
    return result;
}

nlohmann::ordered_json to_json(const Configuration& c) {
    const auto dim = [](const vgpu::Dim3& d) { return Json{d.x, d.y, d.z}; };
    const vgpu::Limits& limits = c.machine.limits;
    return {{"observers", c.observers},
            {"seed", c.machine.seed},
            {"hold_back", c.hold_back},
            {"count", c.count},
            {"allow_approximate", c.machine.allow_approximate},
            {"flush_subnormals", c.machine.flush_subnormals},
            {"report", c.report},
            {"driver_version", c.driver_version},
            {"compute_capability", std::to_string(c.capability_major) + "." + std::to_string(c.capability_minor)},
            {"limits",
             {{"memory_bytes", limits.max_memory_bytes},
              {"shared_bytes_per_block", limits.max_shared_bytes_per_block},
              {"threads_per_block", limits.max_threads_per_block},
              {"block", dim(limits.max_block)},
              {"grid", dim(limits.max_grid)},
              {"instruction_budget", c.machine.instruction_budget}}}};
}

}  // namespace gradguard::vdriver
