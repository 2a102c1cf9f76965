// SPDX-License-Identifier: Apache-2.0
// The vectors of property_tests/vectors, which oracle_py/make_vectors.py wrote, replayed step by step on every device.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <map>
#include <ostream>

#include "harness/compare/update_bound.h"
#include "harness/devices/registry.h"
#include "reference/fp64/coefficients.h"
#include "tests/support/compiler_under_test.h"
#include "tests/support/source_folder.h"
#include "tests/vectors/group.h"

namespace gradguard::testing {
namespace {

const std::filesystem::path kFolder = source_folder() / "property_tests/vectors";

/// A file of vectors, its cases as JSON.
struct VectorFile {
    explicit VectorFile(const std::string& name)
        : file((kFolder / (name + ".safetensors")).string()),
          cases(nlohmann::json::parse(file.metadata().at("cases"))) {}

    harness::SafetensorsFile file;
    nlohmann::json cases;
};

/// An operand after a step: [n] of an exact vector; [n] each of PyTorch's with the ends around them.
struct Expected {
    std::vector<float> value, low, high;
};

/// Case NAME of a file at step `index`: what goes in, and what should come out.
class Step {
  public:
    Step(const VectorFile& vectors, std::string name, std::size_t index)
        : file_(vectors.file), name_(std::move(name)), index_(index), json_(vectors.cases.at(name_)) {}

    const nlohmann::json& facts() const { return json_.at("steps").at(index_); }

    Group group() const {
        Group group;
        nlohmann::json options = json_;
        options["gradient_scale"] = facts().at("gradient_scale");
        read_options(options, group);
        group.names = json_.at("entries").get<std::vector<std::string>>();
        for (const std::string& entry : group.names) group.entries.push_back(before(entry, group.options.amsgrad));
        return group;
    }

    /// `rows`: 1 for an exact vector, 3 for one of PyTorch's.
    Expected expected(const std::string& entry, const char* suffix, std::size_t rows) const {
        return split(floats_at(file_, prefix(static_cast<int>(index_), entry) + suffix), rows);
    }
    bool has(const std::string& entry, const char* suffix) const {
        return file_.tensors().contains(prefix(static_cast<int>(index_), entry) + suffix);
    }

  private:
    std::string prefix(int index, const std::string& entry) const {
        return name_ + "/" + (index < 0 ? "start" : std::to_string(index)) + "/" + entry;
    }

    static Expected split(const std::vector<float>& values, std::size_t rows) {
        const auto n = static_cast<std::ptrdiff_t>(values.size() / rows);
        Expected result;
        result.value.assign(values.begin(), values.begin() + n);
        if (rows == 3) {
            result.low.assign(values.begin() + n, values.begin() + 2 * n);
            result.high.assign(values.begin() + 2 * n, values.end());
        }
        return result;
    }

    /// The state that the step before left in the file; a chain of steps has one.
    reference::HostEntry before(const std::string& entry, bool amsgrad) const {
        const std::string from = prefix(static_cast<int>(index_) - 1, entry);
        reference::HostEntry host;
        read_gradients(file_, prefix(static_cast<int>(index_), entry) + ".grad", host);
        const std::size_t n = host.gradient_view().elements;
        const auto first_row = [&](const char* suffix) {
            std::vector<float> values = floats_at(file_, from + suffix);
            values.resize(n);
            return values;
        };
        host.parameters = first_row(".param");
        if (!file_.tensors().contains(from + ".exp_avg")) return host;
        host.state = {completed(entry), first_row(".exp_avg"), first_row(".exp_avg_sq"), std::nullopt};
        if (amsgrad) host.state->max_second_moment = first_row(".max_exp_avg_sq");
        return host;
    }

    /// Steps that the entry has completed before this one: skipped ones do not count, empty entries never advance.
    std::uint64_t completed(const std::string& entry) const {
        auto steps = json_.at("start_step").get<std::uint64_t>();
        const auto& gradients = file_.tensors().at(prefix(0, entry) + ".grad");
        if (gradients.begin == gradients.end) return steps;
        for (std::size_t k = 0; k < index_; ++k)
            steps += json_.at("steps")[k].value("skip_reason", nlohmann::json()).is_null();
        return steps;
    }

