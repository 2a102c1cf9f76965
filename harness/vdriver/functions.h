// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "harness/vdriver/driver.h"

namespace gradguard::vdriver {

cuda::CUmodule add_module(Driver& driver, const std::shared_ptr<Context>& context,
                          std::shared_ptr<const vgpu::Module> program);
/// With its functions and variables. Queued work that uses it runs first.
void remove_module(Driver& driver, cuda::CUmodule handle);
/// A module of a file: PTX or a fat binary. Throws Failure.
std::shared_ptr<const vgpu::Module> load_file(Driver& driver, const char* path, const std::string& name);

/// The kernel of that name, always with the same handle. Throws Failure NOT_FOUND.
cuda::CUfunction function_of(Driver& driver, cuda::CUmodule handle, std::string_view name);
/// What a handle means where the driver takes a function: a function, or a kernel of a library in the current context.
/// Throws Failure INVALID_HANDLE.
std::shared_ptr<Function> function(Driver& driver, cuda::CUfunction handle);
/// The function of a library's kernel in the current context.
cuda::CUfunction function_of_kernel(Driver& driver, cuda::CUkernel handle);

/// Attributes by the number of cuda.h. Throws Failure INVALID_VALUE.
int attribute_of(const Driver& driver, const Function& function, int attribute);
void set_attribute(const Driver& driver, Function& function, int attribute, int value);
/// The most dynamic shared memory that a launch may ask for.
std::uint32_t dynamic_shared_limit(const Driver& driver, const Function& function);

}  // namespace gradguard::vdriver
