// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "harness/io/safetensors.h"

namespace gradguard::harness {
namespace {

using nlohmann::json;

struct FormatDType {
    std::string_view name;
    std::uint64_t bits;
};

constexpr FormatDType kFormatDTypes[] = {
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},   {"I8", 8},    {"F8_E5M2", 8},
    {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16}, {"BF16", 16}, {"I32", 32},
    {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},    {"I64", 64}, {"U64", 64},
};

constexpr std::string_view kMetadataName = "__metadata__";

/// Receives the header's JSON token by token. A tree would silently keep the last of two equal names and could grow to
/// many times the text; this holds only what a right header holds, and stops at the first token that is out of place.
class HeaderReader final : public nlohmann::json_sax<json> {
  public:
    SafetensorsHeader header;
    std::string problem;
    std::string tensor;  ///< The tensor that `problem` is about, or empty.

    bool null() override { return unexpected("null"); }
    bool boolean(bool) override { return unexpected("true or false"); }
    bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
    bool number_unsigned(number_unsigned_t value) override {
        if (place_ != Place::kShape && place_ != Place::kOffsets) return unexpected("a number");
        if (place_ == Place::kOffsets && offsets_.size() == 2) return fail("data_offsets has more than two numbers");
        (place_ == Place::kShape ? shape_ : offsets_).push_back(value);
        return true;
    }
    bool number_float(number_float_t, const string_t& text) override {
        return unexpected("a number that is no 64-bit unsigned integer (" + text.substr(0, 40) + ")");
    }
    bool string(string_t& value) override {
        if (place_ == Place::kMetadata) {
            header.metadata[key_] = std::move(value);
            return true;
        }
        if (place_ != Place::kTensor || key_ != "dtype") return unexpected("a string");
        if (!safetensors_element_bits(value)) return fail("unknown dtype " + in_quotes(value));
        dtype_ = std::move(value);
        return true;
    }
    bool binary(binary_t&) override { return unexpected("binary data"); }

    bool start_object(std::size_t) override {
        switch (place_) {
            case Place::kStart:
                place_ = Place::kTop;
                return true;
            case Place::kTop:
                place_ = key_ == kMetadataName ? Place::kMetadata : Place::kTensor;
                return true;
            default:
                return unexpected("an object");
        }
    }
    bool key(string_t& name) override {
        key_ = std::move(name);
        switch (place_) {
            case Place::kTop:
                return top_key();
            case Place::kMetadata:
                return header.metadata.contains(key_) ? fail("metadata name " + in_quotes(key_) + " appears twice")
                                                      : true;
            default:
                return tensor_key();
        }
    }
    bool end_object() override {
        if (place_ == Place::kTensor && !finish_tensor()) return false;
        place_ = place_ == Place::kTop ? Place::kStart : Place::kTop;
        return true;
    }
    bool start_array(std::size_t) override {
        if (place_ != Place::kTensor || key_ == "dtype") return unexpected("an array");
        place_ = key_ == "shape" ? Place::kShape : Place::kOffsets;
        return true;
    }
    bool end_array() override {
        if (place_ == Place::kOffsets && offsets_.size() != 2) return fail("data_offsets has fewer than two numbers");
        place_ = Place::kTensor;
        return true;
    }
    bool parse_error(std::size_t position, const std::string& token, const json::exception&) override {
        tensor.clear();
        problem = "the header is not valid JSON at byte " + std::to_string(position) + ", near " + in_quotes(token);
        return false;
    }

  private:
    enum class Place { kStart, kTop, kMetadata, kTensor, kShape, kOffsets };

    bool fail(std::string message) {
        problem = std::move(message);
        return false;
    }
    bool unexpected(const std::string& got) {
        switch (place_) {
            case Place::kStart:
                return fail("the header is not a JSON object: got " + got);
            case Place::kTop:
                return fail((key_ == kMetadataName ? "__metadata__" : "its description") +
                            (" is not an object: got " + got));
            case Place::kMetadata:
                return fail("metadata " + in_quotes(key_) + " is not a string: got " + got);
            case Place::kTensor:
                return fail(key_ + (key_ == "dtype" ? " is not a string: got " : " is not an array: got ") + got);
            default:
                return fail(key_ + " holds something other than unsigned integers: got " + got);
        }
    }
    bool top_key() {
        tensor.clear();
        if (key_ == kMetadataName) {
            if (std::exchange(metadata_seen_, true)) return fail("__metadata__ appears twice");
            return true;
        }
        tensor = key_;
        dtype_seen_ = shape_seen_ = offsets_seen_ = false;
        shape_.clear();
        offsets_.clear();
        return header.tensors.contains(key_) ? fail("the name appears twice") : true;
    }
    bool tensor_key() {
        if (key_ != "dtype" && key_ != "shape" && key_ != "data_offsets") {
            return fail("unknown field " + in_quotes(key_) + "; want dtype, shape, data_offsets");
        }
        bool& seen = key_ == "dtype" ? dtype_seen_ : key_ == "shape" ? shape_seen_ : offsets_seen_;
        return std::exchange(seen, true) ? fail("field " + in_quotes(key_) + " appears twice") : true;
    }
    bool finish_tensor() {
        if (!dtype_seen_ || !shape_seen_ || !offsets_seen_) {
            return fail(std::string("field ") +
                        (!dtype_seen_   ? "dtype"
                         : !shape_seen_ ? "shape"
                                        : "data_offsets") +
                        " is missing");
        }
        header.tensors[tensor] = {std::move(dtype_), std::move(shape_), offsets_[0], offsets_[1]};
        return true;
    }

