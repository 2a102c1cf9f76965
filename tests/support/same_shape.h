// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <type_traits>

#include "kernels/cuda/driver_abi.h"

namespace gradguard::testing {

template <typename Ours, typename Theirs>
struct SameShape : std::false_type {};

/// Whether two declarations of a function of the driver API go together: as many parameters, of the same sizes,
/// pointers in the same places.
template <typename... Ours, typename... Theirs>
requires(sizeof...(Ours) == sizeof...(Theirs)) struct SameShape<cuda::CUresult(Ours...), ::CUresult(Theirs...)>
    : std::bool_constant<((sizeof(Ours) == sizeof(Theirs) &&
                           std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>)&&...)> {
};

}  // namespace gradguard::testing
