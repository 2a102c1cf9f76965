// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/programs.h"

#include <iterator>
#include <utility>

#include "tests/conformance/check.h"
#include "tests/conformance/micro_ptx.h"

namespace gradguard::conformance {

namespace {

constexpr std::uint32_t kThreads = kProgramThreads;

/// %i: index of the thread in the grid, %lane: in its block, %blk: its block, %out: where its word goes, %r0 to %r9,
/// %rd0 to %rd9 and %p0 to %p3: free.
constexpr const char* kHead =
    ".visible .entry program(.param .u64 out)\n{\n"
    "    .reg .b32 %i, %lane, %size, %blk;\n"
    "    .reg .b32 %r<10>;\n"
    "    .reg .b64 %out, %off;\n"
    "    .reg .b64 %rd<10>;\n"
    "    .reg .pred %p<4>;\n"
    "    ld.param.u64 %out, [out];\n"
    "    mov.u32 %lane, %tid.x;\n"
    "    mov.u32 %size, %ntid.x;\n"
    "    mov.u32 %blk, %ctaid.x;\n"
    "    mad.lo.s32 %i, %blk, %size, %lane;\n"
    "    mul.wide.u32 %off, %i, 4;\n"
    "    add.s64 %out, %out, %off;\n";

/// Loops as many times as the lane's number says, lanes of a warp differently, and skips a side.
Program branches(const std::string& name) {
    const std::string body =
        "    and.b32 %r0, %i, 31;\n"
        "    mov.u32 %r1, 0;\n"
        "LOOP:\n"
        "    setp.eq.u32 %p0, %r0, 0;\n"
        "    @%p0 bra DONE;\n"
        "    add.u32 %r1, %r1, %r0;\n"
        "    sub.u32 %r0, %r0, 1;\n"
        "    " +
        name +
        " LOOP;\n"
        "DONE:\n"
        "    and.b32 %r2, %i, 1;\n"
        "    setp.ne.u32 %p1, %r2, 0;\n"
        "    @!%p1 bra EVEN;\n"
        "    add.u32 %r1, %r1, 1000;\n"
        "    " +
        name +
        " END;\n"
        "EVEN:\n"
        "    add.u32 %r1, %r1, 2000;\n"
        "END:\n"
        "    st.global.u32 [%out], %r1;\n"
        "    ret;\n";
    return program_of(name, "", body, [](std::uint32_t i) {
        const std::uint32_t n = i % 32;
        return n * (n + 1) / 2 + (n % 2 != 0 ? 1000 : 2000);
    });
}

/// Lanes (for the .uni form blocks) leave early and their second store does not happen.
Program exits(const std::string& name) {
    const bool uniform = name == "ret.uni";
    const std::string body =
        "    st.global.u32 [%out], 1;\n"
        "    and.b32 %r0, " +
        std::string(uniform ? "%blk" : "%i") +
        ", 1;\n"
        "    setp.ne.u32 %p0, %r0, 0;\n"
        "    @%p0 " +
        name +
        ";\n"
        "    st.global.u32 [%out], 2;\n"
        "    " +
        name + ";\n";
    return program_of(name, "", body,
                      [uniform](std::uint32_t i) { return (uniform ? i / kThreads : i) % 2 != 0 ? 1U : 2U; });
}

/// Values move through shared memory across all warps of the block, twice.
Program barriers(const std::string& name, const std::string& operands) {
    const std::string barrier = "    " + name + " " + operands + ";\n";
    const std::string body =
        "    mov.u64 %rd0, words;\n"
        "    mul.wide.u32 %rd1, %lane, 4;\n"
        "    add.s64 %rd1, %rd0, %rd1;\n"
        "    sub.u32 %r0, 255, %lane;\n"
        "    mul.wide.u32 %rd2, %r0, 4;\n"
        "    add.s64 %rd2, %rd0, %rd2;\n"
        "    mad.lo.u32 %r1, %i, 7, 5;\n"
        "    st.shared.u32 [%rd1], %r1;\n" +
        barrier + "    ld.shared.u32 %r2, [%rd2];\n" + barrier +
        "    add.u32 %r2, %r2, 1;\n"
        "    st.shared.u32 [%rd1], %r2;\n" +
        barrier +
        "    ld.shared.u32 %r3, [%rd2];\n"
        "    st.global.u32 [%out], %r3;\n"
        "    ret;\n";
    return program_of(name, ".shared .align 4 .b8 words[1024];\n", body, [](std::uint32_t i) { return i * 7 + 6; });
}

/// Something that changes no register and no memory.
Program without_effect(const std::string& name, const std::string& operands) {
    const std::string body =
        "    mad.lo.u32 %r0, %i, 3, 1;\n"
        "    setp.lt.u32 %p0, %lane, 77;\n"
        "    st.global.u32 [%out], %r0;\n"
        "    " +
        name + operands +
        ";\n"
        "    @%p0 " +
        name + operands +
        ";\n"
        "    ld.global.u32 %r1, [%out];\n"
        "    add.u32 %r0, %r0, %r1;\n"
        "    @%p0 add.u32 %r0, %r0, 1;\n"
        "    st.global.u32 [%out], %r0;\n"
        "    ret;\n";
    return program_of(name, "", body, [](std::uint32_t i) { return (i * 3 + 1) * 2 + (i % kThreads < 77 ? 1 : 0); });
}

/// A value is written under one kind of address and read under the other.
Program address_conversion(const std::string& name, const std::string& space, bool to_generic) {
    std::string body;
    std::string module_text;
    if (space == "global") {
        body = "    mov.b64 %rd0, %out;\n";
    } else if (space == "shared") {
        module_text = ".shared .align 4 .b8 words[1024];\n";
        body =
            "    mov.u64 %rd0, words;\n"
            "    mul.wide.u32 %rd1, %lane, 4;\n"
            "    add.s64 %rd0, %rd0, %rd1;\n";
    } else if (space == "local") {
        body =
            "    .local .align 4 .b8 own[4];\n"
            "    mov.u64 %rd0, own;\n";
    } else {
        module_text = ".const .align 4 .u32 words[4] = {11, 22, 33, 44};\n";
        body =
            "    mov.u64 %rd0, words;\n"
            "    and.b32 %r0, %i, 3;\n"
            "    mul.wide.u32 %rd1, %r0, 4;\n"
            "    add.s64 %rd0, %rd0, %rd1;\n";
    }
    const bool is_const = space == "const";
    if (!is_const) body += "    mad.lo.u32 %r1, %i, 9, 2;\n    st." + space + ".u32 [%rd0], %r1;\n";
    body += to_generic ? "    " + name + " %rd2, %rd0;\n    ld.u32 %r2, [%rd2];\n"
                       : "    cvta." + space + ".u64 %rd2, %rd0;\n    " + name + " %rd3, %rd2;\n    ld." + space +
                             ".u32 %r2, [%rd3];\n";
    body += "    add.u32 %r2, %r2, 1;\n    st.global.u32 [%out], %r2;\n    ret;\n";
    return program_of(name, module_text, body,
                      [is_const](std::uint32_t i) { return is_const ? (i % 4 + 1) * 11 + 1 : i * 9 + 3; });
}

struct SpecialRegister {
    const char* name;
    std::uint32_t (*value)(vgpu::Dim3 thread, vgpu::Dim3 block, std::uint32_t linear);
};

constexpr vgpu::Dim3 kGridOfSpecial{3, 2, 2};
constexpr vgpu::Dim3 kBlockOfSpecial{5, 4, 3};

constexpr SpecialRegister kSpecialRegisters[] = {
    {"%tid.x", [](vgpu::Dim3 t, vgpu::Dim3, std::uint32_t) { return t.x; }},
    {"%tid.y", [](vgpu::Dim3 t, vgpu::Dim3, std::uint32_t) { return t.y; }},
    {"%tid.z", [](vgpu::Dim3 t, vgpu::Dim3, std::uint32_t) { return t.z; }},
    {"%ntid.x", [](vgpu::Dim3, vgpu::Dim3, std::uint32_t) { return kBlockOfSpecial.x; }},
    {"%ntid.y", [](vgpu::Dim3, vgpu::Dim3, std::uint32_t) { return kBlockOfSpecial.y; }},
    {"%ntid.z", [](vgpu::Dim3, vgpu::Dim3, std::uint32_t) { return kBlockOfSpecial.z; }},
    {"%ctaid.x", [](vgpu::Dim3, vgpu::Dim3 b, std::uint32_t) { return b.x; }},
    {"%ctaid.y", [](vgpu::Dim3, vgpu::Dim3 b, std::uint32_t) { return b.y; }},
    {"%ctaid.z", [](vgpu::Dim3, vgpu::Dim3 b, std::uint32_t) { return b.z; }},
    {"%nctaid.x", [](vgpu::Dim3, vgpu::Dim3, std::uint32_t) { return kGridOfSpecial.x; }},
    {"%nctaid.y", [](vgpu::Dim3, vgpu::Dim3, std::uint32_t) { return kGridOfSpecial.y; }},
    {"%nctaid.z", [](vgpu::Dim3, vgpu::Dim3, std::uint32_t) { return kGridOfSpecial.z; }},
    {"%laneid", [](vgpu::Dim3, vgpu::Dim3, std::uint32_t i) { return i % 32; }},
    {"%lanemask_eq", [](vgpu::Dim3, vgpu::Dim3, std::uint32_t i) { return 1U << (i % 32); }},
    {"%lanemask_lt", [](vgpu::Dim3, vgpu::Dim3, std::uint32_t i) { return (1U << (i % 32)) - 1; }},
    {"%lanemask_le", [](vgpu::Dim3, vgpu::Dim3, std::uint32_t i) { return (2U << (i % 32)) - 1; }},
    {"%lanemask_gt", [](vgpu::Dim3, vgpu::Dim3, std::uint32_t i) { return ~((2U << (i % 32)) - 1); }},
    {"%lanemask_ge", [](vgpu::Dim3, vgpu::Dim3, std::uint32_t i) { return ~((1U << (i % 32)) - 1); }},
};

/// A generic address of each window, asked about by every thread: bit 0 global, 1 shared, 2 local, 3 constant, 4 the
/// kernel's parameters, which are in the global window too.
Program address_question(const std::string& name, std::uint32_t want) {
    std::string body =
        "    .local .align 4 .b8 own[4];\n"
        "    mov.u64 %rd1, words;\n    cvta.shared.u64 %rd1, %rd1;\n"
        "    mov.u64 %rd2, own;\n    cvta.local.u64 %rd2, %rd2;\n"
        "    mov.u64 %rd3, fixed;\n    cvta.const.u64 %rd3, %rd3;\n"
        "    mov.b64 %rd4, out;\n    cvta.param.u64 %rd4, %rd4;\n"
        "    mov.u32 %r0, 0;\n";
    const char* const addresses[] = {"%out", "%rd1", "%rd2", "%rd3", "%rd4"};
    for (std::uint32_t k = 0; k < 5; ++k) {
        body += "    " + name + " %p0, " + addresses[k] + ";\n";
        body += "    @%p0 or.b32 %r0, %r0, " + std::to_string(1U << k) + ";\n";
    }
    body += "    st.global.u32 [%out], %r0;\n    ret;\n";
    return program_of(name, ".shared .align 4 .b8 words[4];\n.const .align 4 .u32 fixed = 5;\n", body,
                      [want](std::uint32_t) { return want; });
}

/// Every special register of every thread of a three-dimensional launch; thread x is fastest, then y, then z.
Program special_registers(const std::string& name) {
    const std::string move = name.substr(0, name.find(':'));
    constexpr auto kWords = static_cast<std::uint32_t>(std::size(kSpecialRegisters));
    const std::string threads = std::to_string(kBlockOfSpecial.count());
    std::string body =
        "    ld.param.u64 %out, [out];\n"
        "    mov.u32 %r0, %tid.y;\n    mov.u32 %r1, %tid.z;\n    mov.u32 %r2, %ctaid.y;\n    mov.u32 %r3, %ctaid.z;\n"
        "    mad.lo.u32 %r1, %r1, 4, %r0;\n    mad.lo.u32 %r1, %r1, 5, %lane;\n"
        "    mad.lo.u32 %r3, %r3, 2, %r2;\n    mad.lo.u32 %r3, %r3, 3, %blk;\n"
        "    mad.lo.u32 %r1, %r3, " +
        threads +
        ", %r1;\n"
        "    mul.wide.u32 %off, %r1, " +
        std::to_string(4 * kWords) +
        ";\n"
        "    add.s64 %out, %out, %off;\n";
    for (std::uint32_t k = 0; k < kWords; ++k) {
        body += "    " + move + " %r4, " + kSpecialRegisters[k].name + ";\n";
        body += "    st.global.u32 [%out+" + std::to_string(4 * k) + "], %r4;\n";
    }
    Program result;
    result.ptx = "// Special registers\n" + module_head("mov.u32") + kHead + body + "    ret;\n}\n";
    result.config = {kGridOfSpecial, kBlockOfSpecial, 0};
    for (std::uint32_t b = 0; b < kGridOfSpecial.count(); ++b) {
        for (std::uint32_t t = 0; t < kBlockOfSpecial.count(); ++t) {
            const vgpu::Dim3 block{b % 3, b / 3 % 2, b / 6};
            const vgpu::Dim3 thread{t % 5, t / 5 % 4, t / 20};
            for (const SpecialRegister& special : kSpecialRegisters)
                result.want.push_back(special.value(thread, block, t));
        }
    }
    return result;
}

}  // namespace

Program program_of(const std::string& name, const std::string& module_text, const std::string& body,
                   const std::function<std::uint32_t(std::uint32_t)>& want) {
    Program result;
    result.ptx = "// " + name + "\n" + module_head(name) + module_text + kHead + body + "}\n";
    result.config = {{kProgramBlocks, 1, 1}, {kProgramThreads, 1, 1}, 0};
    for (std::uint32_t i = 0; i < kProgramBlocks * kProgramThreads; ++i) result.want.push_back(want(i));
    return result;
}

std::optional<Program> program_for(std::string_view instruction) {
    const std::string name(instruction);
    if (name == "bra" || name == "bra.uni") return branches(name);
    if (name == "ret" || name == "ret.uni" || name == "exit") return exits(name);
    for (const char* barrier : {"bar.sync", "bar.cta.sync", "barrier.sync", "barrier.cta.sync", "barrier.sync.aligned",
                                "barrier.cta.sync.aligned"}) {
        if (name == barrier) return barriers(name, "0");
        if (name == std::string(barrier) + ":count") return barriers(barrier, "3, 256");
    }
    if (name.starts_with("fence.") || name.starts_with("membar.")) return without_effect(name, "");
    if (name.starts_with("griddepcontrol.")) return without_effect(name, "");
    if (name.starts_with("pmevent")) return without_effect(name, " 5");
    if (name == "isspacep.global") return address_question(name, 17);
    if (name.starts_with("isspacep.shared")) return address_question(name, 2);
    if (name == "isspacep.local") return address_question(name, 4);
    if (name == "isspacep.const") return address_question(name, 8);
    if (name.starts_with("isspacep.param")) return address_question(name, 16);
    if (name == "cvta.shared::cta.u64") return address_conversion(name, "shared", true);
    if (name == "cvta.to.shared::cta.u64") return address_conversion(name, "shared", false);
    if (name == "nanosleep.u32") return without_effect(name, " 20");
    for (const char* space : {"global", "shared", "local", "const"}) {
        if (name == std::string("cvta.") + space + ".u64") return address_conversion(name, space, true);
        if (name == std::string("cvta.to.") + space + ".u64") return address_conversion(name, space, false);
    }
    if (name == "mov.u32:special" || name == "mov.b32:special") return special_registers(name);
    if (name.starts_with("mma.")) return matrix_program_for(name);
    return rare_program_for(name);
}

std::optional<InstructionModel> effect_model(std::string_view name) {
    if (!program_for(name)) return std::nullopt;
    InstructionModel model;
    model.shape = Shape::Effect;
    return model;
}

CheckResult check_program(const InstructionModel& model, const CheckOptions& options) {
    CheckResult result;
    const Program program = *program_for(model.name);
    const auto module = vgpu::Module::load(program.ptx, model.name + ".ptx");
    for (const vgpu::VectorLevel level : vgpu::supported_vector_levels()) {
        for (const std::uint64_t schedule : {std::uint64_t{0}, options.seed, options.seed + 1, options.seed + 2}) {
            vgpu::MachineOptions machine_options;
            machine_options.vector_level = level;
            machine_options.seed = schedule;
            vgpu::Machine machine(machine_options);
            std::vector<std::uint32_t> out(program.want.size(), 0xDEADBEEF);
            const vgpu::Address address = machine.map(out.data(), out.size() * sizeof(std::uint32_t));
            machine.launch(*module, "program", program.config, arguments({address}));
            for (std::size_t i = 0; i < out.size(); ++i) {
                ++result.compared;
                if (out[i] == program.want[i]) continue;
                ++result.failed;
                report(result, model.name + " (" + vgpu::name_of(level) + ", schedule " + std::to_string(schedule) +
                                   "): word " + std::to_string(i) + " is " + std::to_string(out[i]) + ", want " +
                                   std::to_string(program.want[i]));
            }
        }
    }
    return result;
}

}  // namespace gradguard::conformance