    const harness::SafetensorsFile& file_;
    std::string name_;
    std::size_t index_;
    const nlohmann::json& json_;
};

struct Operand {
    const char* suffix;
    std::vector<float> values;
};

std::vector<Operand> operands(const reference::HostUpdate& update) {
    std::vector<Operand> result{{".param", update.parameters}};
    if (!update.state) return result;
    result.push_back({".exp_avg", update.state->first_moment});
    result.push_back({".exp_avg_sq", update.state->second_moment});
    if (update.state->max_second_moment) result.push_back({".max_exp_avg_sq", *update.state->max_second_moment});
    return result;
}

struct Where {
    harness::DeviceStatus device;
    std::string dtype;
};

void PrintTo(const Where& where, std::ostream* out) { *out << where.device.name << ", " << where.dtype; }

std::vector<Where> everywhere() {
    std::vector<Where> all;
    for (const harness::DeviceStatus& device : harness::list_devices()) {
        for (const char* dtype : {"f32", "f16", "bf16"}) all.push_back({device, dtype});
    }
    return all;
}

class Vectors : public ::testing::TestWithParam<Where> {
  protected:
    void SetUp() override {
        const harness::DeviceStatus& device = GetParam().device;
        if (!device.available) GTEST_SKIP() << "blocked: device " << device.name << ": " << device.reason;
    }

    std::shared_ptr<Queue> queue(bool contracted) const {
        const auto device = harness::open_device({.name = GetParam().device.name, .observers = device_observers()});
        device->set_kernel_source(kernels_under_test(contracted));
        return device->create_queue();
    }
    std::string device_observers() const { return GetParam().device.name == "vgpu" ? "all" : "none"; }

