// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "harness/generators/float_format.h"
#include "harness/generators/shrinking.h"
#include "reference/exact/widen.h"

namespace gradguard::harness {
namespace {

/// Up to here an array can be written out element by element.
constexpr std::uint64_t kLiteralElements = 512;
/// Up to here it can be filled to pick elements from.
constexpr std::uint64_t kFilledElements = 1ULL << 21U;

/// The non-zero elements of an array, in order.
std::vector<Override> nonzero_elements(const ArrayRecipe& array, DType dtype, std::uint64_t n) {
    const std::uint64_t width = element_bytes(dtype);
    std::vector<std::byte> bytes(n * width);
    fill_array(array, dtype, n, bytes.data());
    std::vector<Override> elements;
    for (std::uint64_t i = 0; i < n; ++i) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, bytes.data() + i * width, width);
        if (bits != 0) elements.push_back({i, bits});
    }
    return elements;
}

ArrayRecipe literal(std::vector<Override> elements) {
    ArrayRecipe array;
    array.overrides = std::move(elements);
    return array;
}

bool is_literal(const ArrayRecipe& array) { return array.fill == Fill::kZero; }

/// Every array of an entry with its dtype: the tensors' and those of later steps.
struct EntryArray {
    ArrayRecipe* array;
    DType dtype;
};
std::vector<EntryArray> arrays_of(CaseRecipe& recipe, std::size_t entry) {
    std::vector<EntryArray> all;
    for (TensorRecipe* tensor : tensors_of(recipe.entries[entry])) all.push_back({&tensor->values, tensor->dtype});
    const DType dtype = recipe.entries[entry].gradients.dtype;
    for (LaterRecipe& later : recipe.later) all.push_back({&later.gradients[entry], dtype});
    return all;
}

void make_literal(CaseRecipe& recipe, std::size_t entry) {
    const std::uint64_t n = count_of(recipe.entries[entry].parameters);
    for (const EntryArray& a : arrays_of(recipe, entry)) {
        if (!is_literal(*a.array)) *a.array = literal(nonzero_elements(*a.array, a.dtype, n));
    }
}

/// Gives all tensors of the entry the shape [n].
void set_length(CaseRecipe& recipe, std::size_t entry, std::uint64_t n) {
    for (TensorRecipe* tensor : tensors_of(recipe.entries[entry])) {
        tensor->shape = {n};
        tensor->strides.reset();
    }
    for (const EntryArray& a : arrays_of(recipe, entry)) {
        std::erase_if(a.array->overrides, [&](const Override& o) { return o.index >= n; });
    }
}

/// Takes the elements [begin, end) out of an entry whose arrays are literal.
void remove_elements(CaseRecipe& recipe, std::size_t entry, std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t n = count_of(recipe.entries[entry].parameters);
    for (const EntryArray& a : arrays_of(recipe, entry)) {
        auto& overrides = a.array->overrides;
        std::erase_if(overrides, [&](const Override& o) { return o.index >= begin && o.index < end; });
        for (Override& o : overrides) o.index -= o.index >= end ? end - begin : 0;
    }
    set_length(recipe, entry, n - (end - begin));
}

void propose_lengths_of(Candidates& candidates, std::size_t entry) {
    const std::uint64_t n = count_of(candidates.original().entries[entry].parameters);
    if (n == 0) return;
    const auto propose = [&](std::uint64_t length) {
        if (length < n) candidates.propose([&](CaseRecipe& r) { set_length(r, entry, length); });
    };
    // The least sizes that reach a further part of the geometry: one, two, three rows, two warps, two blocks, ..
    for (const std::uint64_t length : {0, 1, 2, 3, 33, 129, 257, 1025, 2049, 4097, 262145}) propose(length);
    for (std::uint64_t less = n / 2; less > 0; less /= 2) propose(n - less);
    if (n > kLiteralElements) return;
    candidates.propose([&](CaseRecipe& r) { make_literal(r, entry); });
    CaseRecipe probe = candidates.original();
    if (!std::ranges::all_of(arrays_of(probe, entry), [](const EntryArray& a) { return is_literal(*a.array); })) return;
    for (std::uint64_t chunk = (n + 1) / 2; chunk > 0; chunk /= 2) {
        for (std::uint64_t begin = 0; begin < n; begin += chunk) {
            candidates.propose([&](CaseRecipe& r) { remove_elements(r, entry, begin, std::min(begin + chunk, n)); });
        }
        if (chunk <= n / 16) break;
    }
}

