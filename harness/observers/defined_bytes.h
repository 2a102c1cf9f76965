// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace gradguard::observers {

/// Which bytes of a piece of memory have been written: a bit for each, and for each page how many are missing, so that
/// whole pages cost one look.
class DefinedBytes {
  public:
    explicit DefinedBytes(std::uint64_t bytes) { reset(bytes); }

    /// Nothing is defined. Keeps its memory.
    void reset(std::uint64_t bytes) {
        words_.assign(bytes / 64 + 1, 0);
        missing_.assign(bytes / kPageBytes + 1, kPageBytes);
        missing_.back() = static_cast<std::uint32_t>(bytes % kPageBytes);
        missing_total_ = bytes;
    }

    /// [begin, begin + size) must lie inside.
    void define(std::uint64_t begin, std::uint64_t size) {
        const std::uint64_t end = begin + size;
        while (begin < end) {
            const std::uint64_t page_end = std::min(end, (begin / kPageBytes + 1) * kPageBytes);
            std::uint32_t& missing = missing_[begin / kPageBytes];
            if (missing == 0) {
                begin = page_end;
                continue;
            }
            while (begin < page_end) {
                const std::uint64_t word_end = std::min(page_end, (begin / 64 + 1) * 64);
                const std::uint64_t fresh = mask(begin, word_end) & ~words_[begin / 64];
                words_[begin / 64] |= fresh;
                const auto count = static_cast<std::uint32_t>(std::popcount(fresh));
                missing -= count;
                missing_total_ -= count;
                begin = word_end;
            }
        }
    }

    /// `size` is at most a page.
    bool is_defined(std::uint64_t begin, std::uint64_t size) const {
        if (missing_total_ == 0 || size == 0) return true;
        if ((missing_[begin / kPageBytes] | missing_[(begin + size - 1) / kPageBytes]) == 0) return true;
        return first_undefined(begin, size) == begin + size;
    }

    /// begin + size when all are defined.
    std::uint64_t first_undefined(std::uint64_t begin, std::uint64_t size) const {
        const std::uint64_t end = begin + size;
        while (begin < end) {
            const std::uint64_t word_end = std::min(end, (begin / 64 + 1) * 64);
            const std::uint64_t absent = mask(begin, word_end) & ~words_[begin / 64];
            if (absent != 0) return begin / 64 * 64 + static_cast<std::uint64_t>(std::countr_zero(absent));
            begin = word_end;
        }
        return end;
    }

  private:
    static constexpr std::uint32_t kPageBytes = 4096;

    /// Bits of [begin, end), which lie in one word.
    static std::uint64_t mask(std::uint64_t begin, std::uint64_t end) {
        const std::uint64_t count = end - begin;
        return (count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1) << (begin % 64);
    }

    std::uint64_t missing_total_ = 0;
    std::vector<std::uint64_t> words_;
    std::vector<std::uint32_t> missing_;  ///< By page.
};

}  // namespace gradguard::observers
