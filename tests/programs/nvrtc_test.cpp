// SPDX-License-Identifier: Apache-2.0
// The project's own kernels compiled by NVRTC: they load, and give the bits of the checked-in PTX, which nvcc made.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/device/params.h"
#include "kernels/ptx/embedded.h"
#include "tests/programs/nvrtc.h"
#include "tests/programs/program.h"

namespace gradguard::programs {
namespace {

using Module = std::shared_ptr<const vgpu::Module>;
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

void expect_same_bits(const std::string& module, const std::string& build, const std::string& contraction) {
    const Nvrtc nvrtc;
    if (!nvrtc.found()) GTEST_SKIP() << "no libnvrtc";
    const std::string ptx = nvrtc.compile("kernels/device/" + module + ".cu", {contraction});
    std::vector<std::string> names, recorded_names;
    const Words got = results_of(vgpu::Module::load(ptx, module + ".nvrtc.ptx"), names);
    const Words wanted = results_of(
        vgpu::Module::load(kernels::embedded_ptx(module, build), module + "." + build + ".ptx"), recorded_names);
    ASSERT_EQ(names, recorded_names);
    ASSERT_GT(wanted.size(), kBlocks);
    ASSERT_EQ(std::count(wanted.begin(), wanted.end(), kBlank), 0);
    ASSERT_EQ(got, wanted);
}

TEST(Nvrtc, StatisticsHaveTheBitsOfTheCheckedInPtx) { expect_same_bits("statistics", "nofmad", "-fmad=false"); }
TEST(Nvrtc, UpdateHasTheBitsOfTheCheckedInPtx) { expect_same_bits("update", "nofmad", "-fmad=false"); }
TEST(Nvrtc, UpdateWithContractionHasTheBitsOfTheCheckedInPtx) { expect_same_bits("update", "fmad", "-fmad=true"); }

}  // namespace
}  // namespace gradguard::programs
