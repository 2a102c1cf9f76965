// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradguard::vdriver {

/// The newest form of a function of the API that a version of CUDA has, by the name without version ("cuMemAlloc").
/// Null, and `status` says why (CU_GET_PROC_ADDRESS_...). The forms whose default stream is the thread's own are not
/// among them: the legacy one, which is given instead, orders more.
void* find_function(const char* name, int version, int& status);

}  // namespace gradguard::vdriver