    /// Calls check(step, group, result) for every step of every case; fails when there was none.
    template <class Check>
    void replay(const char* source, bool contracted, Check check) const {
        const VectorFile vectors(std::string(source) + "_" + GetParam().dtype);
        const std::shared_ptr<Queue> on = queue(contracted);
        std::size_t steps = 0;
        for (const auto& [name, json] : vectors.cases.items()) {
            for (std::size_t k = 0; k < json.at("steps").size(); ++k) {
                const ::testing::ScopedTrace trace(__FILE__, __LINE__, name + ", step " + std::to_string(k));
                const Step step(vectors, name, k);
                const Group group = step.group();
                const GroupResult result = run_group(on, group);
                ASSERT_EQ(result.error, "");
                check(step, group, result);
                if (HasFatalFailure() || HasNonfatalFailure()) return;
                ++steps;
            }
        }
        EXPECT_GE(steps, 16U * 5U);
        for (const std::string& finding : harness::device_findings(on->device())) ADD_FAILURE() << finding;
    }
};

void expect_statistics(const Step& step, const GroupResult& result) {
    const nlohmann::json& want = step.facts();
    ASSERT_TRUE(result.report);
    EXPECT_EQ(bits_text(result.report->stats.total_norm), want.at("total_norm"));
    EXPECT_EQ(bits_text(result.clip_multiplier), want.at("clip_multiplier"));
    const auto skip = result.skip_reason ? nlohmann::json(std::string(to_string(*result.skip_reason))) : nullptr;
    EXPECT_EQ(skip, want.at("skip_reason"));
    auto summaries = nlohmann::json::array();
    for (const GradientSummary& s : result.report->summaries) {
        summaries.push_back({bits_text(s.scale), bits_text(s.sumsq), bits_text(s.bad)});
    }
    EXPECT_EQ(summaries, want.at("summaries"));
}

/// The first element of other bits; any NaN equals any NaN.
void expect_bits(const std::vector<float>& got, const std::vector<float>& want, const std::string& what) {
    ASSERT_EQ(got.size(), want.size()) << what;
    for (std::size_t i = 0; i < got.size(); ++i) {
        if (std::isnan(got[i]) && std::isnan(want[i])) continue;
        ASSERT_EQ(bits_text(got[i]), bits_text(want[i])) << what << "[" << i << "]";
    }
}

TEST_P(Vectors, ExactOnesAreReproducedBitForBitWithoutContraction) {
    replay("exact", false, [](const Step& step, const Group& group, const GroupResult& result) {
        expect_statistics(step, result);
        for (std::size_t i = 0; i < group.names.size(); ++i) {
            const std::vector<Operand> got = operands(result.entries[i]);
            EXPECT_EQ(got.size() > 1, step.has(group.names[i], ".exp_avg"));
            for (const Operand& operand : got) {
                const Expected want = step.expected(group.names[i], operand.suffix, 1);
                expect_bits(operand.values, want.value, group.names[i] + operand.suffix);
            }
        }
    });
}

TEST_P(Vectors, ExactOnesAreReproducedWithinTheLegalSetWithContraction) {
    replay("exact", true, [](const Step& step, const Group& group, const GroupResult& result) {
        expect_statistics(step, result);
        for (std::size_t i = 0; i < group.names.size(); ++i) {
            const reference::HostEntry& old = group.entries[i];
            const reference::HostUpdate& now = result.entries[i];
            if (!now.updated) {
                expect_bits(now.parameters, old.parameters, group.names[i] + ".param, which should be unchanged");
                continue;
            }
            const std::vector<float> none;
            harness::UpdateOperands judged{
                old.gradient_view(),     old.parameters,           none, none, none, now.parameters,
                now.state->first_moment, now.state->second_moment, none};
            if (old.state) {
                judged.old_first_moment = old.state->first_moment;
                judged.old_second_moment = old.state->second_moment;
            }
            if (group.options.amsgrad) judged.max_second_moment = *now.state->max_second_moment;
            if (group.options.amsgrad && old.state) judged.old_max_second_moment = *old.state->max_second_moment;
            const auto c =
                reference::update_coefficients(group.options, group.control, result.clip_multiplier, now.state->step);
            const auto verdict = harness::judge_update(judged, c, harness::Contraction::kAllowed);
            EXPECT_TRUE(verdict.ok) << group.names[i] << ": " << verdict.outside << " elements, the first "
                                    << (verdict.first ? verdict.first->index : 0);
        }
    });
}

TEST_P(Vectors, StepsFromPyTorchsStateEndBetweenTheEndsAroundItsResults) {
    for (const bool contracted : {false, true}) {
        replay("torch", contracted, [](const Step& step, const Group& group, const GroupResult& result) {
            ASSERT_FALSE(result.skip_reason);
            for (std::size_t i = 0; i < group.names.size(); ++i) {
                const std::vector<Operand> got = operands(result.entries[i]);
                ASSERT_EQ(got.size(), group.options.amsgrad ? 4U : 3U);
                for (const Operand& operand : got) {
                    const Expected want = step.expected(group.names[i], operand.suffix, 3);
                    ASSERT_EQ(operand.values.size(), want.low.size());
                    for (std::size_t e = 0; e < want.low.size(); ++e) {
                        const float value = operand.values[e];
                        // A contracted build may end where neither uncontracted formula does: the ends hold it as well.
                        ASSERT_TRUE(want.low[e] <= value && value <= want.high[e])
                            << group.names[i] << operand.suffix << "[" << e << "]: got " << bits_text(value)
                            << ", PyTorch " << bits_text(want.value[e]) << ", ends " << bits_text(want.low[e]) << ", "
                            << bits_text(want.high[e]);
                    }
                }
            }
        });
    }
}

INSTANTIATE_TEST_SUITE_P(Everywhere, Vectors, ::testing::ValuesIn(everywhere()),
                         [](const auto& where) { return where.param.device.name + "_" + where.param.dtype; });

}  // namespace
}  // namespace gradguard::testing
