// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "harness/io/safetensors.h"
#include "tests/support/temporary_folder.h"

namespace gradguard::testing {

/// How a run of the program ended.
struct Ended {
    int status = -1;  ///< Exit status; -1 when it did not exit by itself.
    std::string out;
    std::string err;

    /// Standard output as JSON.
    nlohmann::json json() const { return nlohmann::json::parse(out); }
};

/// Runs build/gradguard with these arguments and waits for it. `standard_output` names a file to write to instead of
/// Ended::out.
Ended run_exactly(const std::vector<std::string>& arguments, const std::string& standard_output = {});

/// The same; steps and scans run under all observers unless the arguments choose some, so that a finding fails a test
/// that expects success.
Ended run_program(const std::vector<std::string>& arguments, const std::string& standard_output = {});

/// A safetensors file in the making: owns the data.
class GroupBuilder {
  public:
    GroupBuilder& f32(const std::string& name, const std::vector<float>& values, std::vector<std::uint64_t> shape = {});
    GroupBuilder& bf16(const std::string& name, const std::vector<float>& values);
    GroupBuilder& raw(const std::string& name, const std::string& dtype, std::vector<std::uint64_t> shape,
                      std::vector<std::byte> bytes);
    GroupBuilder& meta(const std::string& key, const std::string& value);
    /// A later step's entry: NAME.param, NAME.grad, both moments and, if asked for, the maximum.
    GroupBuilder& entry(const std::string& name, const std::vector<float>& grad);
    GroupBuilder& moments(const std::string& name, const std::vector<float>& first, const std::vector<float>& second);

    std::string write(const TemporaryFolder& folder, const std::string& file = "group.safetensors") const;

  private:
    struct Stored {
        std::string dtype;
        std::vector<std::uint64_t> shape;
        std::vector<std::byte> bytes;
    };
    std::map<std::string, Stored> tensors_;
    std::map<std::string, std::string> metadata_;
};

/// FP32 bit patterns of a tensor in a file.
std::vector<std::uint32_t> bits_in(const std::string& path, const std::string& tensor);

}  // namespace gradguard::testing
