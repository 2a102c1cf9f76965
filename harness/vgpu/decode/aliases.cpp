// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "harness/vgpu/decode/ir.h"

namespace gradguard::vgpu::decode {
namespace {

struct Definition {
    std::uint32_t count = 0;
    std::uint32_t block = 0;
    std::uint32_t position = 0;
    bool guarded = false;
};

class CopyRemover {
  public:
    explicit CopyRemover(Ir& ir)
        : ir_(ir), definitions_(ir.registers.size()), reaches_all_uses_(ir.registers.size(), true) {}

    void run() {
        find_definitions();
        check_uses();
        replacement_.assign(ir_.registers.size(), Value{});
        for (Block& block : ir_.blocks) collect(block);
        for (Block& block : ir_.blocks) rewrite(block);
    }

  private:
    void find_definitions() {
        std::vector<std::vector<std::uint32_t>> edges;
        for (std::uint32_t b = 0; b < ir_.blocks.size(); ++b) {
            edges.push_back(successors(ir_.blocks[b].segment));
            const std::vector<IrOp>& ops = ir_.blocks[b].ops;
            for (std::uint32_t i = 0; i < ops.size(); ++i) {
                for (const Value& value : ops[i].destinations) {
                    Definition& definition = definitions_[value.index];
                    ++definition.count;
                    definition.block = b;
                    definition.position = i;
                    definition.guarded = ops[i].guard.is_register();
                }
            }
        }
        dominators_ = immediate_dominators(edges, 0);
    }

    bool dominates(std::uint32_t above, std::uint32_t below) const {
        while (below != above) {
            const std::uint32_t parent = dominators_[below];
            if (parent == below || parent == kNoSegment) return false;
            below = parent;
        }
        return true;
    }

    void use(const Value& value, std::uint32_t block, std::uint32_t position) {
        if (!value.is_register()) return;
        const Definition& definition = definitions_[value.index];
        const bool reached =
            definition.count == 1 && !definition.guarded &&
            (definition.block == block ? definition.position < position : dominates(definition.block, block));
        if (!reached) reaches_all_uses_[value.index] = false;
    }

    void check_uses() {
        for (std::uint32_t b = 0; b < ir_.blocks.size(); ++b) {
            const Block& block = ir_.blocks[b];
            for (std::uint32_t i = 0; i < block.ops.size(); ++i) {
                use(block.ops[i].guard, b, i);
                for (const Value& source : block.ops[i].sources) use(source, b, i);
            }
            for (const Value& value : {block.predicate, block.barrier, block.thread_count}) use(value, b, ~0U);
        }
    }

    /// Written once, before every use: such a register means the same at every use as where it was written.
    bool is_fixed(const Value& value) const {
        if (!value.is_register()) return value.kind != Value::Kind::None;
        return definitions_[value.index].count == 1 && reaches_all_uses_[value.index];
    }

    void collect(Block& block) {
        std::vector<IrOp> kept;
        kept.reserve(block.ops.size());
        for (IrOp& op : block.ops) {
            const bool is_copy = (op.row->flags & exec::kMove) != 0 && !op.guard.is_register();
            if (is_copy && is_fixed(op.destinations[0]) && is_fixed(op.sources[0])) {
                replacement_[op.destinations[0].index] = op.sources[0];
            } else {
                kept.push_back(std::move(op));
            }
        }
        block.ops = std::move(kept);
    }

    void replace(Value& value) const {
        while (value.is_register() && replacement_[value.index].kind != Value::Kind::None)
            value = replacement_[value.index];
    }

    void rewrite(Block& block) const {
        for (IrOp& op : block.ops) {
            replace(op.guard);
            for (Value& source : op.sources) replace(source);
        }
        for (Value* value : {&block.predicate, &block.barrier, &block.thread_count}) replace(*value);
    }

    Ir& ir_;
    std::vector<Definition> definitions_;
    std::vector<bool> reaches_all_uses_;
    std::vector<std::uint32_t> dominators_;
    std::vector<Value> replacement_;
};

}  // namespace

void remove_copies(Ir& ir) { CopyRemover(ir).run(); }

}  // namespace gradguard::vgpu::decode
