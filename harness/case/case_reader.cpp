// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "harness/case/case_file.h"
#include "harness/case/case_names.h"
#include "harness/io/file_error.h"

namespace gradguard::harness {
namespace {

using Json = nlohmann::ordered_json;

/// A value of the file with its place in it, "entries[0].gradients.shape", for messages.
class Reader {
  public:
    Reader(const Json& json, std::string place) : json_(&json), place_(std::move(place)) {}

    [[noreturn]] void refuse(const std::string& wanted, const std::string& got) const {
        throw std::invalid_argument((place_.empty() ? "case" : place_) + ": want " + wanted + ", got " + got);
    }
    /// What came instead, cut to a part of a line.
    std::string shown() const {
        if (json_->is_structured()) return json_->is_object() ? "an object" : "a list";
        return json_->is_string() ? in_quotes(json_->get_ref<const std::string&>()) : json_->dump();
    }

    /// Exactly these members and no other.
    void require_members(std::initializer_list<std::string_view> names) const {
        if (!json_->is_object()) refuse("an object", shown());
        for (const std::string_view name : names) {
            if (!json_->contains(name)) refuse("a member " + in_quotes(name), "none");
        }
        for (auto member = json_->begin(); member != json_->end(); ++member) {
            bool known = false;
            for (const std::string_view name : names) known = known || name == member.key();
            if (!known) refuse("no member " + in_quotes(member.key()), "one");
        }
    }
    Reader member(std::string_view name) const {
        std::string place = place_;
        if (!place.empty()) place += '.';
        return {json_->at(std::string(name)), place + std::string(name)};
    }
    std::vector<Reader> items() const {
        if (!json_->is_array()) refuse("a list", shown());
        std::vector<Reader> readers;
        for (const Json& item : *json_) {
            readers.emplace_back(item, place_ + "[" + std::to_string(readers.size()) + "]");
        }
        return readers;
    }
    bool is_null() const { return json_->is_null(); }

    const std::string& text() const {
        if (!json_->is_string()) refuse("a string", shown());
        return json_->get_ref<const std::string&>();
    }
    bool truth() const {
        if (!json_->is_boolean()) refuse("true or false", shown());
        return json_->get<bool>();
    }
    template <class Integer>
    Integer integer() const {
        const bool fits = std::is_signed_v<Integer>
                              ? json_->is_number_integer() &&
                                    (!json_->is_number_unsigned() ||
                                     json_->get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<Integer>::max()})
                              : json_->is_number_unsigned() &&
                                    json_->get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<Integer>::max()};
        if (!fits) {
            const char* kind = std::is_signed_v<Integer> ? "an integer of " : "a non-negative integer of ";
            refuse(kind + std::to_string(8 * sizeof(Integer)) + " bits", shown());
        }
        return json_->get<Integer>();
    }
    template <class Integer>
    std::vector<Integer> integers() const {
        std::vector<Integer> values;
        for (const Reader& item : items()) values.push_back(item.integer<Integer>());
        return values;
    }
    /// One of `all`, by its to_string().
    template <class Enum, class List>
    Enum one_of(const List& all) const {
        const std::string& name = text();
        std::string known;
        for (const Enum value : all) {
            if (to_string(value) == name) return value;
            if (!known.empty()) known += " or ";
            known += in_quotes(to_string(value));
        }
        refuse(known, shown());
    }

  private:
    const Json* json_;
    std::string place_;
};

/// The value of up to 8 hexadecimal digits; nothing for another character.
std::optional<std::uint32_t> word_of(std::string_view digits) {
    std::uint32_t word = 0;
    for (const char c : digits) {
        const bool decimal = c >= '0' && c <= '9';
        const bool upper = c >= 'A' && c <= 'F';
        const bool lower = c >= 'a' && c <= 'f';
        if (!decimal && !upper && !lower) return std::nullopt;
        word = word << 4U | static_cast<std::uint32_t>(decimal ? c - '0' : upper ? c - 'A' + 10 : c - 'a' + 10);
    }
    return word;
}

