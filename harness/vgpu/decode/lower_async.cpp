// SPDX-License-Identifier: Apache-2.0
// cp.async, and what is about caches: prefetch, discard, applypriority, createpolicy.
#include <algorithm>

#include "harness/vgpu/decode/lowering.h"

namespace gradguard::vgpu::decode {

using ast::Operand;

namespace {

bool is_cache_level(std::string_view part) { return part == "L1" || part == "L2"; }
bool is_eviction(std::string_view part) {
    return part == "L2::evict_last" || part == "L2::evict_normal" || part == "L2::evict_first" ||
           part == "L2::evict_unchanged";
}

}  // namespace

/// PTX ISA "cp.async": .ca or .cg, .shared[::cta].global, hints; [dst], [src], size{, src-size | ignore-src}{, policy}.
void Lowering::lower_copy(const Modifiers& name) {
    if (name.size() == 3 && name[2] == "wait_group") return lower_wait_for_groups();
    if (name.size() < 5 || name[1] != "async" || (name[2] != "ca" && name[2] != "cg") ||
        (name[3] != "shared" && name[3] != "shared::cta") || name[4] != "global") {
        return lower_by_row(binder_.instruction().name, binder_.instruction().operands);
    }
    std::vector<Operand> operands = binder_.instruction().operands;
    for (std::size_t i = 5; i < name.size(); ++i) {
        if (name[i] == "L2::cache_hint") {
            take_policy(operands);
        } else if (name[i] != "L2::64B" && name[i] != "L2::128B" && name[i] != "L2::256B") {
            refuse_name();
        }
    }
    if (operands.size() < 3 || operands.size() > 4 || operands[0].kind != Operand::Kind::Address ||
        operands[1].kind != Operand::Kind::Address || operands[2].kind != Operand::Kind::Integer) {
        binder_.refuse("two addresses, a size and at most a size to read or a predicate are expected");
    }
    const std::uint64_t bytes = operands[2].bits;
    if (bytes != 16 && (name[2] == "cg" || (bytes != 4 && bytes != 8)))
        binder_.refuse(name[2] == "cg" ? "cp.async.cg copies 16 bytes" : "cp.async copies 4, 8 or 16 bytes");
    const bool ignores = operands.size() == 4 && operands[3].kind == Operand::Kind::Register &&
                         binder_.type_of(operands[3]).kind == ast::TypeKind::Predicate;
    const auto [to, narrow] = memory_.shared_address(operands[0]);
    IrOp op = binder_.make(ignores ? (narrow ? "%cp.async.ignore@32" : "%cp.async.ignore")
                                   : (narrow ? "%cp.async@32" : "%cp.async"));
    op.lane_bytes = static_cast<std::uint8_t>(bytes);
    op.immediate = static_cast<std::int32_t>(operands[0].offset);
    op.sources = {to, memory_.whole_address(operands[1], Space::Global)};
    const bool says_size = operands.size() == 4 && !ignores;
    op.sources.push_back(says_size ? binder_.source(operands[3], Letter::of('w'), false) : binder_.literal(bytes, 4));
    if (ignores) op.sources.push_back(binder_.source(operands[3], Letter::of('p'), false));
    binder_.emit(std::move(op));
}

void Lowering::lower_wait_for_groups() {
    const std::vector<Operand>& operands = binder_.instruction().operands;
    if (operands.size() != 1 || operands[0].kind != Operand::Kind::Integer || operands[0].bits > 0x7FFFFFFF)
        binder_.refuse("a constant number of groups is expected");
    IrOp op = binder_.make("%cp.async.wait_group");
    op.immediate = static_cast<std::int32_t>(operands[0].bits);
    binder_.emit(std::move(op));
}

/// The last operand of an instruction with .L2::cache_hint: any 64-bit register; caches are not modelled.
void Lowering::take_policy(std::vector<Operand>& operands) {
    if (operands.size() < 2) binder_.refuse("a cache policy is expected");
    binder_.source(operands.back(), Letter::of('D'), false);
    operands.pop_back();
}

/// prefetch, prefetchu, applypriority: hints, wherever they point; discard, which is none.
void Lowering::lower_cache_hint(const Modifiers& name) {
    const std::vector<Operand>& operands = binder_.instruction().operands;
    const std::string_view opcode = name.opcode();
    const std::size_t space = name.size() > 1 && (name[1] == "global" || name[1] == "local") ? 1 : 0;
    const bool has_size = opcode == "applypriority" || opcode == "discard";
    const std::string_view level = name.size() == 2 + space ? name[1 + space] : std::string_view();
    const bool known = opcode == "prefetch"        ? is_cache_level(level) || (space == 1 && is_eviction(level))
                       : opcode == "prefetchu"     ? level == "L1" && space == 0
                       : opcode == "applypriority" ? level == "L2::evict_normal"
                                                   : level == "L2";
    if (!known || (has_size && space == 1 && name[1] == "local")) refuse_name();
    if (operands.size() != (has_size ? 2U : 1U) || operands[0].kind != Operand::Kind::Address)
        binder_.refuse(has_size ? "an address and a size are expected" : "an address is expected");
    if (has_size && (operands[1].kind != Operand::Kind::Integer || operands[1].bits != 128))
        binder_.refuse("the size must be 128");
    const Value address = memory_.whole_address(operands[0], space == 0           ? Space::Generic
                                                             : name[1] == "local" ? Space::Local
                                                                                  : Space::Global);
    if (opcode != "discard") return;
    IrOp op = binder_.make("%discard");
    op.sources = {address};
    binder_.emit(std::move(op));
}

/// createpolicy: an opaque value that only cache hints take.
void Lowering::lower_create_policy(const Modifiers& name) {
    const std::vector<Operand>& operands = binder_.instruction().operands;
    const bool ranges = name.size() > 1 && name[1] == "range";
    const bool converts = name.is_any_of({"createpolicy.cvt.L2.b64"});
    std::size_t next = ranges && name.size() > 2 && name[2] == "global" ? 3 : 2;
    const bool known_kind = ranges || (name.size() > 1 && name[1] == "fractional");
    std::size_t priorities = 0;
    for (; known_kind && next + 1 < name.size() && is_eviction(name[next]); ++next) ++priorities;
    const bool whole = known_kind && next + 1 == name.size() && name[next] == "b64";
    if (!converts && (!whole || priorities == 0 || priorities > 2)) refuse_name();
    const bool fits = ranges     ? operands.size() == 4 && operands[1].kind == Operand::Kind::Address
                      : converts ? operands.size() == 2
                                 : operands.size() == 1 || operands.size() == 2;
    if (!fits) binder_.refuse("wrong number of operands");
    if (ranges) {
        memory_.whole_address(operands[1], Space::Generic);
        for (const std::size_t i : {2U, 3U}) binder_.source(operands[i], Letter::of('w'), false);
    } else if (operands.size() == 2) {
        binder_.source(operands[1], Letter::of(converts ? 'D' : 'f'), false);
    }
    IrOp op = binder_.make("mov.b64");
    op.sources = {binder_.literal(0x10000000C0DE0000U, 8)};
    op.destinations = {binder_.destination(operands[0], Letter::of('D'), false, false)};
    binder_.emit(std::move(op));
}

}  // namespace gradguard::vgpu::decode
