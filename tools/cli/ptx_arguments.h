// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/vgpu/machine.h"
#include "tools/cli/element_type.h"

/// Kernel arguments as the command line writes them.
namespace gradguard::tools {

/// What an argument, or a member of a struct argument, turned out to be.
struct PtxArgument {
    enum class Content : std::uint8_t { kScalar, kZero, kPoison, kIota, kFile };

    std::string number;     ///< "0", or "0.1" for a member of a struct.
    std::string parameter;  ///< Its name in the PTX; empty for a member.
    std::string text;       ///< As it was written.
    ElementType type;
    Content content = Content::kScalar;
    std::uint64_t bits = 0;          ///< Scalar.
    std::uint64_t elements = 0;      ///< Buffer.
    std::string file;                ///< kFile.
    std::uint32_t offset_bytes = 0;  ///< In the argument block.

    bool is_buffer() const { return content != Content::kScalar; }
    std::uint64_t bytes() const { return elements * type.bytes; }
    /// Of the argument block: a buffer is its address.
    std::uint32_t size_bytes() const { return is_buffer() ? 8 : type.bytes; }
};

/// Reads `texts` as the arguments of `entry`; members of a struct are listed one by one, at their natural alignment.
/// Throws UsageError: which argument, what was wanted, what came.
std::vector<PtxArgument> parse_arguments(const vgpu::EntryInfo& entry, const std::vector<std::string>& texts);

/// The index in `arguments` of the buffer that `name` (a number or a parameter's name) means. Throws UsageError, with
/// `flag` in front.
std::size_t find_buffer(const std::vector<PtxArgument>& arguments, const std::string& name, const std::string& flag);

/// The bytes that a buffer begins with; empty for kPoison. Throws harness::FileError when the file cannot be read or
/// has another size.
std::vector<std::byte> initial_bytes(const PtxArgument& argument);

/// The whole file. Throws harness::FileError.
std::string read_text(const std::string& path);

}  // namespace gradguard::tools
