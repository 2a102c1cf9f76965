// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rapidcheck.h>
#include <cstdint>
#include <cstdlib>

namespace gradguard::testing {

/// Makes RapidCheck's runs the same every time, unless RC_PARAMS is set: one object of this type before main().
struct FixedRapidCheckSeed {
    FixedRapidCheckSeed() { setenv("RC_PARAMS", "seed=20240229 max_success=1000", 0); }
};

/// 32 bits, all patterns equally likely however early in a run (RapidCheck's own start with small numbers).
inline rc::Gen<std::uint32_t> words() { return rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<std::uint32_t>()); }
inline std::uint32_t any_word() { return *words(); }

}  // namespace gradguard::testing
