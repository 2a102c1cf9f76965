// SPDX-License-Identifier: Apache-2.0
#include "harness/vgpu/exec/instruction_table.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "harness/vgpu/ptx/ast.h"

namespace gradguard::vgpu {
namespace {

bool processor_has(VectorLevel level) {
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    __builtin_cpu_init();
    if (level == VectorLevel::Avx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (level == VectorLevel::Avx512) {
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl");
    }
#endif
    return level == VectorLevel::Portable || level == VectorLevel::Best;
}

exec::RowSpan rows_of(VectorLevel level) {
    switch (level) {
        case VectorLevel::Avx2:
            return exec::avx2_rows();
        case VectorLevel::Avx512:
            return exec::avx512_rows();
        default:
            return exec::portable_rows();
    }
}

}  // namespace

const char* name_of(VectorLevel level) {
    switch (level) {
        case VectorLevel::Best:
            return "best";
        case VectorLevel::Portable:
            return "portable";
        case VectorLevel::Avx2:
            return "avx2";
        case VectorLevel::Avx512:
            return "avx512";
    }
    return "?";
}

bool is_supported(VectorLevel level) {
    return processor_has(level) && (level == VectorLevel::Best || rows_of(level).rows != nullptr);
}

std::vector<VectorLevel> supported_vector_levels() {
    std::vector<VectorLevel> levels;
    for (const VectorLevel level : {VectorLevel::Portable, VectorLevel::Avx2, VectorLevel::Avx512}) {
        if (is_supported(level)) levels.push_back(level);
    }
    return levels;
}

namespace exec {

VectorLevel resolve(VectorLevel level) { return level == VectorLevel::Best ? supported_vector_levels().back() : level; }

namespace {

/// The opcode, then the modifiers that are no types, sorted, then the types as they stand; the last part stays last.
std::string key_of(std::string_view name) {
    std::vector<std::string_view> modifiers, types;
    const std::size_t first = std::min(name.find('.'), name.size());
    for (std::size_t begin = first; begin < name.size();) {
        const std::size_t end = std::min(name.find('.', begin + 1), name.size());
        const std::string_view part = name.substr(begin + 1, end - begin - 1);
        (ast::parse_type(part) || end == name.size() ? types : modifiers).push_back(part);
        begin = end;
    }
    std::sort(modifiers.begin(), modifiers.end());
    std::string key(name.substr(0, first));
    for (const auto* parts : {&modifiers, &types}) {
        for (const std::string_view part : *parts) (key += '.') += part;
    }
    return key;
}

}  // namespace

InstructionTable::InstructionTable(RowSpan rows) {
    add(rows);
    add(directed_rounding_rows());
    add(atomic_rows());
    add(warp_rows());
    add(matrix_rows());
    add(half_rows());
    add(approximate_rows());
    add(approximate_function_rows());
    add(rare_integer_rows());
    add(launch_rows());
    add(rare_conversion_rows());
}

void InstructionTable::add(RowSpan rows) {
    for (std::size_t i = 0; i < rows.count; ++i) {
        if (!rows_.emplace(rows.rows[i].name, &rows.rows[i]).second) {
            throw std::logic_error(std::string("instruction table has two rows for ") + rows.rows[i].name);
        }
    }
}

const InstructionTable& InstructionTable::of(VectorLevel wanted) {
    const VectorLevel level = resolve(wanted);
    if (!is_supported(level)) {
        throw std::invalid_argument(std::string("this processor or build has no vector level ") + name_of(level));
    }
    switch (level) {
        case VectorLevel::Avx512: {
            static const InstructionTable table(avx512_rows());
            return table;
        }
        case VectorLevel::Avx2: {
            static const InstructionTable table(avx2_rows());
            return table;
        }
        default: {
            static const InstructionTable table(portable_rows());
            return table;
        }
    }
}

const Row* InstructionTable::find(std::string_view name) const {
    const auto it = rows_.find(name);
    return it == rows_.end() ? nullptr : it->second;
}

const Row* InstructionTable::find_reordered(std::string_view name) const {
    std::call_once(reordered_once_, [this] {
        for (const auto& [row_name, row] : rows_) {
            if ((row->flags & kInternal) != 0) continue;
            const auto [other, fresh] = reordered_.emplace(key_of(row_name), row);
            if (!fresh) other->second = nullptr;
        }
    });
    const auto it = reordered_.find(key_of(name));
    return it == reordered_.end() ? nullptr : it->second;
}

std::vector<std::string> InstructionTable::names() const {
    std::vector<std::string> names;
    for (const auto& [name, row] : rows_) {
        if ((row->flags & kInternal) == 0 || name[0] != '%') names.emplace_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

void run_guarded(Context& context, const Op& op) {
    const Guard& guard = *op.guard;
    std::uint32_t passes;
    __builtin_memcpy(&passes, context.base[0] + guard.predicate, sizeof(passes));
    const std::uint32_t active = context.mask;
    const std::uint32_t mask = active & (passes ^ guard.invert);
    if (guard.counts) context.lanes_off += static_cast<std::uint64_t>(std::popcount(active ^ mask));
    if (mask == kFullMask) return guard.full(context, op);
    if (mask == 0) return;
    context.mask = mask;
    guard.masked(context, op);
    context.mask = active;
}

}  // namespace exec
}  // namespace gradguard::vgpu
