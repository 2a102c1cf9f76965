// SPDX-License-Identifier: Apache-2.0
// Comparisons and selections, and what else is made of several rows of the table.
#include <algorithm>

#include "harness/vgpu/decode/lowering.h"

namespace gradguard::vgpu::decode {

using ast::Operand;

Value Lowering::carry() {
    if (!carry_.is_register()) carry_ = ir_.new_register(SlotClass::Predicate);
    return carry_;
}

std::vector<Value> Lowering::compare(const exec::Row& row, const Operand& a, const Operand& b) {
    const bool of_pairs = row.format[1] == 'p';
    const Letter letter = Letter::of(row.format[of_pairs ? 3 : 2]);
    IrOp op = binder_.make(row.name);
    op.sources = {binder_.source(a, letter, false), binder_.source(b, letter, false)};
    op.destinations = {ir_.new_register(SlotClass::Predicate)};
    if (of_pairs) op.destinations.push_back(ir_.new_register(SlotClass::Predicate));
    std::vector<Value> results = op.destinations;
    block().ops.push_back(std::move(op));
    return results;
}

/// setp.CMP[.BOOL].type p[|q], a, b[, [!]c]
void Lowering::lower_compare(const Modifiers& name) {
    std::vector<Operand> operands = binder_.instruction().operands;
    std::string plain = binder_.instruction().name;
    std::string combine;
    if (name.size() >= 4 && (name[2] == "and" || name[2] == "or" || name[2] == "xor")) {
        combine = std::string(name[2]) + ".pred";
        plain = "setp." + std::string(name[1]) + plain.substr(plain.find(name[2].data()) + name[2].size());
    }
    const exec::Row* const row = find_row(plain);
    if (!row) refuse_name();
    const bool pair = !operands.empty() && operands[0].kind == Operand::Kind::Pair;
    const bool of_pairs = row->format[1] == 'p';
    if (of_pairs && !pair) binder_.refuse("two predicates are expected, p|q");
    if (!pair && combine.empty()) return lower_by_row(plain, operands);
    if (operands.size() != (combine.empty() ? 3U : 4U)) binder_.refuse("wrong number of operands");
    std::vector<Value> results = compare(*row, operands[1], operands[2]);
    Value third;
    if (!combine.empty()) third = binder_.source(operands[3], Letter::of('p'), false);
    const auto combined = [&](const Value& value) {
        return combine.empty() ? value : binder_.compute(combine.c_str(), SlotClass::Predicate, {value, third});
    };
    // Both results are computed before either is written: p or q may be c.
    const Value first = combined(results[0]);
    Value second;
    if (pair) {
        second = combined(of_pairs ? results[1] : binder_.compute("not.pred", SlotClass::Predicate, {results[0]}));
    }
    if (!pair) return write_predicate(operands[0], first);
    // A destination may also be the guard: that one is written last.
    const Operand& p = operands[0].elements[0];
    const bool p_is_guard =
        p.kind == Operand::Kind::Register && static_cast<std::int32_t>(p.index) == binder_.instruction().guard;
    if (p_is_guard) write_predicate(operands[0].elements[1], second);
    write_predicate(p, first);
    if (!p_is_guard) write_predicate(operands[0].elements[1], second);
}

void Lowering::write_predicate(const Operand& target, const Value& value) {
    IrOp op = binder_.make("mov.pred");
    op.sources = {value};
    op.destinations = {binder_.destination(target, Letter::of('p'), false, false)};
    binder_.emit(std::move(op));
}

namespace {

/// What set gives where the comparison holds: all ones, or 1.0.
struct SetType {
    std::string_view name;
    char letter;
    std::uint32_t yes;
};
constexpr SetType kSetTypes[] = {{"u32", 'w', 0xFFFFFFFF}, {"s32", 'w', 0xFFFFFFFF}, {"f32", 'f', 0x3F800000},
                                 {"u16", 'h', 0xFFFF},     {"s16", 'h', 0xFFFF},     {"f16", 'e', 0x3C00},
                                 {"bf16", 'e', 0x3F80}};
/// The same for both halves of a word.
constexpr SetType kSetPairTypes[] = {
    {"u32", 'W', 0xFFFF}, {"s32", 'W', 0xFFFF}, {"f16x2", 'x', 0x3C00}, {"bf16x2", 'x', 0x3F80}};

template <std::size_t n>
const SetType* find_set_type(const SetType (&types)[n], std::string_view name) {
    const auto* const found = std::find_if(types, types + n, [&](const SetType& type) { return type.name == name; });
    return found == types + n ? nullptr : found;
}

}  // namespace

/// set.CMP[.BOOL][.ftz].dtype.stype d, a, b[, [!]c]
void Lowering::lower_set(const Modifiers& name) {
    const std::vector<Operand>& operands = binder_.instruction().operands;
    if (name.size() < 4) refuse_name();
    const bool combines = name[2] == "and" || name[2] == "or" || name[2] == "xor";
    std::string plain = "setp." + std::string(name[1]);
    for (std::size_t i = combines ? 3 : 2; i + 2 < name.size(); ++i) plain += "." + std::string(name[i]);
    plain += "." + std::string(name[name.size() - 1]);
    const exec::Row* const row = find_row(plain);
    if (!row) refuse_name();
    const bool of_pairs = row->format[1] == 'p';
    const std::string_view type_name = name[name.size() - 2];
    const SetType* const type =
        of_pairs ? find_set_type(kSetPairTypes, type_name) : find_set_type(kSetTypes, type_name);
    if (!type) refuse_name();
    if (operands.size() != (combines ? 4U : 3U)) binder_.refuse("wrong number of operands");
    std::vector<Value> holds = compare(*row, operands[1], operands[2]);
    if (combines) {
        const std::string combine = std::string(name[2]) + ".pred";
        const Value third = binder_.source(operands[3], Letter::of('p'), false);
        for (Value& one : holds) one = binder_.compute(combine.c_str(), SlotClass::Predicate, {one, third});
    }
    const Letter letter = Letter::of(type->letter);
    const Value yes = binder_.literal(type->yes, 4), no = binder_.literal(0, 4);
    IrOp op = binder_.make(of_pairs ? "%pack.b32" : letter.bytes == 2 ? "selp.b16" : "selp.b32");
    if (of_pairs) {
        for (const Value& one : holds)
            op.sources.push_back(binder_.compute("selp.b16", SlotClass::Word, {yes, no, one}));
    } else {
        op.sources = {yes, no, holds[0]};
    }
    op.destinations = {binder_.destination(operands[0], letter, false, false)};
    binder_.emit(std::move(op));
}

/// slct[.ftz].dtype.(s32|f32) d, a, b, c: a where c >= 0, else b.
void Lowering::lower_select_by_sign(const Modifiers& name) {
    const std::vector<Operand>& operands = binder_.instruction().operands;
    const bool ftz = name.size() > 1 && name[1] == "ftz";
    if (name.size() != (ftz ? 4U : 3U)) refuse_name();
    const std::string chooser(name[name.size() - 1]);
    const exec::Row* const select = find_row("selp." + std::string(name[name.size() - 2]));
    if (!select || (chooser != "f32" && (chooser != "s32" || ftz))) refuse_name();
    const exec::Row* const row = find_row(std::string("setp.ge.") + (ftz ? "ftz." : "") + chooser);
    if (operands.size() != 4) binder_.refuse("wrong number of operands");
    Operand zero;
    zero.kind = chooser == "s32" ? Operand::Kind::Integer : Operand::Kind::Float32;
    const Value first = compare(*row, operands[3], zero)[0];
    const Letter letter = Letter::of(select->format[0]);
    IrOp op = binder_.make(select->name);
    op.sources = {binder_.source(operands[1], letter, false), binder_.source(operands[2], letter, false), first};
    op.destinations = {binder_.destination(operands[0], letter, false, false)};
    binder_.emit(std::move(op));
}

/// mad.(lo|hi).cc and madc.(lo|hi)[.cc]: a product, and a sum with the carry.
void Lowering::lower_mad_with_carry(const Modifiers& name) {
    const std::vector<Operand>& operands = binder_.instruction().operands;
    const bool writes = name.size() == 4 && name[2] == "cc";
    const std::string type(name[name.size() - 1]);
    const std::string product = "mul." + std::string(name[1]) + "." + type;
    const std::string sum = std::string(name.opcode() == "madc" ? "addc." : "add.") + (writes ? "cc." : "") + type;
    if ((name.size() != 3 && !writes) || !find_row(product) || !find_row(sum)) refuse_name();
    if (operands.size() != 4) binder_.refuse("wrong number of operands");
    const exec::Row& row = *find_row(sum);
    const Letter letter = Letter::of(row.format[0]);
    const Value high =
        binder_.compute(product.c_str(), letter.slot_class(),
                        {binder_.source(operands[1], letter, false), binder_.source(operands[2], letter, false)});
    IrOp op = binder_.make(row.name);
    op.sources = {high, binder_.source(operands[3], letter, false)};
    if (name.opcode() == "madc") op.sources.push_back(carry());
    op.destinations = {binder_.destination(operands[0], letter, false, false)};
    if (writes) op.destinations.push_back(carry());
    binder_.emit(std::move(op));
}

}  // namespace gradguard::vgpu::decode
