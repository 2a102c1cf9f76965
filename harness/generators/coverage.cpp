// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "harness/case/case_names.h"
#include "harness/generators/float_format.h"
#include "harness/generators/generators.h"
#include "reference/exact/widen.h"
#include "reference/fp64/coefficients.h"

namespace gradguard::harness {
namespace {

using reference::bits_of;
using reference::float_of;

/// Of a longer array the rest is of the same fill.
constexpr std::uint64_t kLookedAt = 4096;

/// Classes of stored numbers, one bit each.
constexpr std::array<std::string_view, 11> kClasses{"zero",     "minus zero", "subnormal",     "least normal",
                                                    "ordinary", "tiny",       "huge",          "greatest",
                                                    "infinity", "quiet NaN",  "signalling NaN"};
enum Class : unsigned {
    kZero,
    kMinusZero,
    kSubnormal,
    kLeastNormal,
    kOrdinary,
    kTiny,
    kHuge,
    kGreatest,
    kInfinity,
    kQuietNaN,
    kSignallingNaN,
};

Class class_of(std::uint32_t bits, const FloatFormat& format) {
    const std::uint32_t magnitude = bits & (format.sign() - 1);
    if (magnitude == 0) return bits == 0 ? kZero : kMinusZero;
    if (magnitude < format.least_normal()) return kSubnormal;
    if (magnitude > format.infinity()) {
        return (magnitude & format.least_normal() >> 1U) != 0 ? kQuietNaN : kSignallingNaN;
    }
    if (magnitude == format.infinity()) return kInfinity;
    if (magnitude == format.greatest()) return kGreatest;
    if (magnitude == format.least_normal()) return kLeastNormal;
    // A square leaves FP32's normal range below and above a half of the exponents.
    const int exponent = static_cast<int>(magnitude >> format.mantissa_bits) - 1 + format.least_exponent;
    if (exponent < format.least_exponent / 2) return kTiny;
    return exponent > format.greatest_exponent / 2 ? kHuge : kOrdinary;
}

template <class Word>
std::uint32_t word_at(const std::byte* values, std::uint64_t i) {
    Word word = 0;
    std::memcpy(&word, values + i * sizeof(Word), sizeof(Word));
    return word;
}

/// Calls `each(bits)` for the elements that are looked at.
template <class Each>
void for_words(const std::vector<std::byte>& values, DType dtype, Each&& each) {
    const std::uint64_t n = std::min<std::uint64_t>(values.size() / element_bytes(dtype), kLookedAt);
    for (std::uint64_t i = 0; i < n; ++i) {
        each(dtype == DType::kF32 ? word_at<std::uint32_t>(values.data(), i)
                                  : word_at<std::uint16_t>(values.data(), i));
    }
}

unsigned classes_of(const CaseTensor& tensor) {
    const FloatFormat& format = format_of(tensor.layout.dtype);
    unsigned classes = 0;
    for_words(tensor.values, tensor.layout.dtype, [&](std::uint32_t bits) { classes |= 1U << class_of(bits, format); });
    return classes;
}

struct Bad {
    bool stored = false;     ///< A NaN or an infinity.
    bool unscaling = false;  ///< Finite as stored, infinite once unscaled.
};

Bad bad_in(const std::vector<std::byte>& values, DType dtype, float r) {
    Bad bad;
    for_words(values, dtype, [&](std::uint32_t bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        const float raw = dtype == DType::kF32   ? float_of(bits)
                          : dtype == DType::kF16 ? reference::widen_f16(half)
                                                 : reference::widen_bf16(half);
        if (!reference::is_finite_bits(raw)) {
            bad.stored = true;
        } else if (!reference::is_finite_bits(raw * r)) {
            bad.unscaling = true;
        }
    });
    return bad;
}

/// Counts each name once for a case.
class Names {
  public:
    explicit Names(Coverage& total) : total_(total) {}
    void hit(std::string_view area, std::string_view name) {
        text_.assign(area);
        text_ += '/';
        text_ += name;
        ++total_[text_];
    }
    void hit_if(bool is, std::string_view area, std::string_view name) {
        if (is) hit(area, name);
    }
    void hit_classes(unsigned classes, std::string_view area) {
        for (; classes != 0; classes &= classes - 1) {
            hit(area, kClasses[static_cast<std::size_t>(std::countr_zero(classes))]);
        }
    }

