// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace gradguard::reference {

/// What is wrong with this process's arithmetic; nothing when it is sound: subnormals are kept (a library built with
/// fast-math can switch flushing on for everybody), rounding is to nearest even, nothing is contracted, and the
/// compiler kept every rounding (g++ 12 drops adjacent double-float-double casts when it vectorizes straight-line
/// code).
std::optional<std::string> self_check();

/// Throws std::runtime_error when self_check() fails. The oracle's entry points call it: an unsound oracle refuses to
/// run. The check itself runs at the first call only.
void require_sound_arithmetic();

}  // namespace gradguard::reference
