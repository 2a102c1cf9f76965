// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/ptx_version.h"

#include <charconv>
#include <iterator>

#include "kernels/cuda/driver.h"

namespace gradguard::cuda {
namespace {

struct Release {
    int driver_version;
    PtxVersion ptx;
};

// https://docs.nvidia.com/cuda/parallel-thread-execution/#release-notes-ptx-release-history
constexpr Release kReleases[] = {
    {11000, {7, 0}}, {11010, {7, 1}}, {11020, {7, 2}}, {11030, {7, 3}}, {11040, {7, 4}}, {11050, {7, 5}},
    {11060, {7, 6}}, {11070, {7, 7}}, {11080, {7, 8}}, {12000, {8, 0}}, {12010, {8, 1}}, {12020, {8, 2}},
    {12030, {8, 3}}, {12040, {8, 4}}, {12050, {8, 5}}, {12060, {8, 5}}, {12070, {8, 6}}, {12080, {8, 7}},
    {12090, {8, 8}}, {13000, {9, 0}}, {13010, {9, 1}},
};

/// The word after a directive at the start of a line, up to a blank, a comma or the line's end.
std::string_view word_after(std::string_view text, std::string_view directive) {
    for (std::size_t at = text.find(directive); at != std::string_view::npos; at = text.find(directive, at + 1)) {
        if (at != 0 && text[at - 1] != '\n') continue;  // in a comment, say
        const std::size_t begin = text.find_first_not_of(" \t", at + directive.size());
        if (begin == std::string_view::npos || begin == at + directive.size()) continue;
        return text.substr(begin, text.find_first_of(" \t\r\n,;/", begin) - begin);
    }
    return {};
}

std::optional<int> leading_number(std::string_view text) {
    int number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc()) return std::nullopt;
    return number;
}

/// Why a device cannot run code for `target`.
std::optional<std::string> why_not_on(std::string_view target, ComputeCapability device) {
    const std::size_t digits = target.find('_') + 1;
    const std::optional<int> number = leading_number(target.substr(digits));
    if (!number) return std::nullopt;
    const ComputeCapability wanted = {*number / 10, *number % 10};
    const char suffix = target.back();
    const bool runs = suffix == 'a'   ? device == wanted
                      : suffix == 'f' ? device.major == wanted.major && device.minor >= wanted.minor
                                      : device >= wanted;
    if (runs) return std::nullopt;
    return "it is compiled for " + std::string(target) + ", and the device has compute capability " + device.text();
}

}  // namespace

std::optional<PtxVersion> highest_ptx_version(int driver_version) {
    if (driver_version > std::rbegin(kReleases)->driver_version) return std::nullopt;
    std::optional<PtxVersion> highest;
    for (const Release& release : kReleases) {
        if (release.driver_version <= driver_version) highest = release.ptx;
    }
    return highest;
}

std::optional<PtxHeader> read_ptx_header(std::string_view ptx) {
    const std::string_view version = word_after(ptx, ".version");
    const std::string_view target = word_after(ptx, ".target");
    const std::size_t point = version.find('.');
    if (point == std::string_view::npos || target.empty()) return std::nullopt;
    const std::optional<int> major = leading_number(version);
    const std::optional<int> minor = leading_number(version.substr(point + 1));
    if (!major || !minor) return std::nullopt;
    return PtxHeader{{*major, *minor}, std::string(target)};
}

std::optional<std::string> why_not_loadable(std::string_view ptx, int driver_version, ComputeCapability device) {
    const std::optional<PtxHeader> header = read_ptx_header(ptx);
    if (!header) return std::nullopt;
    const std::optional<PtxVersion> highest = highest_ptx_version(driver_version);
    if (highest && header->version > *highest) {
        return "it is PTX " + header->version.text() + ", and the driver (CUDA " + cuda_version_text(driver_version) +
               ") takes PTX up to " + highest->text() + "; want a newer driver, or PTX of an older compiler";
    }
    return why_not_on(header->target, device);
}

}  // namespace gradguard::cuda