float read_float(const Reader& reader) {
    const std::string wanted = "the bits of an FP32 number, \"0x\" and 8 hexadecimal digits";
    const std::string& text = reader.text();
    const auto word = text.size() == 10 && text.starts_with("0x") ? word_of(std::string_view(text).substr(2))
                                                                  : std::optional<std::uint32_t>();
    if (!word) reader.refuse(wanted, reader.shown());
    return std::bit_cast<float>(*word);
}

std::vector<std::byte> read_values(const Reader& reader, const CaseTensor& tensor) {
    if (!is_readable(tensor)) {
        if (!reader.is_null()) reader.refuse("null for a layout that breaks a rule", reader.shown());
        return {};
    }
    const std::string_view text = reader.text();
    const std::size_t width = element_bytes(tensor.layout.dtype);
    const std::uint64_t elements = count(tensor);
    if (text.size() != elements * 2 * width) {
        reader.refuse(
            std::to_string(2 * width) + " hexadecimal digits for each of " + std::to_string(elements) + " elements",
            std::to_string(text.size()) + " characters");
    }
    std::vector<std::byte> values(elements * width);
    for (std::size_t i = 0; i < elements; ++i) {
        const std::string_view digits = text.substr(i * 2 * width, 2 * width);
        const auto word = word_of(digits);
        if (!word) reader.refuse("hexadecimal digits", in_quotes(digits) + " at element " + std::to_string(i));
        if (width == 4) {
            std::memcpy(values.data() + i * width, &*word, width);
        } else {
            const auto half = static_cast<std::uint16_t>(*word);
            std::memcpy(values.data() + i * width, &half, width);
        }
    }
    return values;
}

CaseTensor read_tensor(const Reader& reader) {
    reader.require_members({"dtype", "shape", "strides", "byte_offset", "storage_bytes", "queue", "values"});
    CaseTensor tensor;
    tensor.layout.dtype = reader.member("dtype").one_of<DType>(kAllDTypes);
    tensor.layout.shape = reader.member("shape").integers<std::uint64_t>();
    tensor.layout.strides = reader.member("strides").integers<std::int64_t>();
    tensor.layout.byte_offset = reader.member("byte_offset").integer<std::uint64_t>();
    tensor.storage_bytes = reader.member("storage_bytes").integer<std::uint64_t>();
    tensor.queue = reader.member("queue").integer<std::uint32_t>();
    tensor.values = read_values(reader.member("values"), tensor);
    return tensor;
}

CaseEntry read_entry(const Reader& reader) {
    reader.require_members({"parameters", "gradients", "state"});
    CaseEntry entry;
    entry.parameters = read_tensor(reader.member("parameters"));
    entry.gradients = read_tensor(reader.member("gradients"));
    const Reader state = reader.member("state");
    if (state.is_null()) return entry;
    state.require_members({"step", "first_moment", "second_moment", "max_second_moment"});
    entry.state.emplace();
    entry.state->step = state.member("step").integer<std::uint64_t>();
    entry.state->first_moment = read_tensor(state.member("first_moment"));
    entry.state->second_moment = read_tensor(state.member("second_moment"));
    const Reader maximum = state.member("max_second_moment");
    if (!maximum.is_null()) entry.state->max_second_moment = read_tensor(maximum);
    return entry;
}

StepControl read_control(const Reader& reader) {
    reader.require_members({"gradient_scale", "skip_update"});
    StepControl control;
    control.gradient_scale = read_float(reader.member("gradient_scale"));
    control.skip_update = reader.member("skip_update").truth();
    return control;
}