/// Numbers that say the same with fewer digits.
std::vector<std::uint32_t> simpler_bits(std::uint32_t bits, DType dtype) {
    const FloatFormat& format = format_of(dtype);
    const std::uint32_t sign = bits & format.sign();
    const std::uint32_t magnitude = bits ^ sign;
    if (magnitude > format.infinity()) {
        const std::uint32_t quiet = format.infinity() | format.least_normal() >> 1U;
        return {quiet, sign | quiet, format.infinity()};
    }
    std::vector<std::uint32_t> simpler{format.one(), sign | format.one(), magnitude};
    for (unsigned kept : {0U, 1U, 3U, 7U, 11U, 17U}) {
        if (kept >= format.mantissa_bits) continue;
        simpler.push_back(bits >> (format.mantissa_bits - kept) << (format.mantissa_bits - kept));
    }
    const std::uint32_t fraction = magnitude & (format.least_normal() - 1);
    const std::uint32_t exponent = magnitude >> format.mantissa_bits;
    const std::uint32_t middle = format.one() >> format.mantissa_bits;
    simpler.push_back(sign | ((exponent + middle) / 2) << format.mantissa_bits | fraction);
    const std::uint32_t nearer = exponent + (exponent < middle ? 1U : exponent > middle ? ~0U : 0U);
    simpler.push_back(sign | nearer << format.mantissa_bits | fraction);
    return simpler;
}

/// Runs `change(array)` on the a-th array of the entry in a candidate.
template <class Change>
void propose_array(Candidates& candidates, std::size_t entry, std::size_t a, Change&& change) {
    candidates.propose([&](CaseRecipe& r) { change(*arrays_of(r, entry)[a].array); });
}

/// All but a few elements of a filled array become zero.
void propose_few(Candidates& candidates, std::size_t entry, std::size_t a, const EntryArray& now, std::uint64_t n) {
    const std::vector<Override> elements = nonzero_elements(*now.array, now.dtype, n);
    const auto keep = [&](std::vector<Override> kept) {
        std::ranges::sort(kept, {}, &Override::index);
        propose_array(candidates, entry, a, [&](ArrayRecipe& array) { array = literal(kept); });
    };
    keep({});
    if (elements.empty()) return;
    const std::uint32_t magnitude = format_of(now.dtype).sign() - 1;
    const auto greater = [&](const Override& x, const Override& y) {
        return (x.bits & magnitude) > (y.bits & magnitude);
    };
    std::vector<Override> sorted = elements;
    const auto few = static_cast<std::ptrdiff_t>(std::min<std::size_t>(4, sorted.size()));
    std::ranges::partial_sort(sorted, sorted.begin() + few, greater);
    sorted.resize(static_cast<std::size_t>(few));
    keep({elements.front()});
    keep({elements.back()});
    keep({sorted.front()});
    if (few > 1) keep({elements.front(), elements.back()});
    if (few > 1) keep({sorted[0], sorted[1]});
    keep(sorted);
    keep({elements.begin(), elements.begin() + few});
    keep({elements.end() - few, elements.end()});
    if (n <= kLiteralElements) keep(elements);
}

void propose_fewer_overrides(Candidates& candidates, std::size_t entry, std::size_t a, std::size_t overrides) {
    for (std::size_t chunk = (overrides + 1) / 2; chunk > 0; chunk /= 2) {
        for (std::size_t begin = 0; begin < overrides; begin += chunk) {
            propose_array(candidates, entry, a, [&](ArrayRecipe& array) {
                const auto first = array.overrides.begin() + static_cast<std::ptrdiff_t>(begin);
                const std::size_t end = std::min(begin + chunk, overrides);
                array.overrides.erase(first, first + static_cast<std::ptrdiff_t>(end - begin));
            });
        }
        if (chunk <= overrides / 8) break;
    }
}

