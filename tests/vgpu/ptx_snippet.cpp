// SPDX-License-Identifier: Apache-2.0
#include "tests/vgpu/ptx_snippet.h"

#include <gtest/gtest.h>

namespace gradguard::vgpu::test {
namespace {

constexpr const char* kPrologue = R"(
    .reg .pred %out, %a_p, %b_p, %c_p, %d_p;
    .reg .b16 %a_h, %b_h, %c_h, %d_h;
    .reg .b32 %a_r, %b_r, %c_r, %d_r, %i, %t<9>;
    .reg .f32 %a_f, %b_f, %c_f, %d_f;
    .reg .b64 %a_d, %b_d, %c_d, %d_d, %in, %to, %w<9>;
    .reg .f64 %a_g, %b_g, %c_g, %d_g;
    mov.u32 %t1, %ctaid.x;
    mov.u32 %t2, %ntid.x;
    mov.u32 %t3, %tid.x;
    mad.lo.u32 %i, %t1, %t2, %t3;
    ld.param.u32 %t4, [count];
    setp.ge.u32 %out, %i, %t4;
    @%out bra $end;
    ld.param.u64 %in, [operands];
    mul.wide.u32 %w1, %i, 24;
    add.u64 %in, %in, %w1;
    ld.global.u64 %a_d, [%in];
    ld.global.u64 %b_d, [%in+8];
    ld.global.u64 %c_d, [%in+16];
)";

constexpr const char* kEpilogue = R"(
    mov.b64 %w2, %d_g;
    or.b64 %w2, %w2, %d_d;
    mov.b32 %t5, %d_f;
    or.b32 %t5, %t5, %d_r;
    cvt.u32.u16 %t6, %d_h;
    or.b32 %t5, %t5, %t6;
    selp.u32 %t7, 1, 0, %d_p;
    or.b32 %t5, %t5, %t7;
    cvt.u64.u32 %w3, %t5;
    or.b64 %w2, %w2, %w3;
    ld.param.u64 %to, [results];
    mul.wide.u32 %w4, %i, 8;
    add.u64 %to, %to, %w4;
    st.global.u64 [%to], %w2;
$end:
    ret;
)";

std::string views_of(const std::string& name) {
    return "    cvt.u32.u64 %" + name + "_r, %" + name + "_d;\n    mov.b32 %" + name + "_f, %" + name +
           "_r;\n    mov.b64 %" + name + "_g, %" + name + "_d;\n    cvt.u16.u32 %" + name + "_h, %" + name +
           "_r;\n    setp.ne.u64 %" + name + "_p, %" + name + "_d, 0;\n";
}

std::string snippet_module(const std::string& snippet) {
    const std::string body = kPrologue + views_of("a") + views_of("b") + views_of("c") +
                             "    mov.u64 %d_d, 0;\n    cvt.u32.u64 %d_r, %d_d;\n    mov.b32 %d_f, %d_r;\n"
                             "    mov.b64 %d_g, %d_d;\n    cvt.u16.u32 %d_h, %d_r;\n    setp.ne.u64 %d_p, %d_d, 0;\n" +
                             snippet + kEpilogue;
    return ptx_module(".param .u64 operands, .param .u64 results, .param .u32 count", body);
}

std::vector<std::uint64_t> evaluate_on(const Module& module, const std::vector<Operands>& inputs, std::uint32_t threads,
                                       const MachineOptions& options) {
    Machine machine(options);
    const auto count = static_cast<std::uint32_t>(inputs.size());
    const Address operands = upload(machine, inputs);
    const Address results = machine.allocate(8 * std::uint64_t{count});
    const Arguments arguments(operands, results, count);
    machine.launch(module, "k", {{(count + threads - 1) / threads}, {threads}}, arguments.bytes());
    return download<std::uint64_t>(machine, results, count);
}

}  // namespace

std::string ptx_module(const std::string& params, const std::string& body, const std::string& globals) {
    return ".version 9.0\n.target sm_80\n.address_size 64\n" + globals + "\n.visible .entry k(" + params + ")\n{\n" +
           body + "\n}\n";
}

std::vector<std::uint64_t> evaluate(const std::string& snippet, const std::vector<Operands>& inputs,
                                    const MachineOptions& options) {
    const auto module = Module::load(snippet_module(snippet), "snippet.ptx");
    std::vector<std::uint64_t> first;
    for (const VectorLevel level : supported_vector_levels()) {
        MachineOptions with_level = options;
        with_level.vector_level = level;
        for (const std::uint32_t threads : {64U, 31U}) {
            const auto results = evaluate_on(*module, inputs, threads, with_level);
            if (first.empty()) first = results;
            EXPECT_EQ(results, first) << snippet << " on " << name_of(level) << " with " << threads << " threads";
        }
    }
    return first;
}

std::uint64_t evaluate_one(const std::string& snippet, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    return evaluate(snippet, std::vector<Operands>(33, Operands{a, b, c}))[32];
}

std::uint32_t evaluate_f32(const std::string& snippet, float a, float b, float c, const MachineOptions& options) {
    const std::vector<Operands> inputs(33, Operands{bits(a), bits(b), bits(c)});
    return static_cast<std::uint32_t>(evaluate(snippet, inputs, options)[0]);
}

LaunchStats run(Machine& machine, const std::string& ptx, const LaunchConfig& config, const Arguments& arguments) {
    return machine.launch(*Module::load(ptx, "test.ptx"), "k", config, arguments.bytes());
}

Finding fault_of(Machine& machine, const std::string& ptx, const LaunchConfig& config, const Arguments& arguments) {
    try {
        run(machine, ptx, config, arguments);
    } catch (const LaunchError& error) {
        if (error.finding()) return *error.finding();
        ADD_FAILURE() << "refused without a finding: " << error.what();
        return {};
    }
    ADD_FAILURE() << "the launch ran to its end";
    return {};
}

}  // namespace gradguard::vgpu::test
