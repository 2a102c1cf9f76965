// SPDX-License-Identifier: Apache-2.0
// Bytes as a safetensors file. What is accepted is written anew and read again: the same tensors, the same metadata;
// and what our writer writes is a fixed point of it.
#include <algorithm>

#include "harness/io/safetensors.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_file.h"
#include "tests/support/temporary_folder.h"

namespace gradguard::fuzz {
namespace {

using harness::FileError;
using harness::SafetensorsFile;
using harness::SafetensorsOutput;

void write_again(const SafetensorsFile& file, const std::string& path) {
    std::map<std::string, SafetensorsOutput> tensors;
    for (const auto& [name, tensor] : file.tensors()) {
        tensors[name] = {tensor.dtype, tensor.shape, file.data(tensor)};
    }
    write_safetensors(path, tensors, file.metadata());
}

void require_same(const SafetensorsFile& a, const SafetensorsFile& b) {
    require(a.metadata() == b.metadata(), "metadata survives writing and reading");
    require(a.tensors().size() == b.tensors().size(), "no tensor is lost or added by writing");
    for (const auto& [name, tensor] : a.tensors()) {
        const auto found = b.tensors().find(name);
        require(found != b.tensors().end(), "a tensor keeps its name");
        require(tensor.dtype == found->second.dtype, "a tensor keeps its dtype");
        require(tensor.shape == found->second.shape, "a tensor keeps its shape");
        require(std::ranges::equal(a.data(tensor), b.data(found->second)), "a tensor keeps its bytes");
    }
}

void try_file(std::string_view bytes) {
    static const testing::TemporaryFolder folder;
    const MemoryFile input(bytes);
    try {
        const SafetensorsFile file(input.path());
        const std::string once = folder.path("once"), twice = folder.path("twice");
        write_again(file, once);
        const SafetensorsFile written(once);
        require_same(file, written);
        write_again(written, twice);
        require(testing::read_bytes(once) == testing::read_bytes(twice), "the same content makes the same bytes");
    } catch (const FileError& error) {
        require_one_line(error.what());
    }
}

}  // namespace
}  // namespace gradguard::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    gradguard::fuzz::try_file(gradguard::fuzz::as_text(data, size));
    return 0;
}
