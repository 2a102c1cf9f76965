// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "harness/observers/registry.h"
#include "harness/vgpu/machine.h"
#include "kernels/device/params.h"

/// The compiled kernels of this project have no findings, whatever the schedule.
namespace gradguard::observers::test {
namespace {

constexpr std::uint64_t kSeeds = 20;

std::string text_of(const std::string& name) {
    const std::string path = std::string(GRADGUARD_SOURCE_DIR) + "/kernels/ptx/" + name;
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) throw std::runtime_error("cannot read " + path);
    return text.str();
}

std::shared_ptr<const vgpu::Module> load(const std::string& name) { return vgpu::Module::load(text_of(name), name); }

template <class Arguments>
std::span<const std::byte> bytes_of(const Arguments& arguments) {
    return {reinterpret_cast<const std::byte*>(&arguments), sizeof(arguments)};
}

vgpu::Address input(vgpu::Machine& machine, ObserverSet& set, std::uint64_t bytes) {
    const std::vector<std::byte> zeros(bytes, std::byte{0});
    const vgpu::Address address = machine.allocate(bytes);
    machine.write(address, zeros.data(), bytes);
    set.inputs()->mark_read_only(address, bytes);
    return address;
}

void expect_no_findings(const vgpu::Machine& machine, const std::string& what) {
    for (const vgpu::Finding& finding : machine.findings()) ADD_FAILURE() << what << ": " << finding.message();
}

void expect_all_checked(std::span<const Checked> checked) {
    EXPECT_TRUE(checked_nothing(checked).empty()) << testing::PrintToString(checked_nothing(checked));
}

struct Scan {
    const char* entry;
    std::uint64_t element_bytes;
};
constexpr Scan kScans[] = {
    {"gradient_statistics_f32", 4}, {"gradient_statistics_f16", 2}, {"gradient_statistics_bf16", 2}};
constexpr const char* kStatistics[] = {"statistics.fmad.ptx", "statistics.nofmad.ptx"};

void run_scan(vgpu::Machine& machine, ObserverSet& set, const vgpu::Module& module, const Scan& scan,
              std::uint32_t elements) {
    const std::uint32_t blocks = (elements + 1023) / 1024;
    // A view into a tensor: warps do not start at a row of their own.
    const vgpu::Address gradients = input(machine, set, (elements + 1) * scan.element_bytes);
    const vgpu::Address triples = machine.allocate(12 * blocks), summary = machine.allocate(12);
    const kernels::StatisticsArguments arguments{gradients + scan.element_bytes, triples, elements, 1.0F};
    machine.launch(module, scan.entry, {{blocks, 1, 1}, {256, 1, 1}, 0}, bytes_of(arguments));
    const kernels::MergeArguments merge{triples, summary, blocks, 0};
    machine.launch(module, kernels::kMergeEntry, {{1, 1, 1}, {256, 1, 1}, 0}, bytes_of(merge));
}

vgpu::MachineOptions with_seed(std::uint64_t seed) {
    vgpu::MachineOptions options;
    options.seed = seed;
    return options;
}

TEST(OurKernels, TheScanIsCleanUnderEverySchedule) {
    std::vector<Checked> total;
    for (const char* file : kStatistics) {
        const auto module = load(file);
        for (const Scan& scan : kScans) {
            for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
                vgpu::Machine machine(with_seed(seed));
                ObserverSet set(machine, "all");
                run_scan(machine, set, *module, scan, 3001 + static_cast<std::uint32_t>(seed) * 97);
                expect_no_findings(machine, std::string(scan.entry) + " seed " + std::to_string(seed));
                add_checked(total, set.checked());
            }
        }
    }
    expect_all_checked(total);
}

/// The statistics module without one barrier of the tree of one entry: that before the first level (offset 0), or that
/// after the level which adds what lies `offset` behind.
std::shared_ptr<const vgpu::Module> without_barrier(const char* file, const std::string& entry, unsigned offset) {
    const std::string text = text_of(file);
    const std::size_t begin = text.find(".entry " + entry + "(");
    if (begin == std::string::npos) throw std::runtime_error(std::string(file) + " has no entry " + entry);
    const std::size_t end = text.find("\n}\n", begin);
    std::string body = text.substr(begin, end - begin);
    const std::string barrier = "bar.sync \t0;";
    const std::size_t first = body.find(barrier), second = body.find(barrier, first + 1);
    if (second == std::string::npos || body.find(barrier, second + 1) != std::string::npos)
        throw std::runtime_error(entry + " does not have two barriers");
    // Between the two, a thread asks whether it takes part in the level: lane >= offset.
    const std::string between = body.substr(first, second - first);
    std::smatch question;
    if (!std::regex_search(between, question, std::regex(R"(setp\.ge\.u32\s+%p\d+, %r\d+, (%r\d+);)")))
        throw std::runtime_error(entry + ": the tree does not look as it did");
    const std::string skip = "setp.eq.u32 %drop, " + question[1].str() + ", " + std::to_string(offset) +
                             ";\n@%drop bra dropped;\n" + barrier + "\ndropped:";
    if (offset == 0)
        body.replace(first, barrier.size(), "");
    else
        body.replace(second, barrier.size(), skip);
    body.insert(body.find(".reg .pred"), ".reg .pred %drop;\n\t");
    return vgpu::Module::load(text.substr(0, begin) + body + text.substr(end), file);
}

