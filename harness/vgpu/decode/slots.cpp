// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "harness/vgpu/decode/ir.h"

namespace gradguard::vgpu::decode {
namespace {

constexpr std::uint32_t kWordSlotBytes = exec::kLanes * 4;
constexpr std::uint32_t kDoubleSlotBytes = exec::kLanes * 8;
constexpr std::uint32_t kFragmentSlotBytes = exec::kFragmentWords * kWordSlotBytes;
constexpr std::uint32_t kNever = 0xFFFFFFFFU;

using Bits = std::vector<bool>;

/// From the first to the last place where a register matters. Op i reads at 2i and writes at 2i + 1, so a result may
/// take over the slot of an operand that ends there.
struct Interval {
    std::uint32_t reg;
    std::uint32_t start = kNever;
    std::uint32_t end = 0;

    void cover(std::uint32_t at) {
        start = std::min(start, at);
        end = std::max(end, at);
    }
};

/// Lanes of a warp go different ways, but each goes along the graph, and a lane's writes touch only its own part of a
/// slot: liveness of a single thread is enough.
class Liveness {
  public:
    explicit Liveness(const Ir& ir)
        : ir_(ir), live_in_(ir.blocks.size(), Bits(ir.registers.size())), live_out_(live_in_) {
        solve();
    }

    std::vector<Interval> intervals() const {
        std::vector<Interval> result(ir_.registers.size());
        for (std::uint32_t r = 0; r < result.size(); ++r) result[r].reg = r;
        std::uint32_t at = 0;
        for (std::size_t b = 0; b < ir_.blocks.size(); ++b) {
            const Block& block = ir_.blocks[b];
            const std::uint32_t begin = 2 * at;
            for (const IrOp& op : block.ops) {
                each_read(op, [&](std::uint32_t r) { result[r].cover(2 * at); });
                for (const Value& value : op.destinations) result[value.index].cover(2 * at + 1);
                ++at;
            }
            each_read(block, [&](std::uint32_t r) { result[r].cover(2 * at); });
            for (std::uint32_t r = 0; r < result.size(); ++r) {
                if (live_in_[b][r]) result[r].cover(begin);
                if (live_out_[b][r]) result[r].cover(2 * at + 1);
            }
            ++at;  // for what ends the block
        }
        std::erase_if(result, [](const Interval& interval) { return interval.start == kNever; });
        return result;
    }

    /// By register: whether it is alive where threads begin, that is, may be read before it is written.
    const Bits& alive_at_start() const { return live_in_.front(); }

  private:
    template <class F>
    static void each_read(const IrOp& op, F&& visit) {
        for (const Value& value : op.sources) {
            if (value.is_register()) visit(value.index);
        }
        if (!op.guard.is_register()) return;
        visit(op.guard.index);
        for (const Value& value : op.destinations) visit(value.index);  // lanes that the guard holds back keep theirs
    }
    template <class F>
    static void each_read(const Block& block, F&& visit) {
        for (const Value& value : {block.predicate, block.barrier, block.thread_count}) {
            if (value.is_register()) visit(value.index);
        }
    }

    void solve() {
        for (bool changed = true; changed;) {
            changed = false;
            for (std::size_t b = ir_.blocks.size(); b-- > 0;) {
                const Block& block = ir_.blocks[b];
                Bits live(ir_.registers.size());
                for (const std::uint32_t next : successors(block.segment)) {
                    for (std::size_t r = 0; r < live.size(); ++r) {
                        if (live_in_[next][r]) live[r] = true;
                    }
                }
                live_out_[b] = live;
                each_read(block, [&](std::uint32_t r) { live[r] = true; });
                for (auto op = block.ops.rbegin(); op != block.ops.rend(); ++op) {
                    for (const Value& value : op->destinations) live[value.index] = false;
                    each_read(*op, [&](std::uint32_t r) { live[r] = true; });
                }
                if (live != live_in_[b]) {
                    live_in_[b] = std::move(live);
                    changed = true;
                }
            }
        }
    }

