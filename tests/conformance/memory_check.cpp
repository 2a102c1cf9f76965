// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "tests/conformance/check.h"
#include "tests/conformance/memory_ptx.h"

namespace gradguard::conformance {

namespace {

using Bytes = std::vector<std::uint8_t>;

Bits read_bits(const std::uint8_t* bytes, int bits) {
    Bits value = 0;
    std::memcpy(&value, bytes, static_cast<std::size_t>(bits) / 8);
    return value;
}

void write_bits(std::uint8_t* bytes, int bits, Bits value) {
    std::memcpy(bytes, &value, static_cast<std::size_t>(bits) / 8);
}

class MemoryFormCheck {
  public:
    MemoryFormCheck(const InstructionModel& model, const MemoryForm& form, std::size_t count, std::uint64_t seed)
        : model_(model), form_(form), count_(count), in_(count * kRecordBytes) {
        Random random(seed);
        for (std::size_t at = 0; at < in_.size(); at += 8) write_bits(&in_[at], 64, random.bits());
        std::vector<OperandKind> kinds;
        for (const SourceOperand& source : model.sources) kinds.push_back(source.kind);
        OperandGenerator generator(kinds, model.relation, seed);
        std::vector<Bits> tuple(kinds.size());
        for (std::size_t i = 0; i < count; ++i) {
            write_bits(&in_[i * kRecordBytes + kGuardAt], 32, random.bits() & 1);
            if (model.shape != Shape::Atomic) continue;
            generator.next(tuple);
            write_bits(&in_[accessed(i)], type().bits, tuple[0]);
            for (std::size_t k = 1; k < tuple.size(); ++k) write_bits(cell(in_, i, k - 1), type().bits, tuple[k]);
        }
        expect();
    }

    void run(vgpu::Machine& machine, const vgpu::Module& module, std::string_view level, CheckResult& result) {
        Bytes in = in_;
        Bytes out(in_.size(), 0xA7);
        const vgpu::Address in_address = machine.map(in.data(), in.size());
        const vgpu::Address out_address = machine.map(out.data(), out.size());
        if (model_.space == "const") machine.write(machine.variable(module, "constants"), in_.data(), kAreaBytes);
        std::vector<std::byte> block = arguments({in_address, out_address});
        if (model_.space == "param") {
            const auto* area = reinterpret_cast<const std::byte*>(in_.data());
            block.insert(block.end(), area, area + kAreaBytes);
        }
        const auto blocks = static_cast<std::uint32_t>(count_ / kMemoryBlock);
        machine.launch(module, form_.entry, {{blocks, 1, 1}, {kMemoryBlock, 1, 1}, 0}, block);
        machine.free(in_address);
        machine.free(out_address);
        compare(in, out, level, result);
    }

  private:
    const PtxType& type() const { return model_.results[0].type; }
    int register_bits() const { return memory_register_bits(model_, form_); }
    static std::uint8_t* cell(Bytes& bytes, std::size_t i, std::size_t k) {
        return &bytes[i * kRecordBytes + kCellsAt + 8 * k];
    }
    static const std::uint8_t* cell(const Bytes& bytes, std::size_t i, std::size_t k) {
        return &bytes[i * kRecordBytes + kCellsAt + 8 * k];
    }
    std::size_t accessed(std::size_t i) const {
        const std::size_t record = is_uniform(model_) ? 0 : i;
        return record * kRecordBytes + static_cast<std::size_t>(static_cast<int>(kAreaBase) + form_.offset);
    }
    bool executes(std::size_t i) const {
        return !form_.guarded || read_bits(&in_[i * kRecordBytes + kGuardAt], 32) != 0;
    }
    std::size_t result_registers() const {
        if (model_.shape == Shape::Load) return static_cast<std::size_t>(model_.vector_elements);
        return 0;
    }