    Place place_ = Place::kStart;
    std::string key_;
    bool metadata_seen_ = false;
    bool dtype_seen_ = false;
    bool shape_seen_ = false;
    bool offsets_seen_ = false;
    std::string dtype_;
    std::vector<std::uint64_t> shape_;
    std::vector<std::uint64_t> offsets_;
};

/// Bytes that dtype and shape need, or why there is no such number.
struct Size {
    std::uint64_t bytes = 0;
    std::string problem;
};

Size size_of(const SafetensorsTensor& tensor) {
    // A zero dimension makes the size zero whatever the others are; the contract's stricter rule about such shapes is
    // the library's to apply.
    if (std::ranges::find(tensor.shape, 0U) != tensor.shape.end()) return {};
    std::uint64_t bits = *safetensors_element_bits(tensor.dtype);
    for (const std::uint64_t dimension : tensor.shape) {
        if (__builtin_mul_overflow(bits, dimension, &bits)) return {0, "its size overflows 64 bits"};
    }
    if (bits % 8 != 0) return {0, "its " + std::to_string(bits) + " bits are not whole bytes"};
    return {bits / 8, {}};
}

std::string shape_text(const SafetensorsTensor& tensor) {
    std::string text = tensor.dtype + " [";
    for (std::size_t i = 0; i < tensor.shape.size() && i < 8; ++i) {
        text += (i == 0 ? "" : ",") + std::to_string(tensor.shape[i]);
    }
    return text + (tensor.shape.size() > 8 ? ",...]" : "]");
}

void check_tensor(const std::string& path, const std::string& name, const SafetensorsTensor& tensor,
                  std::uint64_t data_bytes) {
    const std::string offsets =
        "data_offsets [" + std::to_string(tensor.begin) + "," + std::to_string(tensor.end) + "]";
    if (tensor.begin > tensor.end) throw FileError(path, name, offsets + " end before they begin");
    if (tensor.end > data_bytes) {
        throw FileError(path, name, offsets + " reach beyond the " + std::to_string(data_bytes) + " bytes of data");
    }
    const Size size = size_of(tensor);
    if (!size.problem.empty()) throw FileError(path, name, shape_text(tensor) + ": " + size.problem);
    if (size.bytes != tensor.end - tensor.begin) {
        throw FileError(path, name,
                        shape_text(tensor) + " needs " + std::to_string(size.bytes) + " bytes, " + offsets + " give " +
                            std::to_string(tensor.end - tensor.begin));
    }
}

/// Every byte of the data section belongs to exactly one tensor.
void check_cover(const std::string& path, const SafetensorsHeader& header, std::uint64_t data_bytes) {
    using Item = std::pair<const std::string, SafetensorsTensor>;
    std::vector<const Item*> by_offset;
    for (const Item& item : header.tensors) by_offset.push_back(&item);
    std::ranges::sort(by_offset, {}, [](const Item* item) {
        return std::tuple(item->second.begin, item->second.end, std::string_view(item->first));
    });
    std::uint64_t covered = 0;
    const std::string* previous = nullptr;
    for (const Item* item : by_offset) {
        const SafetensorsTensor& tensor = item->second;
        if (tensor.begin < covered) {
            throw FileError(path, item->first,
                            "its data overlaps that of " + in_quotes(*previous) + ": begins at byte " +
                                std::to_string(tensor.begin) + ", the other ends at " + std::to_string(covered));
        }
        if (tensor.begin > covered) {
            throw FileError(path, item->first,
                            "a hole in the data before it: bytes " + std::to_string(covered) + " to " +
                                std::to_string(tensor.begin) + " belong to no tensor");
        }
        covered = tensor.end;
        previous = &item->first;
    }
    if (covered != data_bytes) {
        throw FileError(path, std::to_string(data_bytes - covered) + " trailing bytes belong to no tensor");
    }
}

}  // namespace

std::optional<std::uint64_t> safetensors_element_bits(std::string_view dtype) {
    const auto* found = std::ranges::find(kFormatDTypes, dtype, &FormatDType::name);
    if (found == std::end(kFormatDTypes)) return std::nullopt;
    return found->bits;
}

std::optional<DType> contract_dtype(std::string_view dtype) {
    for (const DType candidate : kAllDTypes) {
        if (to_string(candidate) == dtype) return candidate;
    }
    return std::nullopt;
}

SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view text, std::uint64_t data_bytes) {
    // The parser would skip a byte order mark and take a zero byte for the end.
    if (text.empty() || text.front() != '{')
        throw FileError(path, "the header is not a JSON object: no '{' at its start");
    if (text.find('\0') != std::string_view::npos) throw FileError(path, "the header is not valid JSON: a zero byte");
    HeaderReader reader;
    if (!json::sax_parse(text.begin(), text.end(), &reader)) throw FileError(path, reader.tensor, reader.problem);
    for (const auto& [name, tensor] : reader.header.tensors) check_tensor(path, name, tensor, data_bytes);
    check_cover(path, reader.header, data_bytes);
    return std::move(reader.header);
}

}  // namespace gradguard::harness