    const Ir& ir_;
    std::vector<Bits> live_in_;
    std::vector<Bits> live_out_;
};

/// Linear scan; every slot class has numbers of its own, so slots never overlap in part.
class SlotNumbers {
  public:
    SlotNumbers(const Ir& ir, std::vector<Interval> intervals) : numbers_(ir.registers.size(), 0) {
        std::stable_sort(intervals.begin(), intervals.end(),
                         [](const Interval& a, const Interval& b) { return a.start < b.start; });
        std::vector<Interval> active;
        std::vector<std::uint32_t> free[kSlotClasses];
        for (const Interval& interval : intervals) {
            std::erase_if(active, [&](const Interval& old) {
                if (old.end >= interval.start) return false;
                free[index(ir.registers[old.reg])].push_back(numbers_[old.reg]);
                return true;
            });
            const std::size_t slot_class = index(ir.registers[interval.reg]);
            std::vector<std::uint32_t>& available = free[slot_class];
            if (available.empty()) {
                numbers_[interval.reg] = count_[slot_class]++;
            } else {
                numbers_[interval.reg] = available.back();
                available.pop_back();
            }
            active.push_back(interval);
        }
    }

    std::uint32_t number(std::uint32_t reg) const { return numbers_[reg]; }
    std::uint32_t count(SlotClass slot_class) const { return count_[index(slot_class)]; }

  private:
    static std::size_t index(SlotClass slot_class) { return static_cast<std::size_t>(slot_class); }

    std::vector<std::uint32_t> numbers_;
    std::uint32_t count_[kSlotClasses] = {};
};

class Emitter {
  public:
    explicit Emitter(const Ir& ir) : Emitter(ir, Liveness(ir)) {}

    std::unique_ptr<Program> run() {
        lay_out_constants();
        lay_out_frame();
        std::size_t guards = 0;
        for (const Block& block : ir_.blocks) {
            for (const IrOp& op : block.ops) guards += op.guard.is_register();
        }
        program_->guards.reserve(guards);  // ops point into it
        for (const Block& block : ir_.blocks) emit(block);
        program_->approximate.assign(ir_.approximate.begin(), ir_.approximate.end());
        program_->fused_pairs = ir_.fused_pairs;
        program_->fusion_choices = ir_.fusion_choices;
        return std::move(program_);
    }

  private:
    Emitter(const Ir& ir, const Liveness& liveness)
        : ir_(ir), numbers_(ir, liveness.intervals()), program_(std::make_unique<Program>()) {
        program_->definedness = find_undefined(ir, liveness.alive_at_start());
    }

    void lay_out_constants() {
        program_->constants = ir_.constants;
        std::uint32_t at = 0;
        for (Constant& constant : program_->constants) {
            constant.slot_offset = at;
            at += constant.bytes == 8 ? kDoubleSlotBytes : kWordSlotBytes;
        }
        program_->constant_bytes = at;
    }

    void lay_out_frame() {
        const std::uint32_t predicate_bytes = (numbers_.count(SlotClass::Predicate) * 4 + 63) / 64 * 64;
        specials_begin_ = predicate_bytes;
        each_value([&](const Value& value) {
            if (value.kind == Value::Kind::Special) special_offset_.emplace(value.index, 0);
        });
        words_begin_ = specials_begin_;
        for (auto& [which, offset] : special_offset_) {
            offset = words_begin_;
            words_begin_ += kWordSlotBytes;
            program_->specials.push_back({static_cast<ast::SpecialRegister>(which), offset});
        }
        doubles_begin_ = words_begin_ + numbers_.count(SlotClass::Word) * kWordSlotBytes;
        fragments_begin_ = doubles_begin_ + numbers_.count(SlotClass::Double) * kDoubleSlotBytes;
        program_->definedness.scratch = fragments_begin_ + numbers_.count(SlotClass::Fragment) * kFragmentSlotBytes;
        program_->frame_bytes = program_->definedness.scratch;
        if (!program_->definedness.registers.empty()) program_->frame_bytes += kScratchSlots * kDoubleSlotBytes;
    }

