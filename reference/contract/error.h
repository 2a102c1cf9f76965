// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace gradguard {

/// Kinds of error (contract section 3).
enum class ErrorKind : std::uint8_t {
    kInvalidOption,
    kInvalidTensor,
    kShapeMismatch,
    kDifferentExecutionQueue,
    kInvalidState,
    kStepOverflow,
    kUnsupportedDevice,
    kInvalidSummary,
    kReadback,
    kDeviceFailure,
    kNonFiniteGradients,
};

constexpr std::string_view to_string(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::kInvalidOption:
            return "InvalidOption";
        case ErrorKind::kInvalidTensor:
            return "InvalidTensor";
        case ErrorKind::kShapeMismatch:
            return "ShapeMismatch";
        case ErrorKind::kDifferentExecutionQueue:
            return "DifferentExecutionQueue";
        case ErrorKind::kInvalidState:
            return "InvalidState";
        case ErrorKind::kStepOverflow:
            return "StepOverflow";
        case ErrorKind::kUnsupportedDevice:
            return "UnsupportedDevice";
        case ErrorKind::kInvalidSummary:
            return "InvalidSummary";
        case ErrorKind::kReadback:
            return "Readback";
        case ErrorKind::kDeviceFailure:
            return "DeviceFailure";
        case ErrorKind::kNonFiniteGradients:
            return "NonFiniteGradients";
    }
    return "?";
}

/// Where an error was found. Option errors have no entry; `operand` is the option's or tensor's public name:
/// "learning_rate", "parameters", "gradients", "first_moment", "second_moment", "max_second_moment", "step", ...
struct ErrorSite {
    std::optional<std::size_t> entry = std::nullopt;  ///< Index in input order.
    std::string operand = {};
};

/// The one error type of the library and of the oracle.
class Error : public std::runtime_error {
  public:
    /// `message` says what was wanted and what came; what() puts kind, entry and operand in front.
    Error(ErrorKind kind, ErrorSite site, const std::string& message)
        : std::runtime_error(describe(kind, site, message)), kind_(kind), site_(std::move(site)), message_(message) {}

    ErrorKind kind() const { return kind_; }
    const ErrorSite& site() const { return site_; }
    const std::string& message() const { return message_; }

  private:
    static std::string describe(ErrorKind kind, const ErrorSite& site, const std::string& message) {
        std::string text(to_string(kind));
        if (site.entry) text += ": entry " + std::to_string(*site.entry);
        if (!site.operand.empty()) text += (site.entry ? " " : ": ") + site.operand;
        return text + ": " + message;
    }

    ErrorKind kind_;
    ErrorSite site_;
    std::string message_;
};

}  // namespace gradguard
