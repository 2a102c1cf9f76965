// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "harness/case/case.h"

namespace gradguard::harness {

inline constexpr int kCaseSchema = 1;

/// A case as JSON. The same case gives the same text on every machine: members in the order below, two spaces for each
/// level, lists of numbers on one line. Every member is there and no other is allowed.
///
///   case:    schema (1), operation ("guarded_step", "unguarded_step", "statistics"), property, subject (text),
///            schedule_seed (integer), options, control, guard, entries (list), later (list)
///   options: learning_rate, beta1, beta2, epsilon, weight_decay (floats), amsgrad, maximize (true or false)
///   control: gradient_scale (float), skip_update (true or false)
///   guard:   max_norm (float or null), epsilon (float), nonfinite ("Skip" or "Error")
///   entry:   parameters, gradients (tensors), state (null, or: step (integer), first_moment, second_moment (tensors),
///            max_second_moment (tensor or null))
///   tensor:  dtype ("F32", "F16", "BF16"), shape, strides (lists of integers), byte_offset, storage_bytes, queue
///            (integers), values
///   later:   control, gradients (a list of values, one for each entry)
///
/// A float is the bits of an FP32 number, "0x3F800000". `values` is one string: the bits of each element in element
/// order, 8 hexadecimal digits for F32 and 4 for the others, nothing between them; null where the layout breaks a rule
/// of contract section 3, so that the tensor is never read.
/// Throws std::invalid_argument when a tensor's values do not fit its shape.
std::string case_to_json(const Case& c);

/// Throws std::invalid_argument with one line: which member, what was wanted, what came.
Case case_from_json(std::string_view text);

/// Reads and writes a file (atomically). Throw FileError naming the path.
Case read_case(const std::string& path);
void write_case(const std::string& path, const Case& c);

}  // namespace gradguard::harness
