// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gradguard::tools {

/// A table with aligned columns, two spaces between them.
class TextTable {
  public:
    enum class Align { kLeft, kRight };

    /// One alignment for each column.
    explicit TextTable(std::vector<Align> columns) : columns_(std::move(columns)) {}

    void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

    /// All rows, each behind `indent` and ended by a newline, without spaces at the end.
    std::string text(std::string_view indent = "  ") const;

  private:
    std::vector<Align> columns_;
    std::vector<std::vector<std::string>> rows_;
};

/// Places on the screen: one for each character of UTF-8 text, none for a colour.
std::size_t display_width(std::string_view text);

/// A name as it can be printed on one line: control characters escaped, a long one cut in the middle.
std::string printable(std::string_view name, std::size_t longest = 56);

/// "13,002".
std::string grouped(std::uint64_t count);

/// "1 file", "3 files".
std::string counted(std::uint64_t count, const std::string& noun);

}  // namespace gradguard::tools
