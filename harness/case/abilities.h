// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "reference/contract/dtype.h"

namespace gradguard::harness {

/// Which contractions a kernel's build may have used (contract section 6).
enum class Contraction : std::uint8_t {
    kForbidden,  ///< The lines' own bits.
    kAllowed,    ///< Any multiplication fused into the addition it meets.
};

/// How a subject forms the norm.
enum class NormKind : std::uint8_t {
    kContractTree,  ///< Contract section 4's tree: one legal bit pattern.
    kWithinBound,   ///< In some FP32 order of its own: held against the exact norm with a bound.
    kNone,          ///< It reports none.
};

/// What a subject says it can do. A property that asks for more is not run on it; the judge admits what is declared
/// here and nothing else.
struct Abilities {
    bool f32 = true;
    bool f16 = true;
    bool bf16 = true;
    bool amsgrad = true;
    bool maximize = true;
    bool skips = true;      ///< Leaves the whole group alone when one value is bad.
    bool unguarded = true;  ///< Offers Operation::kUnguardedStep.
    bool validates = true;  ///< Refuses invalid cases with the contract's error kinds.
    NormKind norm = NormKind::kContractTree;
    Contraction contraction = Contraction::kAllowed;
    bool reassociates = false;         ///< May regroup sums and products of the update's lines.
    bool flushes = false;              ///< May take subnormals for zero, going in or coming out.
    std::uint32_t block_limit = 1024;  ///< Blocks that its device grants.

    bool takes(DType dtype) const { return dtype == DType::kF32 ? f32 : dtype == DType::kF16 ? f16 : bf16; }
};

}  // namespace gradguard::harness