AdamWOptions read_options(const Reader& reader) {
    reader.require_members({"learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "amsgrad", "maximize"});
    AdamWOptions options;
    options.learning_rate = read_float(reader.member("learning_rate"));
    options.beta1 = read_float(reader.member("beta1"));
    options.beta2 = read_float(reader.member("beta2"));
    options.epsilon = read_float(reader.member("epsilon"));
    options.weight_decay = read_float(reader.member("weight_decay"));
    options.amsgrad = reader.member("amsgrad").truth();
    options.maximize = reader.member("maximize").truth();
    return options;
}

GradientGuardOptions read_guard(const Reader& reader) {
    reader.require_members({"max_norm", "epsilon", "nonfinite"});
    GradientGuardOptions guard;
    guard.max_norm.reset();
    if (!reader.member("max_norm").is_null()) guard.max_norm = read_float(reader.member("max_norm"));
    guard.epsilon = read_float(reader.member("epsilon"));
    guard.nonfinite =
        reader.member("nonfinite").one_of<NonFinitePolicy>(std::array{NonFinitePolicy::kSkip, NonFinitePolicy::kError});
    return guard;
}

LaterStep read_later(const Reader& reader, const std::vector<CaseEntry>& entries) {
    reader.require_members({"control", "gradients"});
    LaterStep later;
    later.control = read_control(reader.member("control"));
    const std::vector<Reader> gradients = reader.member("gradients").items();
    if (gradients.size() != entries.size()) {
        reader.member("gradients")
            .refuse("one for each of " + std::to_string(entries.size()) + " entries", std::to_string(gradients.size()));
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
        later.gradients.push_back(read_values(gradients[i], entries[i].gradients));
    }
    return later;
}

/// Refuses a member that is there twice: which of the two counts would be anybody's guess.
Json parse(std::string_view text) {
    std::vector<std::set<std::string>> open;
    const auto look = [&](int, Json::parse_event_t event, Json& parsed) {
        if (event == Json::parse_event_t::object_start) open.emplace_back();
        if (event == Json::parse_event_t::object_end) open.pop_back();
        if (event != Json::parse_event_t::key) return true;
        const auto& name = parsed.get_ref<const std::string&>();
        if (open.back().insert(name).second) return true;
        throw std::invalid_argument("case: want each member once, got " + in_quotes(name) + " twice");
    };
    try {
        return Json::parse(text, look);
    } catch (const Json::exception& error) {  // beside parse_error: a number that FP64 does not hold
        throw std::invalid_argument(std::string("case: want JSON: ") + one_line(error.what()));
    }
}

}  // namespace

Case case_from_json(std::string_view text) {
    const Json json = parse(text);
    const Reader reader(json, "");
    if (json.is_object() && json.contains("schema") && json.at("schema") != kCaseSchema) {
        reader.member("schema").refuse(std::to_string(kCaseSchema), reader.member("schema").shown());
    }
    reader.require_members({"schema", "operation", "property", "subject", "schedule_seed", "options", "control",
                            "guard", "entries", "later"});
    Case c;
    c.operation = reader.member("operation").one_of<Operation>(kAllOperations);
    c.property = reader.member("property").text();
    c.subject = reader.member("subject").text();
    c.schedule_seed = reader.member("schedule_seed").integer<std::uint64_t>();
    c.options = read_options(reader.member("options"));
    c.control = read_control(reader.member("control"));
    c.guard = read_guard(reader.member("guard"));
    for (const Reader& entry : reader.member("entries").items()) c.entries.push_back(read_entry(entry));
    for (const Reader& later : reader.member("later").items()) c.later.push_back(read_later(later, c.entries));
    if (c.operation == Operation::kUnguardedStep && c.entries.size() != 1) {
        reader.member("entries").refuse("exactly 1 for unguarded_step", std::to_string(c.entries.size()));
    }
    return c;
}

Case read_case(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (!file.good()) throw FileError(path, "cannot read");
    try {
        return case_from_json(text);
    } catch (const std::invalid_argument& error) {
        throw FileError(path, error.what());
    }
}

}  // namespace gradguard::harness
