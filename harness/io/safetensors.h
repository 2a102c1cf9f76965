// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/io/file_error.h"
#include "reference/contract/dtype.h"

namespace gradguard::harness {

/// A tensor as a safetensors header describes it. Dense, row-major, little-endian.
struct SafetensorsTensor {
    std::string dtype;                 ///< One of the format's names; "F32", "F16", "BF16" are the contract's.
    std::vector<std::uint64_t> shape;  ///< Rank 0 is one element; a dimension may be 0.
    std::uint64_t begin = 0;           ///< Byte offsets into the data section, end exclusive.
    std::uint64_t end = 0;
};

/// What a header says. Names in the order of their bytes.
struct SafetensorsHeader {
    std::map<std::string, SafetensorsTensor> tensors;
    std::map<std::string, std::string> metadata;
};

/// A header longer than this is refused before anything is allocated for it.
inline constexpr std::uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

/// Bits in one element of a dtype of the format; nullopt for a name that the format does not have.
std::optional<std::uint64_t> safetensors_element_bits(std::string_view dtype);

/// The contract's dtype of that name, or nullopt.
std::optional<DType> contract_dtype(std::string_view dtype);

/// Reads the JSON text of a header strictly: an object without duplicate names, each tensor with exactly a known dtype,
/// a shape and data_offsets that agree, metadata of strings, and a data section of `data_bytes` that the tensors cover
/// without overlap, hole or rest. Throws FileError with `path`.
SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view json, std::uint64_t data_bytes);

/// A safetensors file, checked when opened. The data is mapped, not read: touching a tensor reads its pages.
class SafetensorsFile {
  public:
    /// Throws FileError for anything that is not exactly a safetensors file.
    explicit SafetensorsFile(const std::string& path);

    const std::string& path() const { return path_; }
    const std::map<std::string, SafetensorsTensor>& tensors() const { return header_.tensors; }
    const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
    /// The bytes of one of this file's tensors; valid as long as this object. Not aligned.
    std::span<const std::byte> data(const SafetensorsTensor& tensor) const;

  private:
    std::string path_;
    std::shared_ptr<const std::byte> mapping_;
    std::uint64_t data_offset_ = 0;
    SafetensorsHeader header_;
};

/// A tensor to write: `data` is dense, row-major, of exactly the size that dtype and shape give.
struct SafetensorsOutput {
    std::string dtype;
    std::vector<std::uint64_t> shape;
    std::span<const std::byte> data;
};

/// Writes a file that is there whole or not at all, the same bytes for the same content: names sorted in the header,
/// wide elements first in the data so that every tensor is aligned, the header padded with spaces to a multiple of 8.
/// Throws FileError, std::invalid_argument when a tensor's data does not fit its shape.
void write_safetensors(const std::string& path, const std::map<std::string, SafetensorsOutput>& tensors,
                       const std::map<std::string, std::string>& metadata);

}  // namespace gradguard::harness
