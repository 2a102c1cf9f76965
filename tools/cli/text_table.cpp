// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/text_table.h"

#include <algorithm>

#include "harness/io/file_error.h"

namespace gradguard::tools {
namespace {

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

}  // namespace

std::string TextTable::text(std::string_view indent) const {
    std::vector<std::size_t> widths(columns_.size(), 0);
    for (const auto& row : rows_) {
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
    }
    std::string text;
    for (const auto& row : rows_) {
        std::string line(indent);
        for (std::size_t i = 0; i < row.size(); ++i) {
            const std::string padding(widths[i] - display_width(row[i]), ' ');
            line += (i == 0 ? "" : "  ") + (columns_[i] == Align::kLeft ? row[i] + padding : padding + row[i]);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

std::size_t display_width(std::string_view text) {
    std::size_t width = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\033') {
            i = std::min(text.find('m', i), text.size());  // a colour takes no place
        } else if (!continues_character(text[i])) {
            ++width;
        }
    }
    return width;
}

std::string printable(std::string_view name, std::size_t longest) {
    const std::string escaped = harness::in_quotes(name);
    const std::string text = escaped.substr(1, escaped.size() - 2);
    if (display_width(text) <= longest) return text;
    // The end of a parameter's name says more than its middle.
    std::size_t head = longest / 3;
    while (continues_character(text[head])) --head;
    std::size_t tail = text.size() - (longest - longest / 3 - 3);
    while (continues_character(text[tail])) ++tail;
    return text.substr(0, head) + "..." + text.substr(tail);
}

std::string grouped(std::uint64_t count) {
    std::string digits = std::to_string(count);
    for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
    return digits;
}

std::string counted(std::uint64_t count, const std::string& noun) {
    return grouped(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace gradguard::tools
