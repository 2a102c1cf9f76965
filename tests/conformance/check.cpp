// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/check.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "tests/conformance/micro_file.h"

namespace gradguard::conformance {

namespace {

constexpr std::size_t kBlock = 256;
constexpr std::size_t kTuplesOfOtherForms = 2048;
/// Per form of an operand that must be a literal.
constexpr std::size_t kTuplesPerLiteral = kBlock;
constexpr Bits kPoison = 0xD5A55A5DC3B4E1F7ULL;

std::size_t whole_blocks(std::size_t tuples) { return (tuples + kBlock - 1) / kBlock * kBlock; }

std::string hex(Bits bits, int size) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text = "0x";
    for (int digit = std::max(1, (size + 3) / 4) - 1; digit >= 0; --digit) text += kDigits[(bits >> (4 * digit)) & 15];
    return text;
}

/// Source values of all tuples, by operand: values[k][i].
struct Tuples {
    std::vector<std::vector<Bits>> values;
    std::vector<std::string> missing_classes;
};

bool is_exhaustive(const InstructionModel& model) {
    if (model.shape != Shape::Lane || model.sources.size() != 1) return false;
    const OperandKind& kind = model.sources[0].kind;
    const int bits = kind.kind == OperandKind::Kind::Float ? total_bits(kind.float_format) : kind.int_format.bits;
    return bits <= 16 && kind.kind != OperandKind::Kind::Predicate;
}

Tuples make_tuples(const InstructionModel& model, std::size_t count, std::uint64_t seed) {
    std::vector<OperandKind> kinds;
    for (const SourceOperand& source : model.sources) kinds.push_back(source.kind);
    Tuples tuples;
    tuples.values.assign(kinds.size(), std::vector<Bits>(count));
    if (is_exhaustive(model)) {
        for (std::size_t i = 0; i < count; ++i)
            tuples.values[0][i] =
                i & ones(model.sources[0].kind.kind == OperandKind::Kind::Float ? 16 : kinds[0].int_format.bits);
        return tuples;
    }
    OperandGenerator generator(kinds, model.relation, seed, model.narrow);
    std::vector<Bits> tuple(kinds.size());
    for (std::size_t i = 0; i < count; ++i) {
        generator.next(tuple);
        for (std::size_t k = 0; k < kinds.size(); ++k) tuples.values[k][i] = tuple[k];
    }
    tuples.missing_classes = generator.coverage().missing(kinds);
    return tuples;
}

/// Warp-wide comparisons need lanes that agree: a few distinct values in most warps, all the same in some.
void make_lanes_agree(Tuples& tuples, Random& random) {
    for (auto& operand : tuples.values) {
        for (std::size_t warp = 0; warp + kLanes <= operand.size(); warp += kLanes) {
            const int distinct = random.chance(3) ? 0 : random.between(1, 4);
            for (std::size_t lane = 0; lane < kLanes && distinct != 0; ++lane) {
                operand[warp + lane] = operand[warp + static_cast<std::size_t>(random.below(distinct))];
            }
        }
    }
}

/// Extends a narrow result to its register, by the type's sign.
Bits in_register(const ResultOperand& result, int register_bits, Bits bits) {
    if (register_bits <= result.type.bits || !result.type.is_integer()) return bits;
    return pattern_of({register_bits, false}, value_of(result.type.int_format(), bits));
}

/// One form of one instruction: what goes in, what came out, what should have.
class FormCheck {
  public:
    FormCheck(const InstructionModel& model, const Form& form, const Tuples& tuples, std::size_t count, Random& random)
        : model_(model), form_(form), count_(count) {
        cells_.assign(input_cells(model) * count, 0);
        for (std::size_t k = 0; k < model.sources.size(); ++k) fill_source(k, tuples, random);
        for (std::size_t i = 0; i < count; ++i) cell(guard_cell(model), i) = random.bits() & 1;
        if (form.partial_warp) fill_masks(random);
        for (std::size_t k = 0; k < model.results.size(); ++k) {
            const bool is_predicate = model.results[k].register_bits == 1;
            for (std::size_t i = 0; i < count; ++i)
                cell(old_cell(model, k), i) = is_predicate ? random.bits() & 1 : random.bits();
        }
        expect();
    }

    void run(vgpu::Machine& machine, const vgpu::Module& module) {
        out_.assign(model_.results.size() * count_, kPoison);
        const vgpu::Address in = machine.map(cells_.data(), cells_.size() * sizeof(Bits));
        const vgpu::Address out = machine.map(out_.data(), out_.size() * sizeof(Bits));
        const auto blocks = static_cast<std::uint32_t>(count_ / kBlock);
        machine.launch(module, form_.entry, {{blocks, 1, 1}, {kBlock, 1, 1}, 0},
                       arguments({in, out, count_ * sizeof(Bits)}));
        machine.free(in);
        machine.free(out);
    }

