// SPDX-License-Identifier: Apache-2.0
// The kernels compiled by NVRTC give the bits of the checked-in PTX, which nvcc made: entry by entry under all
// observers, and whole steps of drawn cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "harness/campaign/relation.h"
#include "harness/generators/generators.h"
#include "harness/observers/registry.h"
#include "harness/vgpu/machine.h"
#include "kernels/device/params.h"
#include "kernels/ptx/embedded.h"
#include "tests/nvrtc/installed.h"

namespace gradguard::testing {
namespace {

using Module = std::shared_ptr<const vgpu::Module>;
using Words = std::vector<std::uint32_t>;
constexpr std::uint32_t kElements = 1000, kBlocks = 4;

/// Finite gradients and old state of all magnitudes, `count` values.
std::vector<float> values_of(std::uint32_t count, std::uint32_t salt) {
    std::vector<float> values(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t random = (i + salt) * 2654435761U;
        values[i] = std::ldexp(static_cast<float>(random % 2001U) - 1000.0F, static_cast<int>(random >> 27U) - 20);
    }
    return values;
}

template <class T>
vgpu::Address upload(vgpu::Machine& machine, const std::vector<T>& values) {
    const vgpu::Address address = machine.allocate(values.size() * sizeof(T));
    machine.write(address, values.data(), values.size() * sizeof(T));
    return address;
}

/// No kernel here writes it.
constexpr std::uint32_t kBlank = 0xFFFFFFFFU;
vgpu::Address blank(vgpu::Machine& machine, std::uint32_t words) { return upload(machine, Words(words, kBlank)); }

/// Gradients as 32-bit words whose low parts are finite F16 and BF16 values too.
vgpu::Address gradients(vgpu::Machine& machine) {
    Words words(kElements);
    for (std::uint32_t i = 0; i < kElements; ++i) words[i] = (i * 2654435761U & 0xBFFFBFFFU) | 0x04000400U;
    return upload(machine, words);
}

void download(const vgpu::Machine& machine, vgpu::Address address, std::uint32_t words, Words& into) {
    Words part(words);
    machine.read(address, part.data(), words * sizeof(std::uint32_t));
    into.insert(into.end(), part.begin(), part.end());
}

/// An update with buffers of its own.
kernels::UpdateArguments update_arguments(vgpu::Machine& machine) {
    kernels::UpdateArguments a{};
    a = {.parameters = upload(machine, values_of(kElements, 1)),
         .gradients = gradients(machine),
         .first_moment = upload(machine, values_of(kElements, 2)),
         .second_moment = upload(machine, values_of(kElements, 3)),
         .max_second_moment = upload(machine, values_of(kElements, 4)),
         .new_parameters = blank(machine, kElements),
         .new_first_moment = blank(machine, kElements),
         .new_second_moment = blank(machine, kElements),
         .new_max_second_moment = blank(machine, kElements),
         .elements = kElements,
         .reciprocal_scale = 0x1p-3F,
         .clip = 0.75F,
         .direction = 1,
         .beta1 = 0.9F,
         .one_minus_beta1 = 0.1F,
         .beta2 = 0.999F,
         .one_minus_beta2 = 0.001F,
         .inverse_bias1 = 1.5F,
         .inverse_bias2 = 3.5F,
         .epsilon = 1e-8F,
         .learning_rate = 1e-3F,
         .decay = 0.99999F,
         .reserved = 0};
    return a;
}

/// What every entry of a module leaves behind; `names` gets the entries.
Words results_of(const Module& module, std::vector<std::string>& names) {
    Words results;
    for (const vgpu::EntryInfo& entry : module->entries()) names.push_back(entry.name);
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
        vgpu::Machine machine;
        const observers::ObserverSet set(machine, "all");
        const vgpu::LaunchConfig config{{name == kernels::kMergeEntry ? 1 : kBlocks}, {256}, 0};
        const auto launch = [&](const auto& arguments) {
            machine.launch(*module, name, config, std::as_bytes(std::span(&arguments, 1)));
        };
        if (name == kernels::kMergeEntry) {
            const auto triples = upload(machine, std::vector<float>{1, 2, 0, 4, 1.5F, 0, 0, 0, 0, 0x1p-100F, 1, 0});
            const auto summary = blank(machine, 3);
            launch(kernels::MergeArguments{triples, summary, kBlocks, 0});
            download(machine, summary, 3, results);
        } else if (name.starts_with("gradient_statistics")) {
            const auto triples = blank(machine, 3 * kBlocks);
            launch(kernels::StatisticsArguments{gradients(machine), triples, kElements, 0x1p-3F});
            download(machine, triples, 3 * kBlocks, results);
        } else {
            const kernels::UpdateArguments a = update_arguments(machine);
            launch(a);
            for (const auto out : {a.new_parameters, a.new_first_moment, a.new_second_moment}) {
                download(machine, out, kElements, results);
            }
            if (name.find("amsgrad") != std::string::npos) {
                download(machine, a.new_max_second_moment, kElements, results);
            }
        }
        for (const vgpu::Finding& finding : machine.findings()) ADD_FAILURE() << finding.message();
    }
    return results;
}

Words results_of(const std::string& ptx, const std::string& name) {
    std::vector<std::string> names;
    Words results = results_of(vgpu::Module::load(ptx, name), names);
    EXPECT_GT(results.size(), kBlocks);
    EXPECT_EQ(std::count(results.begin(), results.end(), kBlank), 0) << "everything is written";
    return results;
}

class NvrtcBits : public ::testing::TestWithParam<Compilation> {};

TEST_P(NvrtcBits, AreThoseOfTheCheckedInPtx) {
    std::string why;
    const auto installed = installed_nvrtcs(why);
    if (installed.empty()) GTEST_SKIP() << "blocked: " << why;
    const Compilation& c = GetParam();
    const std::string build = c.contracted ? "fmad" : "nofmad";
    const Words want = results_of(std::string(kernels::embedded_ptx(c.module, build)), c.module + "." + build);
    for (const auto& nvrtc : installed) {
        EXPECT_TRUE(results_of(c.by(*nvrtc), c.name()) == want) << "NVRTC " << nvrtc->release().text();
    }
}

/// PTX promises no more: which products of the update are fused is the compiler's choice.
std::vector<Compilation> with_promised_bits() {
    std::vector<Compilation> all = all_compilations();
    std::erase_if(all, [](const Compilation& c) { return c.module == "update" && c.contracted; });
    return all;
}
INSTANTIATE_TEST_SUITE_P(Each, NvrtcBits, ::testing::ValuesIn(with_promised_bits()),
                         [](const auto& compilation) { return compilation.param.name(); });

struct Shape {
    const char* name;
    harness::CaseShape shape;
};

std::vector<Shape> shapes() {
    harness::CaseShape guarded, unguarded, statistics;
    guarded.max_later_steps = 3;
    unguarded.operation = harness::Operation::kUnguardedStep;
    statistics.operation = harness::Operation::kStatistics;
    return {{"guarded", guarded}, {"unguarded", unguarded}, {"statistics", statistics}};
}

TEST(NvrtcSteps, OfDrawnCasesAreBitForBitThoseOfNvccsBuildWithoutContraction) {
    std::string why;
    if (installed_nvrtcs(why).empty()) GTEST_SKIP() << "blocked: " << why;
    constexpr std::uint64_t kCases = 100, kSeed = 8;
    const auto by_nvcc = harness::make_subject("vgpu/nofmad");
    const auto by_nvrtc = harness::make_subject("vgpu/nofmad+nvrtc");
    for (const Shape& shape : shapes()) {
        for (std::uint64_t i = 0; i < kCases; ++i) {
            const harness::Case c = realise(draw_case(shape.shape, kSeed, shape.name, i));
            harness::Relation relation(*harness::find_property("guarded_step"), "the same case on the build of nvcc");
            const harness::Outcome want = relation.run(*by_nvcc, c);
            relation.same_bits(relation.run(*by_nvrtc, c), want);
            const harness::PropertyVerdict verdict = relation.result();
            ASSERT_FALSE(verdict.failed()) << shape.name << " case " << i << "\n"
                                           << describe(verdict.verdict.failures.front());
        }
    }
}

}  // namespace
}  // namespace gradguard::testing