/// How many of kSeeds schedules of the scan and the merge end with a race in the kernel `entry`.
std::uint64_t schedules_with_race(const vgpu::Module& module, const Scan& scan, const std::string& entry) {
    std::uint64_t found = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        vgpu::Machine machine(with_seed(seed));
        ObserverSet set(machine, "all");
        run_scan(machine, set, module, scan, 3001);
        bool race = false;
        for (const vgpu::Finding& finding : machine.findings()) {
            const bool is_race = finding.kind == vgpu::FindingKind::Race || finding.kind == vgpu::FindingKind::WarpRace;
            // Who comes too early may also read what nobody has written yet.
            EXPECT_TRUE(is_race || finding.kind == vgpu::FindingKind::UninitializedRead) << finding.message();
            EXPECT_EQ(finding.place.kernel, entry) << finding.message();
            EXPECT_EQ(finding.space, vgpu::Space::Shared) << finding.message();
            EXPECT_EQ(finding.place.source_file, "kernels/device/statistics.cu") << finding.message();
            race |= is_race;
        }
        found += race;
    }
    return found;
}

TEST(OurKernels, EachDroppedBarrierOfTheTreeIsFoundUnderEverySchedule) {
    for (const char* file : kStatistics) {
        for (const std::string entry : {kScans[0].entry, kScans[1].entry, kScans[2].entry, kernels::kMergeEntry}) {
            const auto* const scan =
                std::find_if(std::begin(kScans), std::end(kScans), [&](const Scan& one) { return one.entry == entry; });
            for (const unsigned offset : {0U, 128U, 64U, 32U, 16U, 8U, 4U, 2U}) {
                const auto module = without_barrier(file, entry, offset);
                EXPECT_EQ(schedules_with_race(*module, scan == std::end(kScans) ? kScans[0] : *scan, entry), kSeeds)
                    << file << " " << entry << " without the barrier after offset " << offset;
            }
        }
    }
}

TEST(OurKernels, TheLastBarrierOfTheTreeOrdersNothing) {
    // Thread 0 goes on with what it has written itself.
    for (const std::string entry : {kScans[0].entry, kernels::kMergeEntry}) {
        const auto module = without_barrier(kStatistics[0], entry, 1);
        EXPECT_EQ(schedules_with_race(*module, kScans[0], entry), 0U);
    }
}

TEST(OurKernels, TheUpdateIsCleanUnderEverySchedule) {
    for (const char* file : {"update.fmad.ptx", "update.nofmad.ptx"}) {
        const auto module = load(file);
        ASSERT_FALSE(module->entries().empty());
        for (const vgpu::EntryInfo& entry : module->entries()) {
            for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
                vgpu::Machine machine(with_seed(seed));
                ObserverSet set(machine, "all");
                const std::uint32_t elements = 999, blocks = (elements + 255) / 256;
                kernels::UpdateArguments arguments{};
                for (auto* operand : {&arguments.parameters, &arguments.gradients, &arguments.first_moment,
                                      &arguments.second_moment, &arguments.max_second_moment}) {
                    *operand = input(machine, set, elements * 4);
                }
                for (auto* operand : {&arguments.new_parameters, &arguments.new_first_moment,
                                      &arguments.new_second_moment, &arguments.new_max_second_moment}) {
                    *operand = machine.allocate(elements * 4);
                }
                arguments.elements = elements;
                arguments.epsilon = 1.0F;
                machine.launch(*module, entry.name, {{blocks, 1, 1}, {256, 1, 1}, 0}, bytes_of(arguments));
                expect_no_findings(machine, entry.name + " seed " + std::to_string(seed));
            }
        }
    }
}

}  // namespace
}  // namespace gradguard::observers::test