  private:
    Coverage& total_;
    std::string text_;
};

constexpr std::array<std::uint64_t, 22> kGeometry{1,     2,     31,     32,     33,      255,    256,  257,
                                                  1023,  1024,  1025,   2047,   2048,    2049,   4096, 65535,
                                                  65536, 65537, 262143, 262145, 1048576, 1048577};

void add_group(Names& names, const std::vector<CaseEntry>& entries) {
    const std::size_t count_entries = entries.size();
    std::size_t empties = 0;
    bool between = false;
    std::uint32_t geometry = 0;
    unsigned dtypes = 0;
    unsigned ranks = 0;
    bool units = false;
    bool offset = false;
    for (std::size_t i = 0; i < count_entries; ++i) {
        const CaseTensor& gradients = entries[i].gradients;
        const std::uint64_t n = gradients.values.size() / element_bytes(gradients.layout.dtype);
        const auto found = std::ranges::find(kGeometry, n);
        if (found != kGeometry.end()) geometry |= 1U << (found - kGeometry.begin());
        if (n == 0) {
            ++empties;
            between = between || (i != 0 && i + 1 != count_entries);
        } else {
            dtypes |= 1U << static_cast<unsigned>(gradients.layout.dtype);
        }
        ranks |= 1U << std::min<std::size_t>(gradients.layout.shape.size(), 3);
        units = units || std::ranges::find(gradients.layout.shape, 1) != gradients.layout.shape.end();
        offset = offset || gradients.layout.byte_offset != 0;
    }
    for (; geometry != 0; geometry &= geometry - 1) {
        names.hit("geometry", std::to_string(kGeometry[static_cast<std::size_t>(std::countr_zero(geometry))]));
    }
    for (const DType dtype : kAllDTypes) {
        names.hit_if((dtypes >> static_cast<unsigned>(dtype) & 1U) != 0, "dtype", to_string(dtype));
    }
    names.hit_if(std::popcount(dtypes) > 1, "dtype", "mixed");
    constexpr std::array<std::string_view, 4> kRanks{"rank 0", "rank 1", "rank 2", "rank 3 or more"};
    for (std::size_t rank = 0; rank < kRanks.size(); ++rank)
        names.hit_if((ranks >> rank & 1U) != 0, "layout", kRanks[rank]);
    names.hit_if(units, "layout", "size-1 dimension");
    names.hit_if(offset, "layout", "offset");
    const auto empty = [](const CaseEntry& entry) { return entry.gradients.values.empty(); };
    names.hit("entries", count_entries == 0 ? "none" : count_entries == 1 ? "one" : "several");
    names.hit_if(count_entries != 0 && empties == count_entries, "entries", "only empty");
    if (empties == count_entries || count_entries < 2) return;
    names.hit_if(empty(entries.front()), "entries", "empty first");
    names.hit_if(empty(entries.back()), "entries", "empty last");
    names.hit_if(between, "entries", "empty between");
}

void add_states(Names& names, const std::vector<CaseEntry>& entries) {
    unsigned classes = 0;
    bool absent = false;
    bool present = false;
    bool maximum_nan = false;
    bool near_24 = false;
    bool beyond_32 = false;
    for (const CaseEntry& entry : entries) {
        classes |= classes_of(entry.parameters);
        if (!entry.state) {
            absent = true;
            continue;
        }
        present = true;
        classes |= classes_of(entry.state->first_moment) | classes_of(entry.state->second_moment);
        if (entry.state->max_second_moment) {
            maximum_nan = maximum_nan || (classes_of(*entry.state->max_second_moment) & 3U << kQuietNaN) != 0;
        }
        const std::uint64_t step = entry.state->step;
        near_24 = near_24 || (step + 4 >= 1U << 24U && step <= (1U << 24U) + 4);
        beyond_32 = beyond_32 || step >= 1ULL << 32U;
    }
    names.hit_classes(classes, "old");
    names.hit_if(absent, "state", "absent");
    names.hit_if(present, "state", "present");
    names.hit_if(absent && present, "state", "mixed");
    names.hit_if(maximum_nan, "state", "NaN in the maximum");
    names.hit_if(near_24, "step", "near 2^24");
    names.hit_if(beyond_32, "step", "2^32 or more");
}

void add_options(Names& names, const Case& c) {
    const AdamWOptions& o = c.options;
    names.hit_if(o.amsgrad, "options", "amsgrad");
    names.hit_if(o.maximize, "options", "maximize");
    names.hit_if(o.learning_rate == 0, "options", "learning_rate 0");
    names.hit_if(o.beta1 == 0, "options", "beta1 0");
    names.hit_if(o.beta2 == 0, "options", "beta2 0");
    names.hit_if(o.beta2 >= 0x1.fffffp-1F, "options", "beta2 just below 1");
    names.hit_if(o.epsilon < 0x1p-126F, "options", "epsilon subnormal");
    names.hit("options", o.weight_decay == 0 ? "weight_decay 0" : "weight_decay not 0");
    if (c.operation != Operation::kGuardedStep) return;
    const auto& max_norm = c.guard.max_norm;
    names.hit_if(!max_norm, "guard", "max_norm absent");
    names.hit_if(max_norm && bits_of(*max_norm) == 0, "guard", "max_norm 0");
    names.hit_if(max_norm && bits_of(*max_norm) == reference::kSignBit, "guard", "max_norm -0");
    names.hit_if(max_norm && bits_of(*max_norm) == kF32Format.greatest(), "guard", "max_norm greatest");
    names.hit("guard", to_string(c.guard.nonfinite));
}

void add_scale(Names& names, float scale) {
    const std::uint32_t bits = bits_of(scale);
    names.hit_if(scale == 1.0F, "scale", "1");
    names.hit_if(scale == 3.0F, "scale", "3");
    names.hit_if(scale == 65536.0F, "scale", "65536");
    names.hit_if(scale == 0x1p-112F, "scale", "2^-112");
    names.hit_if(scale == 0x1p-113F, "scale", "2^-113");
    names.hit_if(scale == 0x1p-127F, "scale", "2^-127");
    names.hit_if(bits == kF32Format.greatest(), "scale", "greatest");
    names.hit_if((bits & reference::kMantissaBits) != 0, "scale", "no power of two");
    names.hit_if(scale < 1.0F, "scale", "below 1");
}

/// What the guard will do about the first step, and how the steps follow each other.
void add_steps(Names& names, const Case& c) {
    const auto bad_in_step = [&](const StepControl& control, auto&& values_of) {
        Bad bad;
        const float r = reference::reciprocal_scale(control.gradient_scale);
        for (std::size_t i = 0; i < c.entries.size(); ++i) {
            const Bad found = bad_in(values_of(i), c.entries[i].gradients.layout.dtype, r);
            bad = {bad.stored || found.stored, bad.unscaling || found.unscaling};
        }
        return bad;
    };
    const auto first_values = [&](std::size_t i) -> const auto& { return c.entries[i].gradients.values; };
    const Bad first = bad_in_step(c.control, first_values);
    const bool live = std::ranges::any_of(c.entries, [](const CaseEntry& e) { return !e.gradients.values.empty(); });
    const bool bad = first.stored || first.unscaling;
    names.hit_if(first.unscaling, "gradients", "infinite once unscaled");
    names.hit_if(c.control.skip_update, "skip", "Requested");
    names.hit_if(!c.control.skip_update && !live, "skip", "Empty");
    if (!c.control.skip_update && bad)
        names.hit("skip", c.guard.nonfinite == NonFinitePolicy::kSkip ? "NonFinite" : "Error");
    names.hit_if(!c.control.skip_update && live && !bad, "skip", "none");
    if (c.later.empty()) return;
    names.hit("later", "present");
    std::string kinds(1, bad ? 'b' : 'g');
    for (const LaterStep& later : c.later) {
        const Bad found = bad_in_step(
            later.control, [&](std::size_t i) -> const auto& { return later.gradients[i]; });
        kinds += found.stored || found.unscaling || later.control.skip_update ? 'b' : 'g';
    }
    names.hit_if(kinds.find("gbg") != std::string::npos, "later", "good, skip, good");
    names.hit_if(kinds.size() >= 3, "later", "three steps");
}

}  // namespace

void add_coverage(Coverage& total, const Case& c) {
    Names names(total);
    names.hit("operation", to_string(c.operation));
    if (const auto violation = violation_of(c)) {
        names.hit("invalid", std::string(to_string(violation->kind)) + ' ' + violation->site.operand);
        return;
    }
    add_group(names, c.entries);
    unsigned classes = 0;
    for (const CaseEntry& entry : c.entries) classes |= classes_of(entry.gradients);
    names.hit_classes(classes, "gradients");
    add_scale(names, c.control.gradient_scale);
    add_steps(names, c);
    if (c.operation == Operation::kStatistics) return;
    add_states(names, c.entries);
    add_options(names, c);
}

}  // namespace gradguard::harness