    template <class F>
    void each_value(F&& visit) const {
        for (const Block& block : ir_.blocks) {
            for (const IrOp& op : block.ops) {
                for (const Value& value : op.sources) visit(value);
            }
            visit(block.barrier);
            visit(block.thread_count);
        }
    }

    Place place(const Value& value) const {
        if (value.kind == Value::Kind::Constant) return {program_->constants[value.index].slot_offset, 1};
        if (value.kind == Value::Kind::Special) return {special_offset_.at(value.index), 0};
        const std::uint32_t number = numbers_.number(value.index);
        switch (ir_.registers[value.index]) {
            case SlotClass::Predicate:
                return {number * 4, 0};
            case SlotClass::Word:
                return {words_begin_ + number * kWordSlotBytes, 0};
            case SlotClass::Double:
                return {doubles_begin_ + number * kDoubleSlotBytes, 0};
            default:
                return {fragments_begin_ + number * kFragmentSlotBytes, 0};
        }
    }

    void emit(const Block& block) {
        Segment segment = block.segment;
        segment.first_op = static_cast<std::uint32_t>(program_->ops.size());
        for (const IrOp& op : block.ops) emit(op);
        segment.last_op = static_cast<std::uint32_t>(program_->ops.size());
        if (!block.ops.empty() && block.ops.back().when_released) segment.released_op = --segment.last_op;
        if (segment.conditional) segment.predicate = place(block.predicate).offset;
        if (segment.end == EndKind::Barrier) {
            segment.barrier = place(block.barrier);
            if (segment.has_thread_count) segment.thread_count = place(block.thread_count);
        }
        program_->segments.push_back(segment);
    }

    void emit(const IrOp& ir_op) {
        exec::Op op{};
        op.full = ir_op.row->full;
        op.masked = ir_op.row->masked;
        if (ir_op.guard.is_register()) {
            program_->guards.push_back({op.full, op.masked, place(ir_op.guard).offset,
                                        ir_op.guard_negated ? exec::kFullMask : 0, counted_ != ir_op.instruction});
            counted_ = ir_op.instruction;
            op.guard = &program_->guards.back();
            op.full = op.masked = &exec::run_guarded;
        }
        unsigned operand = 0;
        const auto add = [&](const Value& value) {
            const Place where = place(value);
            op.offset[operand] = where.offset;
            op.space[operand++] = where.space;
        };
        if (ir_op.is_memory) {  // the address comes first
            for (const Value& value : ir_op.sources) add(value);
            for (const Value& value : ir_op.destinations) add(value);
        } else {
            for (const Value& value : ir_op.destinations) add(value);
            for (const Value& value : ir_op.sources) add(value);
        }
        op.lane_bytes = ir_op.lane_bytes;
        op.elements = ir_op.elements;
        op.is_signed = ir_op.is_signed;
        op.immediate = ir_op.immediate;
        op.instruction = ir_op.instruction;
        program_->ops.push_back(op);
        program_->events.push_back(ir_op.event);
    }

    const Ir& ir_;
    SlotNumbers numbers_;
    std::unique_ptr<Program> program_;
    std::map<std::uint32_t, std::uint32_t> special_offset_;
    std::uint32_t counted_ = kNever;  ///< The instruction whose guard was counted last.
    std::uint32_t specials_begin_ = 0;
    std::uint32_t words_begin_ = 0;
    std::uint32_t doubles_begin_ = 0;
    std::uint32_t fragments_begin_ = 0;
};

}  // namespace

std::unique_ptr<Program> assign_slots(const Ir& ir) { return Emitter(ir).run(); }

}  // namespace gradguard::vgpu::decode
