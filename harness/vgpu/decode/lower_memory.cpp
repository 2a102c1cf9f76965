// SPDX-License-Identifier: Apache-2.0
#include "harness/vgpu/decode/lower_memory.h"

#include <algorithm>
#include <limits>
#include <string>

namespace gradguard::vgpu::decode {
namespace {

using ast::Operand;

struct SpaceName {
    std::string_view name;
    Space space;
};
constexpr SpaceName kSpaces[] = {
    {"global", Space::Global},  {"shared", Space::Shared},     {"shared::cta", Space::Shared},
    {"const", Space::Constant}, {"param", Space::Param},       {"param::entry", Space::Param},
    {"local", Space::Local},    {"param::func", Space::Param}, {"shared::cluster", Space::Shared},
};

/// Hints about caches, and orders and scopes that hold anyway: memory is touched by one lane after the other.
constexpr std::string_view kIgnoredByBoth[] = {
    "weak",
    "volatile",
    "relaxed",
    "cta",
    "gpu",
    "sys",
    "cluster",
    "L1::evict_normal",
    "L1::evict_unchanged",
    "L1::evict_first",
    "L1::evict_last",
    "L1::no_allocate",
    "L2::evict_normal",
    "L2::evict_first",
    "L2::evict_last",
    "L2::cache_hint",
    "mmio",
};
constexpr std::string_view kIgnoredByLoads[] = {
    "acquire", "ca", "cg", "cs", "lu", "cv", "nc", "L2::64B", "L2::128B", "L2::256B",
};
constexpr std::string_view kIgnoredByStores[] = {"release", "wb", "cg", "cs", "wt"};

template <std::size_t n>
bool contains(const std::string_view (&list)[n], std::string_view word) {
    return std::find(list, list + n, word) != list + n;
}

const char* name_in_rows(Space space) {
    switch (space) {
        case Space::Global:
            return "global";
        case Space::Shared:
            return "shared";
        case Space::Local:
            return "local";
        case Space::Constant:
            return "const";
        default:
            return "generic";
    }
}

struct OrderName {
    std::string_view name;
    Order order;
};
constexpr OrderName kOrders[] = {{"volatile", Order::Volatile},
                                 {"relaxed", Order::Relaxed},
                                 {"acquire", Order::Acquire},
                                 {"release", Order::Release},
                                 {"acq_rel", Order::AcquireRelease}};

}  // namespace

Scope scope_of(const Modifiers& name, Scope otherwise) {
    for (std::size_t i = 1; i < name.size(); ++i) {
        if (name[i] == "cta") return Scope::Cta;
        if (name[i] == "cluster") return Scope::Cluster;
        if (name[i] == "gpu" || name[i] == "gl") return Scope::Gpu;
        if (name[i] == "sys") return Scope::System;
    }
    return otherwise;
}

Order order_of(const Modifiers& name, Order otherwise) {
    for (std::size_t i = 1; i < name.size(); ++i) {
        for (const OrderName& order : kOrders) {
            if (order.name == name[i]) return order.order;
        }
    }
    return otherwise;
}

MemoryLowering::Form MemoryLowering::parse(const Modifiers& name, bool is_store) const {
    Form form;
    bool has_space = false;
    const auto unknown = [&](std::string_view part) {
        binder_.refuse("instruction '" + binder_.instruction().name + "' is not supported ('." + std::string(part) +
                       "')");
    };
    for (std::size_t i = 1; i + 1 < name.size(); ++i) {
        const auto space =
            std::find_if(std::begin(kSpaces), std::end(kSpaces), [&](const SpaceName& s) { return s.name == name[i]; });
        if (space != std::end(kSpaces) && !has_space) {
            form.space = space->space;
            has_space = true;
        } else if (name[i] == "v2" || name[i] == "v4") {
            form.elements = name[i] == "v2" ? 2 : 4;
        } else if (!contains(kIgnoredByBoth, name[i]) &&
                   !(is_store ? contains(kIgnoredByStores, name[i]) : contains(kIgnoredByLoads, name[i]))) {
            unknown(name[i]);
        }
    }
    form.order = order_of(name, Order::Weak);
    form.scope = scope_of(name, Scope::System);
    const std::string_view type_name = name[name.size() - 1];
    const auto type = ast::parse_type(type_name);
    const bool is_16_bit_float = type && type->kind == ast::TypeKind::Float && type_name != "f32" && type_name != "f64";
    if (name.size() < 2 || !type || type->kind == ast::TypeKind::Predicate || is_16_bit_float) unknown(type_name);
    form.type = *type;
    if (form.type.bytes * form.elements > 16) unknown("v" + std::to_string(form.elements));
    if (name.opcode() == "ldu" && form.space != Space::Global && form.space != Space::Generic) unknown("ldu");
    if (is_store && form.space == Space::Constant) unknown("const");
    if (form.space == Space::Param && names_call_parameter()) form.space = Space::Local;
    if (is_store && form.space == Space::Param) unknown("param");
    return form;
}

std::vector<Operand> MemoryLowering::without_policy(const Modifiers& name) const {
    std::vector<Operand> operands = binder_.instruction().operands;
    for (std::size_t i = 1; i < name.size(); ++i) {
        if (name[i] != "L2::cache_hint") continue;
        if (operands.size() < 3) binder_.refuse("a cache policy is expected");
        binder_.source(operands.back(), Letter::of('D'), false);
        operands.pop_back();
    }
    return operands;
}

std::pair<Value, bool> MemoryLowering::shared_address(const Operand& address) {
    Form form;
    form.space = Space::Shared;
    IrOp op;
    const bool narrow = bind_address(address, form, op);
    return {op.sources[0], narrow};
}

Value MemoryLowering::whole_address(const Operand& address, Space space) {
    Form form;
    form.space = space;
    IrOp op;
    bind_address(address, form, op);
    if (op.immediate == 0) return op.sources[0];
    const auto offset = static_cast<std::uint64_t>(std::int64_t{op.immediate});
    return binder_.compute("add.s64", SlotClass::Double, {op.sources[0], binder_.literal(offset, 8)});
}

/// Parameters of calls, and those of functions, are local memory.
bool MemoryLowering::names_call_parameter() const {
    for (const Operand& operand : binder_.instruction().operands) {
        if (operand.kind == Operand::Kind::Address && operand.elements[0].kind == Operand::Kind::Variable)
            return binder_.variable(operand.elements[0]).space == Space::Local;
    }
    return false;
}

std::vector<Operand> MemoryLowering::elements_of(const Operand& operand, const Form& form) const {
    if (form.elements == 1 && operand.kind != Operand::Kind::Vector) return {operand};
    if (operand.kind != Operand::Kind::Vector || operand.elements.size() != form.elements) {
        binder_.refuse("a vector of " + std::to_string(form.elements) + " elements is expected");
    }
    return operand.elements;
}

bool MemoryLowering::bind_address(const Operand& address, const Form& form, IrOp& op) {
    const Operand& base = address.elements[0];
    if (address.offset < std::numeric_limits<std::int32_t>::min() ||
        address.offset > std::numeric_limits<std::int32_t>::max()) {
        binder_.refuse("address offset beyond 32 bits");
    }
    op.immediate = static_cast<std::int32_t>(address.offset);
    if (base.kind == Operand::Kind::Variable) {
        const Space space = binder_.variable(base).space;
        if (space != form.space) binder_.refuse("'" + binder_.variable(base).name + "' is in another state space");
        op.sources = {binder_.variable_address(base, 0, 8)};
        return false;
    }
    if (base.kind == Operand::Kind::Integer) {
        op.sources = {binder_.literal(base.bits, 8)};
        return false;
    }
    if (binder_.type_of(base).bytes != 4) {
        op.sources = {binder_.source(base, Letter::of('d'), false)};
        return false;
    }
    const Value narrow = binder_.source(base, Letter::of('w'), false);
    if (form.space == Space::Shared) {
        op.sources = {narrow};
        return true;
    }
    op.sources = {binder_.compute("%widen.u32", SlotClass::Double, {narrow})};
    return false;
}

IrOp MemoryLowering::make_access(const Form& form, const Operand& address, const char* opcode) {
    IrOp op;
    const bool has_32_bit_address = bind_address(address, form, op);
    const bool is_signed_narrow = form.type.kind == ast::TypeKind::Signed && form.type.bytes < 4;
    const bool simple = form.elements == 1 && form.type.bytes >= 2 && !(is_signed_narrow && opcode[0] == 'l');
    std::string row = std::string(opcode) + "." + name_in_rows(form.space) + ".";
    row += simple ? "b" + std::to_string(8 * form.type.bytes) : "any";
    if (has_32_bit_address) row += "@32";
    op.row = binder_.make(row.c_str()).row;
    op.is_memory = true;
    // Arguments and results of calls are read back whether the caller or the callee needs them or not.
    const bool reads_argument = opcode[0] == 'l' && form.space == Space::Local &&
                                binder_.instruction().name.find(".param") != std::string::npos;
    op.event = {reads_argument ? OpEvent::Kind::None : OpEvent::Kind::Memory,
                form.space,
                opcode[0] == 'l' ? AccessKind::Load : AccessKind::Store,
                static_cast<std::uint8_t>(has_32_bit_address ? 4 : 8),
                form.order,
                form.scope};
    op.lane_bytes = form.type.bytes;
    op.elements = form.elements;
    op.is_signed = is_signed_narrow;
    return op;
}

void MemoryLowering::lower_load(const Modifiers& name) {
    Form form = parse(name, false);
    const std::vector<Operand> operands = without_policy(name);
    if (operands.size() != 2 || operands[1].kind != Operand::Kind::Address)
        binder_.refuse("a destination and an address are expected");
    const bool by_name = operands[1].elements[0].kind == Operand::Kind::Variable;
    if (form.space == Space::Param && by_name) return lower_param_load(form);
    if (form.space == Space::Param) form.space = Space::Constant;  // the argument block: memory that kernels only read
    IrOp op = make_access(form, operands[1], "ld");
    const bool is_signed = form.type.kind == ast::TypeKind::Signed;
    for (const Operand& element : elements_of(operands[0], form)) {
        op.destinations.push_back(binder_.destination(element, Letter::of(form.type), true, is_signed));
    }
    binder_.emit(std::move(op));
}

void MemoryLowering::lower_store(const Modifiers& name) {
    const Form form = parse(name, true);
    const std::vector<Operand> operands = without_policy(name);
    if (operands.size() != 2 || operands[0].kind != Operand::Kind::Address)
        binder_.refuse("an address and a source are expected");
    IrOp op = make_access(form, operands[0], "st");
    for (const Operand& element : elements_of(operands[1], form)) {
        op.sources.push_back(binder_.source(element, Letter::of(form.type), true));
    }
    binder_.emit(std::move(op));
}

void MemoryLowering::lower_atomic(const Modifiers& name) {
    const bool returns = name.opcode() == "atom";
    Form form;
    std::string operation;
    for (std::size_t i = 1; i + 1 < name.size(); ++i) {
        const auto space =
            std::find_if(std::begin(kSpaces), std::end(kSpaces), [&](const SpaceName& s) { return s.name == name[i]; });
        const bool known =
            order_of(name, Order::Weak) != Order::Weak && name[i] != "volatile" &&
            std::any_of(std::begin(kOrders), std::end(kOrders), [&](const OrderName& o) { return o.name == name[i]; });
        if (space != std::end(kSpaces))
            form.space = space->space;
        else if (!known && name[i] != "cta" && name[i] != "gpu" && name[i] != "sys" && name[i] != "cluster" &&
                 name[i] != "L2::cache_hint")
            operation += (operation.empty() ? "" : ".") + std::string(name[i]);
    }
    const auto type = ast::parse_type(name[name.size() - 1]);
    if (!type) binder_.refuse("instruction '" + binder_.instruction().name + "' is not supported");
    form.type = *type;
    const std::vector<Operand> operands = without_policy(name);
    const std::size_t first = returns ? 1 : 0;
    if (operands.size() < first + 2 || operands[first].kind != Operand::Kind::Address)
        binder_.refuse("an address and values are expected");
    IrOp op;
    const bool has_32_bit_address = bind_address(operands[first], form, op);
    std::string row = std::string(name.opcode()) + "." + name_in_rows(form.space) + "." + operation + "." +
                      std::string(name[name.size() - 1]);
    if (has_32_bit_address) row += "@32";
    op.row = binder_.find(row);
    if (!op.row) binder_.refuse("instruction '" + binder_.instruction().name + "' is not supported");
    const bool takes_two = operation == "cas";
    if (operands.size() != first + (takes_two ? 3 : 2)) binder_.refuse("wrong number of operands");
    op.is_memory = true;
    op.event = {OpEvent::Kind::Memory,
                form.space,
                AccessKind::Atomic,
                static_cast<std::uint8_t>(has_32_bit_address ? 4 : 8),
                order_of(name, Order::Relaxed),
                scope_of(name, Scope::Gpu),
                returns};
    op.lane_bytes = form.type.bytes;
    op.elements = 1;
    for (std::size_t i = first + 1; i < operands.size(); ++i)
        op.sources.push_back(binder_.source(operands[i], Letter::of(form.type), true));
    if (returns) op.destinations.push_back(binder_.destination(operands[0], Letter::of(form.type), true, false));
    binder_.emit(std::move(op));
}

/// A kernel parameter is a constant of the launch: the load is a move from its slot.
void MemoryLowering::lower_param_load(const Form& form) {
    const std::vector<Operand>& operands = binder_.instruction().operands;
    const Operand& base = operands[1].elements[0];
    if (binder_.variable(base).space != Space::Param) {
        binder_.refuse("'" + binder_.variable(base).name + "' is in another state space");
    }
    const ast::Variable& parameter = binder_.variable(base);
    std::int64_t offset = operands[1].offset;
    const std::int64_t end = offset + std::int64_t{form.type.bytes} * form.elements;
    if (offset < 0 || end > static_cast<std::int64_t>(parameter.bytes))
        binder_.refuse("read beyond parameter '" + parameter.name + "'");
    if ((parameter.offset_bytes + static_cast<std::uint64_t>(offset)) %
            (std::uint64_t{form.type.bytes} * form.elements) !=
        0) {
        binder_.refuse("misaligned read of parameter '" + parameter.name + "'");
    }
    const bool is_signed = form.type.kind == ast::TypeKind::Signed;
    for (const Operand& element : elements_of(operands[0], form)) {
        Constant constant;
        constant.kind = Constant::Kind::Param;
        constant.bytes = form.type.bytes == 8 ? 8 : 4;
        constant.param_bytes = form.type.bytes;
        constant.sign_extend = is_signed;
        constant.bits = parameter.offset_bytes + static_cast<std::uint64_t>(offset);
        IrOp op = binder_.make(form.type.bytes == 8 ? "mov.b64" : "mov.b32");
        op.sources = {ir_.add_constant(constant)};
        op.destinations = {binder_.destination(element, Letter::of(form.type), true, is_signed)};
        binder_.emit(std::move(op));
        offset += form.type.bytes;
    }
}

}  // namespace gradguard::vgpu::decode
