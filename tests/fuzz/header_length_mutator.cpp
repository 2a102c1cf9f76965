// SPDX-License-Identifier: Apache-2.0
// A safetensors file begins with the length of its header. Nearly every mutation breaks it, and no other rule is ever
// looked at; so three of four mutants get the length that their last brace gives.
#include <cstddef>
#include <cstdint>
#include <cstring>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
    const std::size_t changed = LLVMFuzzerMutate(data, size, max_size);
    if (changed <= sizeof(std::uint64_t) || seed % 4 == 0) return changed;
    std::size_t end = changed;
    while (end > sizeof(std::uint64_t) && data[end - 1] != '}') --end;
    const std::uint64_t header_bytes = end - sizeof(std::uint64_t);
    std::memcpy(data, &header_bytes, sizeof header_bytes);
    return changed;
}