void propose_simpler_numbers(Candidates& candidates, std::size_t entry, std::size_t a, const EntryArray& now) {
    for (std::size_t o = 0; o < now.array->overrides.size(); ++o) {
        const Override& old = now.array->overrides[o];
        for (const std::uint32_t bits : simpler_bits(old.bits, now.dtype)) {
            propose_array(candidates, entry, a, [&](ArrayRecipe& array) { array.overrides[o].bits = bits; });
        }
        const std::uint64_t floor = o == 0 ? 0 : now.array->overrides[o - 1].index + 1;
        for (const std::uint64_t index : {floor, (floor + old.index) / 2, old.index - 1}) {
            if (index >= floor && index < old.index) {
                propose_array(candidates, entry, a, [&](ArrayRecipe& array) { array.overrides[o].index = index; });
            }
        }
    }
}

void widen_gradients(CaseRecipe& recipe, std::size_t entry) {
    TensorRecipe& gradients = recipe.entries[entry].gradients;
    const DType dtype = gradients.dtype;
    const auto widened = [&](std::uint32_t bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        return reference::bits_of(dtype == DType::kF16 ? reference::widen_f16(half) : reference::widen_bf16(half));
    };
    const auto widen = [&](ArrayRecipe& array) {
        for (Override& o : array.overrides) o.bits = widened(o.bits);
    };
    widen(gradients.values);
    for (LaterRecipe& later : recipe.later) widen(later.gradients[entry]);
    if (dtype == DType::kF32) return;
    gradients.byte_offset *= 2;
    gradients.dtype = DType::kF32;
}

}  // namespace

void propose_lengths(Candidates& candidates) {
    const std::vector<EntryRecipe>& entries = candidates.original().entries;
    std::uint64_t total = 0;
    for (const EntryRecipe& entry : entries) total += count_of(entry.parameters);
    for (std::size_t i = 0; i < entries.size() && entries.size() > 1; ++i) {
        // One entry with all the elements of the group.
        candidates.propose([&](CaseRecipe& r) {
            r.entries = {entries[i]};
            for (LaterRecipe& later : r.later) later.gradients = {later.gradients[i]};
            set_length(r, 0, total);
        });
    }
    for (std::size_t i = 0; i < candidates.original().entries.size(); ++i) propose_lengths_of(candidates, i);
}

void propose_values(Candidates& candidates) {
    CaseRecipe now = candidates.original();
    // Everything old at once, then one array after the other.
    candidates.propose([](CaseRecipe& r) {
        for (EntryRecipe& entry : r.entries) {
            for (TensorRecipe* tensor : tensors_of(entry)) {
                if (tensor != &entry.gradients) tensor->values = {};
            }
        }
    });
    for (std::size_t i = 0; i < now.entries.size(); ++i) {
        if (now.entries[i].gradients.dtype != DType::kF32) {
            candidates.propose([&](CaseRecipe& r) { widen_gradients(r, i); });
        }
        const std::uint64_t n = count_of(now.entries[i].gradients);
        const std::vector<EntryArray> arrays = arrays_of(now, i);
        for (std::size_t a = 0; a < arrays.size(); ++a) {
            const ArrayRecipe& array = *arrays[a].array;
            propose_array(candidates, i, a, [](ArrayRecipe& changed) { changed = {}; });
            if (!is_literal(array) && n <= kFilledElements) propose_few(candidates, i, a, arrays[a], n);
            propose_array(candidates, i, a, [](ArrayRecipe& changed) {
                changed.fill = Fill::kOrdinary;
                changed.exponent = 0;
            });
            propose_fewer_overrides(candidates, i, a, array.overrides.size());
            if (array.overrides.size() <= 8) propose_simpler_numbers(candidates, i, a, arrays[a]);
            propose_array(candidates, i, a, [](ArrayRecipe& changed) { changed.exponent /= 2; });
        }
    }
}

}  // namespace gradguard::harness
