// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>

#include "harness/vdriver/driver.h"

namespace gradguard::vdriver {

/// The PTX text in a module image: PTX itself, or a fat binary (with or without its wrapper) that holds PTX as it is.
/// Throws Failure with words for machine code and for PTX that is compressed: why, and what to do. `size` 0: not known,
/// text ends with a zero byte.
std::string ptx_of_image(const void* image, std::size_t size = 0);
/// What lies in a file. Throws Failure FILE_NOT_FOUND.
std::string read_file(const char* path);

/// Options of the JIT compiler as the driver takes them. Those that tune code mean nothing here.
struct JitOptions {
    std::span<const int> options;
    std::span<void* const> values;

    /// Writes words into the buffer that the caller gave for them, if it did, and their length where its size stood.
    void info(const std::string& text) const;
    void error(const std::string& text) const;
};
/// Throws Failure INVALID_VALUE for null where there should be something.
JitOptions jit_options(unsigned count, const cuda::CUjit_option* options, void** values);

/// A module of PTX text. `name` is what findings call it. A refusal (Failure) is told to the log, to standard error and
/// to the record.
std::shared_ptr<const vgpu::Module> load_program(Driver& driver, const std::string& ptx, const std::string& name,
                                                 const JitOptions& options);
/// The same from an image.
std::shared_ptr<const vgpu::Module> load_image(Driver& driver, const void* image, const JitOptions& options);
/// "module-7.ptx", a new one for each call.
std::string next_module_name();

}  // namespace gradguard::vdriver