    void run(MicroTarget& target) {
        out_.assign(model_.results.size() * count_, kPoison);
        target.run(form_.entry, static_cast<std::uint32_t>(count_ / kBlock), cells_, out_);
    }

    void compare(CheckResult& result, const std::string& level) {
        for (std::size_t i = 0; i < count_; ++i) {
            if (is_open_[i]) {
                ++result.open;
                continue;
            }
            for (std::size_t k = 0; k < result_count(); ++k) {
                const int bits = result_register_bits(model_, form_, k);
                const Bits got = out_[k * count_ + i] & ones(bits == 1 ? 32 : bits);
                const Bits want = want_[k * count_ + i];
                ++result.compared;
                const bool same = !executes_[i]   ? got == want
                                  : model_.within ? model_.within(operands_at(i).data(), got)
                                                  : matches(model_.results[k], got, want);
                if (same) continue;
                ++result.failed;
                report(result, describe(i, k, got, want, level));
            }
        }
    }

  private:
    Bits& cell(std::size_t k, std::size_t i) { return cells_[k * count_ + i]; }
    std::size_t result_count() const { return form_.without_second_result ? 1 : model_.results.size(); }
    int source_bits(std::size_t k) const {
        const OperandKind& kind = model_.sources[k].kind;
        using Kind = OperandKind::Kind;
        if (kind.kind == Kind::Predicate) return 1;
        if (kind.kind == Kind::Integer) return kind.int_format.bits;
        return kind.kind == Kind::Float ? total_bits(kind.float_format) : 32;
    }

    /// The operand in the low bits, others' rubbish above it.
    void fill_source(std::size_t k, const Tuples& tuples, Random& random) {
        const int bits = source_bits(k);
        const bool is_literal = k < form_.literals.size() && form_.literals[k];
        for (std::size_t i = 0; i < count_; ++i) {
            const Bits value = is_literal ? *form_.literals[k] : tuples.values[k][i % tuples.values[k].size()];
            const bool has_rubbish = bits != 1 && !model_.sources[k].kind.is_exact;
            cell(k, i) = (value & ones(bits)) | (has_rubbish ? random.bits() & ~ones(bits) : 0);
        }
    }
    void fill_masks(Random& random) {
        for (std::size_t warp = 0; warp < count_; warp += kLanes) {
            Bits mask = random.bits() & random.bits() & ones(32);
            if (random.chance(2)) mask = ~mask & ones(32);
            if (random.chance(4)) mask = Bits{1} << random.below(32);
            for (std::size_t lane = 0; lane < kLanes; ++lane) cell(guard_cell(model_), warp + lane) = mask;
        }
    }
    Bits operand(std::size_t k, std::size_t i) {
        const Bits value = cell(k, i) & ones(source_bits(k));
        return form_.negated_source && k + 1 == model_.sources.size() ? value ^ 1 : value;
    }
    std::vector<Bits> operands_at(std::size_t i) {
        std::vector<Bits> tuple(model_.sources.size());
        for (std::size_t k = 0; k < tuple.size(); ++k) tuple[k] = operand(k, i);
        return tuple;
    }
    bool executes(std::size_t i) {
        const Bits guard = cell(guard_cell(model_), i);
        if (form_.partial_warp) return ((guard >> (i % kLanes)) & 1) != 0;
        return form_.guard == Form::Guard::None || (guard != 0) == (form_.guard == Form::Guard::If);
    }
    Bits old_value(std::size_t k, std::size_t i) {
        const std::size_t source =
            k == 0 && form_.alias >= 0 ? static_cast<std::size_t>(form_.alias) : old_cell(model_, k);
        return cell(source, i) & ones(result_register_bits(model_, form_, k));
    }

    void expect() {
        want_.assign(model_.results.size() * count_, 0);
        executes_.assign(count_, false);
        is_open_.assign(count_, false);
        std::vector<Lanes> lanes(model_.sources.size());
        std::vector<Bits> tuple(model_.sources.size());
        Bits results[4] = {};
        for (std::size_t i = 0; i < count_; ++i) {
            executes_[i] = executes(i);
            const int lane = static_cast<int>(i % kLanes);
            for (std::size_t k = 0; k < model_.sources.size(); ++k) {
                tuple[k] = operand(k, i);
                for (std::size_t other = 0; lane == 0 && model_.warp && other < kLanes; ++other)
                    lanes[k][other] = operand(k, i + other);
            }
            if (executes_[i]) {
                const auto mask =
                    static_cast<std::uint32_t>(form_.partial_warp ? cell(guard_cell(model_), i) : ones(32));
                const bool fixed =
                    model_.warp ? model_.warp(lanes, mask, lane, results) : model_.lane(tuple.data(), results);
                is_open_[i] = !fixed;
            }
            for (std::size_t k = 0; k < result_count(); ++k) {
                const int bits = result_register_bits(model_, form_, k);
                want_[k * count_ + i] =
                    executes_[i] ? in_register(model_.results[k], bits, results[k]) : old_value(k, i);
            }
        }
    }

