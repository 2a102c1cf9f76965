// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <unordered_map>

#include "harness/vgpu/decode/ir.h"
#include "harness/vgpu/random.h"

namespace gradguard::vgpu::decode {
namespace {

/// PTX lets a compiler fuse a mul and an add that name no rounding. Each pair within a block is an independent choice.
class Fuser {
  public:
    Fuser(Ir& ir, const exec::InstructionTable& table, std::uint64_t seed) : ir_(ir), table_(table), random_(seed) {}

    void run() {
        for (Block& block : ir_.blocks) run_block(block);
    }

  private:
    struct Product {
        IrOp op;
        std::string modifiers;  ///< ".ftz" or nothing, and the type.
    };

    static std::string after_opcode(const exec::Row& row) {
        const std::string name = row.name;
        return name.substr(name.find('.'));
    }

    void run_block(Block& block) {
        products_.clear();
        std::vector<IrOp> ops;
        for (IrOp& op : block.ops) {
            if ((op.row->flags & (exec::kSum | exec::kDifference)) != 0 && !op.guard.is_register()) try_fuse(op, ops);
            for (const Value& value : op.destinations) forget(value);
            if ((op.row->flags & exec::kProduct) != 0 && !op.guard.is_register()) remember(op);
            ops.push_back(std::move(op));
        }
        block.ops = std::move(ops);
    }

    void remember(const IrOp& op) {
        const std::string modifiers = after_opcode(*op.row);
        const bool overwrites_its_operand = op.sources[0] == op.destinations[0] || op.sources[1] == op.destinations[0];
        if (modifiers.find(".sat") != std::string::npos || overwrites_its_operand) return;
        products_[op.destinations[0].index] = {op, modifiers};
    }

    /// A product ends where it or one of its operands is written anew.
    void forget(const Value& written) {
        std::erase_if(products_, [&](const auto& item) {
            const IrOp& op = item.second.op;
            return item.first == written.index || op.sources[0] == written || op.sources[1] == written;
        });
    }

    const Product* product_of(const Value& value, const std::string& modifiers) const {
        if (!value.is_register()) return nullptr;
        const auto it = products_.find(value.index);
        return it != products_.end() && it->second.modifiers == modifiers ? &it->second : nullptr;
    }

    void try_fuse(IrOp& op, std::vector<IrOp>& ops) {
        std::string modifiers = after_opcode(*op.row);
        const exec::Row* fma = table_.find("fma.rn" + modifiers);
        if (const std::size_t sat = modifiers.find(".sat"); sat != std::string::npos) modifiers.erase(sat, 4);
        int candidates[2];
        int count = 0;
        for (int side = 0; side < 2; ++side) {
            if (product_of(op.sources[side], modifiers)) candidates[count++] = side;
        }
        if (count == 0 || !fma) return;
        ir_.fusion_choices.push_back(static_cast<std::uint8_t>(count));
        const std::uint64_t choice = choose_fusion(random_, ir_.fusion_choices.back());
        if (choice == 0) return;
        const int side = candidates[choice - 1];
        const Product& product = *product_of(op.sources[side], modifiers);
        Value a = product.op.sources[0], b = product.op.sources[1], c = op.sources[1 - side];
        if ((op.row->flags & exec::kDifference) != 0) {
            Value& negative = side == 0 ? c : a;
            negative = negate(negative, op, ops);
        }
        op.row = fma;
        op.sources = {a, b, c};
        ++ir_.fused_pairs;
    }

    Value negate(const Value& value, const IrOp& like, std::vector<IrOp>& ops) {
        IrOp op;
        const bool is_double = ir_.registers[like.destinations[0].index] == SlotClass::Double;
        op.row = table_.find(is_double ? "neg.f64" : "neg.f32");
        op.instruction = like.instruction;
        op.destinations = {ir_.new_register(is_double ? SlotClass::Double : SlotClass::Word)};
        op.sources = {value};
        ops.push_back(op);
        return op.destinations[0];
    }

    Ir& ir_;
    const exec::InstructionTable& table_;
    Random random_;
    std::unordered_map<std::uint32_t, Product> products_;
};

}  // namespace

void fuse_pairs(Ir& ir, const exec::InstructionTable& table, std::uint64_t seed) {
    if (seed != 0) Fuser(ir, table, seed).run();
}

}  // namespace gradguard::vgpu::decode
