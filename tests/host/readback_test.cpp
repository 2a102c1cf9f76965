// SPDX-License-Identifier: Apache-2.0
// What a step says when its summaries do not come back as they should; each kind of damage: faults_test.cpp.
#include <gtest/gtest.h>

#include "kernels/host/statistics.h"
#include "tests/host/group.h"

namespace gradguard {
namespace {

using harness::CallRecord;
using harness::DeviceCall;
using testing::expect_error;
using testing::RecordedDevice;
using Payload = std::vector<std::vector<std::byte>>;

/// Scans an empty tensor and two of one element each.
void scan_three(const RecordedDevice& gpu) {
    const std::vector<Tensor> gradients = {gpu.tensor(std::vector<float>{}), gpu.tensor(std::vector<float>{3.0F}),
                                           gpu.tensor(std::vector<float>{4.0F})};
    gradient_stats_sync(gradients);
}

void expect_tampered(std::optional<std::size_t> entry, const std::string& operand,
                     const std::function<void(Payload&)>& tamper) {
    const RecordedDevice gpu(false, 1, {std::make_shared<harness::TamperReadback>(tamper)});
    expect_error(ErrorKind::kInvalidSummary, entry, operand, [&] { scan_three(gpu); });
}

TEST(Readback, ADamagedSummaryNamesTheEntryInTheGroup) {
    expect_tampered(1, "summary", [](Payload& payload) { payload[0].pop_back(); });
    expect_tampered(2, "summary", [](Payload& payload) { payload[1].push_back({}); });
    expect_tampered(2, "summary", [](Payload& payload) { payload[1][11] = std::byte{0x40}; });
}

TEST(Readback, AWrongNumberOfSummariesNamesTheReadback) {
    expect_tampered(std::nullopt, "readback", [](Payload& payload) { payload.pop_back(); });
    expect_tampered(std::nullopt, "readback", [](Payload& payload) { payload.push_back(payload[0]); });
}

TEST(Readback, ADeviceThatFailsInItFailsTheReadback) {
    for (const DeviceCall call : {DeviceCall::kReadback, DeviceCall::kReadbackWait}) {
        const RecordedDevice gpu(false, 1, {std::make_shared<harness::FailNthCall>(call, 0)});
        const auto error = testing::error_of([&] { scan_three(gpu); });
        ASSERT_TRUE(error);
        EXPECT_EQ(to_string(error->kind()), to_string(ErrorKind::kReadback));
        EXPECT_EQ(error->site().operand, "readback");
        EXPECT_NE(error->message().find(std::string(to_string(call)) + " failed"), std::string::npos) << error->what();
    }
}

class AnotherError : public harness::DeviceHook {
  public:
    void before(const CallRecord& record) override {
        if (record.call == DeviceCall::kReadback) throw Error(ErrorKind::kInvalidState, {.operand = "test"}, "other");
    }
};

TEST(Readback, AnErrorOfAnotherKindIsPassedOn) {
    const RecordedDevice gpu(false, 1, {std::make_shared<AnotherError>()});
    expect_error(ErrorKind::kInvalidState, std::nullopt, "test", [&] { scan_three(gpu); });
}

}  // namespace
}  // namespace gradguard
