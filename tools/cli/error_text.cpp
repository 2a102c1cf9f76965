// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/error_text.h"

#include <algorithm>
#include <string>

namespace gradguard::tools {
namespace {

std::string flag_of(std::string operand) {
    std::ranges::replace(operand, '_', '-');
    return "--" + operand;
}

std::string option_message(const Error& error, const GroupFile& file, const ScanRequest& request) {
    const std::string& operand = error.site().operand;
    const auto text = request.texts.find(operand);
    if (text != request.texts.end()) return flag_of(operand) + " " + text->second + ": " + error.message();
    if (operand == "gradient_scale" && file.gradient_scale_text) {
        return file.file->path() + ": metadata gradient_scale " + harness::in_quotes(*file.gradient_scale_text) + ": " +
               error.message();
    }
    return operand + ": " + error.message();
}

}  // namespace

Error located(const Error& error, const GroupFile& file, const ScanRequest& request) {
    const ErrorSite& site = error.site();
    std::string message;
    if (error.kind() == ErrorKind::kInvalidOption) {
        message = option_message(error, file, request);
    } else {
        message = file.file->path() + ": ";
        if (site.entry) {
            message += "entry " + std::to_string(*site.entry);
            if (*site.entry < file.entries.size()) message += " " + harness::in_quotes(file.entries[*site.entry].name);
            message += site.operand.empty() ? ": " : ", ";
        }
        if (!site.operand.empty()) message += site.operand + ": ";
        message += error.message();
    }
    return {error.kind(), site, message};
}

}  // namespace gradguard::tools
