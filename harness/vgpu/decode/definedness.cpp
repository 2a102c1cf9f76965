// SPDX-License-Identifier: Apache-2.0
#include "harness/vgpu/decode/definedness.h"

#include <algorithm>
#include <string_view>

#include "harness/vgpu/decode/ir.h"

namespace gradguard::vgpu::decode {
namespace {

struct NamedRule {
    std::string_view prefix;
    DefinednessRule rule;
    std::uint8_t moved_sources = 0;
};
constexpr NamedRule kRules[] = {
    {"selp.", DefinednessRule::Select},      {"mov.", DefinednessRule::Bitwise, 1},
    {"not.", DefinednessRule::Bitwise},      {"xor.", DefinednessRule::Bitwise},
    {"and.", DefinednessRule::And},          {"or.", DefinednessRule::Or},
    {"%pack.", DefinednessRule::Bits, 2},    {"%low.", DefinednessRule::Bits, 1},
    {"%high.", DefinednessRule::Bits, 1},    {"%widen.", DefinednessRule::Bits, 1},
    {"prmt.", DefinednessRule::Bits, 2},     {"shf.", DefinednessRule::Bits, 2},
    {"shl.", DefinednessRule::Bits, 1},      {"shr.", DefinednessRule::Bits, 1},
    {"bfe.", DefinednessRule::Bits, 1},      {"bfi.", DefinednessRule::Bits, 2},
    {"brev.", DefinednessRule::Bits, 1},     {"shfl.", DefinednessRule::Shuffle},
    {"%barrier.", DefinednessRule::Barrier}, {"%cp.", DefinednessRule::Copy},
    {"%discard", DefinednessRule::Copy},
};

bool is_integer(std::string_view type) {
    return type.size() >= 2 && type.size() <= 3 && (type[0] == 'u' || type[0] == 's' || type[0] == 'b');
}

/// cvt.TO.FROM of integers, which extends or cuts off.
bool resizes_integer(std::string_view name) {
    if (name.substr(0, 4) != "cvt.") return false;
    name.remove_prefix(4);
    const std::size_t dot = name.find('.');
    return dot != std::string_view::npos && is_integer(name.substr(0, dot)) && is_integer(name.substr(dot + 1));
}

NamedRule rule_of(const IrOp& op) {
    if (op.is_memory) {
        switch (op.event.access) {
            case AccessKind::Load:
                return {{}, DefinednessRule::Load};
            case AccessKind::Store:
                return {{}, DefinednessRule::Store};
            case AccessKind::Atomic:
                return {{}, DefinednessRule::Atomic};
        }
    }
    const std::string_view name = op.row->name;
    for (const NamedRule& rule : kRules) {
        if (name.substr(0, rule.prefix.size()) == rule.prefix) return rule;
    }
    if (resizes_integer(name)) return {{}, DefinednessRule::Bits, 1};
    return {{}, (op.row->flags & exec::kWarp) != 0 ? DefinednessRule::Warp : DefinednessRule::All};
}

/// Bytes of operand `index` of those that `letters` describe; registers have 4 or 8, but a 16-bit operand is 2 of them.
std::uint8_t bytes_of(std::string_view letters, std::size_t index, std::uint8_t slot_bytes) {
    const char letter = index < letters.size() ? letters[index] : ' ';
    return letter == 'h' || letter == 'H' || letter == 'e' ? 2 : slot_bytes;
}

class Tracker {
  public:
    Tracker(const Ir& ir, const std::vector<bool>& alive_at_start)
        : ir_(ir), alive_at_start_(alive_at_start), suspect_(alive_at_start) {}

    Definedness run() {
        const bool any = std::find(suspect_.begin(), suspect_.end(), true) != suspect_.end();
        for (const Block& block : ir_.blocks) {
            for (const IrOp& op : block.ops) result_.through_local |= reads_local(op);
        }
        while ((any || result_.through_local) && spread()) {
        }
        numbers_.assign(ir_.registers.size(), kUntracked);
        for (std::uint32_t r = 0; r < suspect_.size(); ++r) {
            if (!suspect_[r]) continue;
            numbers_[r] = static_cast<std::uint32_t>(result_.registers.size());
            result_.registers.push_back({r, alive_at_start_[r]});
        }
        for (const Block& block : ir_.blocks) add(block);
        if (result_.ops.empty()) result_.of_op.clear();
        return std::move(result_);
    }

  private:
    bool is_suspect(const Value& value) const { return value.is_register() && suspect_[value.index]; }
    bool any_suspect(const std::vector<Value>& values, std::size_t first = 0) const {
        return std::any_of(values.begin() + static_cast<std::ptrdiff_t>(std::min(first, values.size())), values.end(),
                           [&](const Value& value) { return is_suspect(value); });
    }

