// SPDX-License-Identifier: Apache-2.0
// The fuzzers' own test: a reader of records (a length, then so many bytes) that is right, or has the one fault that
// PLANTED names. Each fault must be found in seconds, the clean twin never (fuzz_planted_test.py).
#include <cstring>
#include <memory>
#include <vector>

#include "tests/fuzz/fuzz_target.h"

#define CLEAN 0
#define READS_PAST_END 1
#define OVERFLOWS 2
#define LOSES_A_BYTE 3
#define LEAKS 4
#define NEVER_ENDS 5
#define TAKES_ALL_MEMORY 6
#ifndef PLANTED
#define PLANTED CLEAN
#endif

namespace gradguard::fuzz {
namespace {

using Record = std::vector<std::uint8_t>;

std::vector<Record> read(const std::uint8_t* data, std::size_t size) {
    // As large as the input is: the sanitizer sees the byte behind it.
    const std::unique_ptr<std::uint8_t[]> bytes(new std::uint8_t[size]);
    if (size > 0) std::memcpy(bytes.get(), data, size);
    std::vector<Record> records;
    for (std::size_t at = 0; at < size;) {
        const std::size_t length = bytes[at++];
        const std::size_t slack = PLANTED == READS_PAST_END ? 1 : 0;
        if (length > size - at + slack) throw std::invalid_argument("a record ends behind the end");
        if (PLANTED == NEVER_ENDS && length == 3)
            at -= 1;
        else
            records.emplace_back(bytes.get() + at, bytes.get() + at + length), at += length;
    }
    return records;
}

std::vector<std::uint8_t> write(const std::vector<Record>& records) {
    std::vector<std::uint8_t> bytes;
    for (const Record& record : records) {
        bytes.push_back(static_cast<std::uint8_t>(record.size()));
        const std::size_t lost = PLANTED == LOSES_A_BYTE && record.size() > 4 ? 1 : 0;
        bytes.insert(bytes.end(), record.begin(), record.end() - static_cast<std::ptrdiff_t>(lost));
    }
    return bytes;
}

void try_bytes(const std::uint8_t* data, std::size_t size) {
    std::vector<Record> records;
    try {
        records = read(data, size);
    } catch (const std::invalid_argument& error) {
        require_one_line(error.what());
        return;
    }
    if (PLANTED == LEAKS && records.size() > 2) {
        // volatile: the compiler would leave out memory that nobody uses.
        volatile std::uint8_t* const lost = new std::uint8_t[16];
        lost[0] = data[0];
    }
    if (PLANTED == TAKES_ALL_MEMORY && records.size() > 2) {
        std::vector<std::uint8_t> much(std::size_t{1} << 32, 1);
        require(much.back() == 1, "it is there");
    }
    if (PLANTED == OVERFLOWS) {
        int product = 1;
        for (const Record& record : records) product *= static_cast<int>(record.size() + 1) * 4;
        require(product != 7, "no product of fours");
    }
    const std::vector<std::uint8_t> again = write(records);
    require(again == std::vector<std::uint8_t>(data, data + size), "what is written is what was read");
}

}  // namespace
}  // namespace gradguard::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    gradguard::fuzz::try_bytes(data, size);
    return 0;
}
