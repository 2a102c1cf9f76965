// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace gradguard::vgpu::decode {

/// An instruction name, split at its dots. Refers to the name, which must live on.
class Modifiers {
  public:
    explicit Modifiers(std::string_view name) : name_(name) {
        while (true) {
            const std::size_t dot = name.find('.');
            parts_.push_back(name.substr(0, dot));
            if (dot == std::string_view::npos) break;
            name.remove_prefix(dot + 1);
        }
    }

    std::string_view opcode() const { return parts_[0]; }
    std::size_t size() const { return parts_.size(); }
    std::string_view operator[](std::size_t i) const { return parts_[i]; }
    bool is_any_of(std::initializer_list<std::string_view> names) const {
        return std::find(names.begin(), names.end(), name_) != names.end();
    }
    /// For conversions: the last part but one is the type of the result.
    bool destination_is_signed() const { return parts_.size() >= 2 && parts_[parts_.size() - 2][0] == 's'; }

  private:
    std::string_view name_;
    std::vector<std::string_view> parts_;
};

}  // namespace gradguard::vgpu::decode