    std::string describe(std::size_t i, std::size_t k, Bits got, Bits want, const std::string& level) const {
        std::string line = model_.name + " (" + form_.entry + ", " + level + ", thread " + std::to_string(i) + "): ";
        for (std::size_t s = 0; s < model_.sources.size(); ++s) {
            line += (s == 0 ? "" : ", ") + hex(cells_[s * count_ + i] & ones(source_bits(s)), source_bits(s));
        }
        const int bits = result_register_bits(model_, form_, k);
        line += " -> got " + hex(got, bits) + ", want " + hex(want, bits);
        if (model_.results.size() > 1) line += " (result " + std::to_string(k) + ")";
        return executes_[i] ? line : line + " (guarded off)";
    }

    const InstructionModel& model_;
    const Form& form_;
    std::size_t count_;
    std::vector<Bits> cells_;
    std::vector<Bits> out_;
    std::vector<Bits> want_;
    std::vector<bool> executes_;
    std::vector<bool> is_open_;
};

}  // namespace

std::string CheckResult::text() const {
    std::string text = std::to_string(failed) + " of " + std::to_string(compared) + " results differ";
    for (const std::string& line : failures) text += "\n  " + line;
    if (failed > failures.size()) text += "\n  ... and " + std::to_string(failed - failures.size()) + " more";
    return text;
}

void report(CheckResult& result, const std::string& line) {
    if (result.failures.size() < kMaxFailureLines) result.failures.push_back(line);
}

std::vector<std::byte> arguments(std::initializer_list<std::uint64_t> values) {
    std::vector<std::byte> bytes(values.size() * sizeof(std::uint64_t));
    std::memcpy(bytes.data(), values.begin(), bytes.size());
    return bytes;
}

namespace {

/// Makes operands for each form and lets `run` run and compare it.
void check_forms(const InstructionModel& model, const CheckOptions& options, const std::vector<Form>& forms,
                 CheckResult& result, const std::function<void(FormCheck&)>& run) {
    const std::size_t count =
        whole_blocks(is_exhaustive(model) ? std::max<std::size_t>(options.tuples, 65536) : options.tuples);
    Tuples tuples = make_tuples(model, count, options.seed);
    for (const std::string& missing : tuples.missing_classes) {
        ++result.failed;
        report(result, "no tuple had " + missing);
    }
    Random random(options.seed ^ 0xFEED);
    if (model.shape == Shape::Warp) make_lanes_agree(tuples, random);
    const bool many_literals = std::any_of(model.sources.begin(), model.sources.end(),
                                           [](const SourceOperand& source) { return !source.literals.empty(); });
    for (std::size_t f = 0; f < forms.size(); ++f) {
        std::size_t of_form =
            f == 0 || model.shape == Shape::Warp ? count : std::min(count, whole_blocks(kTuplesOfOtherForms));
        if (many_literals) of_form = f == 0 ? of_form : kTuplesPerLiteral;
        FormCheck form_check(model, forms[f], tuples, of_form, random);
        run(form_check);
    }
}

}  // namespace

CheckResult check_registers(const InstructionModel& model, const CheckOptions& options) {
    CheckResult result;
    const std::vector<Form> forms = forms_of(model);
    const auto module = vgpu::Module::load(micro_ptx(model, forms), model.name + ".ptx", true);
    check_forms(model, options, forms, result, [&](FormCheck& form_check) {
        for (const vgpu::VectorLevel level : vgpu::supported_vector_levels()) {
            vgpu::MachineOptions machine_options;
            machine_options.vector_level = level;
            machine_options.flush_subnormals = options.flush_subnormals;
            machine_options.allow_approximate = true;
            machine_options.seed = model.results[0].ulps > 0 || model.within ? options.seed | 1 : 0;
            vgpu::Machine machine(machine_options);
            form_check.run(machine, *module);
            form_check.compare(result, vgpu::name_of(level));
        }
    });
    return result;
}

CheckResult check_registers_on(MicroTarget& target, const InstructionModel& model, const CheckOptions& options) {
    CheckResult result;
    const std::vector<Form> forms = for_replay(forms_of(model));
    target.load(model.name, micro_ptx(model, forms));
    check_forms(model, options, forms, result, [&](FormCheck& form_check) {
        form_check.run(target);
        form_check.compare(result, "device");
    });
    return result;
}

CheckResult check(const InstructionModel& model, const CheckOptions& options) {
    switch (model.shape) {
        case Shape::Lane:
        case Shape::Warp:
            return check_registers(model, options);
        case Shape::Load:
        case Shape::Store:
        case Shape::Atomic:
            return check_memory(model, options);
        case Shape::Effect:
            break;
    }
    return check_program(model, options);
}

}  // namespace gradguard::conformance