    /// want_: the records as they should be afterwards; the cells hold the registers.
    void expect() {
        want_ = in_;
        const int bytes = type().bits / 8;
        for (std::size_t i = 0; i < count_; ++i) {
            if (!executes(i)) continue;
            if (model_.shape == Shape::Atomic) {
                Bits operands[3] = {read_bits(&in_[accessed(i)], type().bits), read_bits(cell(in_, i, 0), type().bits),
                                    read_bits(cell(in_, i, 1), type().bits)};
                Bits results[2] = {};
                model_.lane(operands, results);
                write_bits(&want_[accessed(i)], type().bits, results[0]);
                write_bits(cell(want_, i, 3), type().bits, results[1]);
                continue;
            }
            for (int element = 0; element < model_.vector_elements; ++element) {
                const std::size_t at = accessed(i) + static_cast<std::size_t>(element * bytes);
                const auto k = static_cast<std::size_t>(element);
                if (model_.shape == Shape::Store) {
                    std::memcpy(&want_[at], cell(in_, i, k), static_cast<std::size_t>(bytes));
                } else {
                    const Bits loaded = read_bits(&in_[at], type().bits);
                    const Bits extended = pattern_of({register_bits(), false}, value_of(type().int_format(), loaded));
                    write_bits(cell(want_, i, k), register_bits(), extended);
                }
            }
        }
    }

    void compare(const Bytes& in, const Bytes& out, std::string_view level, CheckResult& result) const {
        const Bytes& areas = is_in_place(model_, form_) || is_uniform(model_) ? in : out;
        for (std::size_t i = 0; i < count_; ++i) {
            const std::size_t record = i * kRecordBytes;
            for (std::size_t at = record; at < record + kAreaBytes; ++at) {
                const bool accesses = at >= accessed(i) && at < accessed(i) + static_cast<std::size_t>(type().bits) / 8;
                if (model_.shape == Shape::Atomic && accesses) continue;
                check(i, "byte " + std::to_string(at - record) + " of the area", areas[at], want_[at], level, result);
            }
            if (model_.shape == Shape::Atomic) {
                const Bits got = read_bits(&areas[accessed(i)], type().bits);
                const Bits want = read_bits(&want_[accessed(i)], type().bits);
                check(i, "memory", matches(model_.results[0], got, want) ? want : got, want, level, result);
                if (model_.results.size() == 2) compare_register(i, 3, out, level, result);
            }
            for (std::size_t k = 0; k < result_registers(); ++k) compare_register(i, k, out, level, result);
        }
    }
    void compare_register(std::size_t i, std::size_t k, const Bytes& out, std::string_view level,
                          CheckResult& result) const {
        check(i, "register " + std::to_string(k), read_bits(cell(out, i, k), register_bits()),
              read_bits(cell(want_, i, k), register_bits()), level, result);
    }
    void check(std::size_t i, const std::string& what, Bits got, Bits want, std::string_view level,
               CheckResult& result) const {
        ++result.compared;
        if (got == want) return;
        ++result.failed;
        report(result, model_.name + " (" + form_.entry + ", " + std::string(level) + ", thread " + std::to_string(i) +
                           "): " + what + " is " + std::to_string(got) + ", want " + std::to_string(want) +
                           (executes(i) ? "" : " (guarded off)"));
    }

    const InstructionModel& model_;
    const MemoryForm& form_;
    std::size_t count_;
    Bytes in_;
    Bytes want_;
};

}  // namespace

CheckResult check_memory(const InstructionModel& model, const CheckOptions& options) {
    CheckResult result;
    const std::vector<MemoryForm> forms = memory_forms_of(model);
    const auto module = vgpu::Module::load(memory_ptx(model, forms), model.name + ".ptx");
    // Loads and stores move bits whatever they are: a few blocks show it. Atomics compute.
    const std::size_t wanted =
        model.shape == Shape::Atomic ? options.tuples : std::min<std::size_t>(options.tuples, 1024);
    const std::size_t count = (wanted + kMemoryBlock - 1) / kMemoryBlock * kMemoryBlock;
    for (const MemoryForm& form : forms) {
        MemoryFormCheck form_check(model, form, count, options.seed);
        for (const vgpu::VectorLevel level : vgpu::supported_vector_levels()) {
            vgpu::MachineOptions machine_options;
            machine_options.vector_level = level;
            vgpu::Machine machine(machine_options);
            form_check.run(machine, *module, vgpu::name_of(level), result);
        }
    }
    return result;
}

}  // namespace gradguard::conformance