    bool may_be(const IrOp& op, Space space) const {
        if (op.event.space == Space::Generic) return space != Space::Local || ir_.local_bytes != 0;
        return op.event.space == space;
    }
    /// Arguments and results of calls are left out: reading them is no event.
    bool reads_local(const IrOp& op) const {
        return op.is_memory && op.event.access == AccessKind::Load && op.event.kind != OpEvent::Kind::None &&
               may_be(op, Space::Local);
    }

    /// What may become undefined by what already may. False when nothing new did.
    bool spread() {
        bool changed = false;
        const auto set = [&](bool& flag, bool value) {
            changed |= value && !flag;
            flag |= value;
        };
        for (const Block& block : ir_.blocks) {
            for (const IrOp& op : block.ops) {
                bool undefined = false;
                switch (rule_of(op).rule) {
                    case DefinednessRule::Load:
                        undefined = (result_.through_local && may_be(op, Space::Local)) ||
                                    (result_.through_shared && may_be(op, Space::Shared));
                        break;
                    case DefinednessRule::Store:
                        set(result_.through_local, may_be(op, Space::Local) && any_suspect(op.sources, 1));
                        set(result_.through_shared, may_be(op, Space::Shared) && any_suspect(op.sources, 1));
                        break;
                    case DefinednessRule::Atomic:
                    case DefinednessRule::Barrier:
                    case DefinednessRule::Copy:
                        break;
                    default:
                        undefined = any_suspect(op.sources);
                }
                for (const Value& value : op.destinations) {
                    if (!undefined || suspect_[value.index]) continue;
                    suspect_[value.index] = true;
                    changed = true;
                }
            }
        }
        return changed;
    }

    std::uint8_t slot_bytes(const Value& value) const {
        if (value.kind == Value::Kind::Constant) return ir_.constants[value.index].bytes == 8 ? 8 : 4;
        if (value.kind != Value::Kind::Register) return 4;
        const SlotClass slot_class = ir_.registers[value.index];
        return slot_class == SlotClass::Predicate ? 0 : slot_class == SlotClass::Word ? 4 : 8;
    }
    std::uint32_t number(const Value& value) const { return value.is_register() ? numbers_[value.index] : kUntracked; }

    bool touches_undefined_memory(const IrOp& op) const {
        return op.is_memory && op.event.access != AccessKind::Load &&
               ((result_.through_local && may_be(op, Space::Local)) ||
                (result_.through_shared && may_be(op, Space::Shared)));
    }

    void add(const Block& block) {
        TrackedSegment segment;
        const auto count = [&](const Value& value) { segment.register_reads += value.is_register(); };
        for (const Value& value : {block.predicate, block.barrier, block.thread_count}) count(value);
        segment.predicate = number(block.predicate);
        segment.barrier = number(block.barrier);
        segment.thread_count = number(block.thread_count);
        for (const IrOp& op : block.ops) {
            for (const Value& value : op.sources) count(value);
            count(op.guard);
            const bool tracked = is_suspect(op.guard) || any_suspect(op.sources) || any_suspect(op.destinations) ||
                                 touches_undefined_memory(op);
            result_.of_op.push_back(tracked ? static_cast<std::uint32_t>(result_.ops.size() + 1) : 0);
            if (!tracked) continue;
            segment.has_ops = true;
            result_.ops.push_back(tracked_op(op));
        }
        result_.segments.push_back(segment);
    }

    TrackedOp tracked_op(const IrOp& op) const {
        const NamedRule rule = rule_of(op);
        std::string_view to = op.is_memory ? "" : op.row->format, from;
        if (const std::size_t equals = to.find('='); equals != std::string_view::npos) {
            from = to.substr(equals + 1);
            to = to.substr(to[0] == '~' ? 1 : 0, equals - (to[0] == '~' ? 1 : 0));
        }
        TrackedOp entry;
        entry.rule = rule.rule;
        entry.moved_sources = rule.moved_sources;
        entry.guard = number(op.guard);
        for (const Value& value : op.sources) {
            entry.source_bytes[entry.source_count] = bytes_of(from, entry.source_count, slot_bytes(value));
            entry.sources[entry.source_count++] = number(value);
        }
        for (const Value& value : op.destinations) {
            entry.destination_bytes[entry.destination_count] = bytes_of(to, entry.destination_count, slot_bytes(value));
            entry.destinations[entry.destination_count++] = number(value);
        }
        return entry;
    }

    const Ir& ir_;
    const std::vector<bool>& alive_at_start_;
    std::vector<bool> suspect_;
    std::vector<std::uint32_t> numbers_;
    Definedness result_;
};

}  // namespace

Definedness find_undefined(const Ir& ir, const std::vector<bool>& alive_at_start) {
    return Tracker(ir, alive_at_start).run();
}

}  // namespace gradguard::vgpu::decode
