// SPDX-License-Identifier: Apache-2.0
#include "property_tests/hardware/hardware_test.h"

#include <cmath>

#include "harness/devices/registry.h"
#include "kernels/cuda/nvrtc_source.h"
#include "reference/exact/float_bits.h"

namespace gradguard::testing {
namespace {

// One request for all: the virtual driver knows one configuration at a time.
constexpr std::uint64_t kSeed = 0;
constexpr const char* kObservers = "all";

KernelSource nvrtc_kernels(const cuda::CudaDevice& device, bool contracted) {
    cuda::NvrtcOptions options;
    options.contracted = contracted;
    options.newest = harness::newest_cuda(device);
    return cuda::nvrtc_source(options);
}

/// Why the compiled kernels cannot run on the device, in words; nothing when they can.
std::optional<std::string> missing_for(const Setup& setup, const cuda::CudaDevice& device) {
    try {
        if (setup.compiler == "ptx") return device.why_not_loadable(KernelSource::embedded(true).ptx("update"));
        nvrtc_kernels(device, true);
    } catch (const cuda::NvrtcUnavailable& error) {
        return error.what();
    }
    return std::nullopt;
}

std::string number(std::uint64_t value) { return std::to_string(value); }

}  // namespace

std::vector<Setup> setups() { return {{"vdriver", "ptx"}, {"vdriver", "nvrtc"}, {"cuda", "ptx"}, {"cuda", "nvrtc"}}; }

void Hardware::SetUp() {
    try {
        device = std::dynamic_pointer_cast<cuda::CudaDevice>(harness::open_device(
            {.name = GetParam().device, .schedule_seed = kSeed, .observers = kObservers, .count = false}));
    } catch (const harness::DeviceUnavailable& error) {
        GTEST_SKIP() << "blocked: " << error.what();
    }
    ASSERT_NE(device, nullptr) << "the registry opened another kind of device";
    if (const auto reason = missing_for(GetParam(), *device)) GTEST_SKIP() << "blocked: " << *reason;
    findings_before_ = harness::device_findings(*device).size();
    device->set_kernel_source(kernels(false));
    queue = device->create_queue();
}

void Hardware::TearDown() {
    if (!queue) return;
    if (!findings_expected_) {
        queue->synchronize();
        const std::vector<std::string> findings = harness::device_findings(*device);
        for (std::size_t i = findings_before_; i < findings.size(); ++i) ADD_FAILURE() << findings[i];
    }
    queue.reset();
    device.reset();
}

std::shared_ptr<cuda::CudaDevice> Hardware::open(cuda::CudaDeviceOptions options, bool contracted) const {
    options.driver = cuda::Driver::open(driver_library());
    auto opened = cuda::CudaDevice::open(options);
    opened->set_kernel_source(kernels(contracted));
    return opened;
}

KernelSource Hardware::kernels(bool contracted) const {
    if (GetParam().compiler == "ptx") return KernelSource::embedded(contracted);
    return nvrtc_kernels(*device, contracted);
}

std::string Hardware::subject_name(bool contracted) const {
    const std::string name = GetParam().device + (contracted ? "/fmad" : "/nofmad");
    return harness::subject_compiled_by(name, GetParam().compiler);
}

std::unique_ptr<harness::Subject> Hardware::subject(std::string_view name) {
    harness::SubjectOptions options;
    options.observers = kObservers;
    return harness::make_subject(name, options);
}

AdamWEntry Hardware::place(const reference::HostEntry& host, const std::shared_ptr<Queue>& queue) {
    AdamWEntry entry = {upload(queue, host.parameters), upload(queue, host.gradient_dtype, host.gradients),
                        std::nullopt};
    if (!host.state) return entry;
    entry.state = {host.state->step, upload(queue, host.state->first_moment), upload(queue, host.state->second_moment),
                   std::nullopt};
    if (host.state->max_second_moment) entry.state->max_second_moment = upload(queue, *host.state->max_second_moment);
    return entry;
}

void Hardware::expect_oracles_step(const std::vector<reference::HostEntry>& hosts, const AdamWOptions& options,
                                   const StepControl& control, const GradientGuardOptions& guard) const {
    const auto want = reference::guarded_step(hosts, options, control, guard);
    std::vector<AdamWEntry> entries;
    for (const reference::HostEntry& host : hosts) entries.push_back(place(host));
    const auto got = guarded_adamw_step(entries, options, control, guard);
    EXPECT_EQ(bits(got.clip_multiplier), bits(want.clip_multiplier));
    EXPECT_EQ(got.skip_reason, want.skip_reason);
    ASSERT_EQ(got.report.has_value(), want.report.has_value());
    if (want.report) {
        EXPECT_EQ(difference(*got.report, *want.report), "");
    }
    ASSERT_EQ(got.entries.size(), want.entries.size());
    for (std::size_t i = 0; i < got.entries.size(); ++i) {
        EXPECT_EQ(difference(download(got.entries[i]), want.entries[i]), "") << "entry " << i;
    }
}

Tensor upload(const std::shared_ptr<Queue>& queue, DType dtype, std::span<const std::byte> bytes) {
    Tensor tensor = Tensor::allocate(queue, dtype, {bytes.size() / element_bytes(dtype)});
    if (!bytes.empty()) tensor.upload(bytes);
    return tensor;
}

Tensor upload(const std::shared_ptr<Queue>& queue, const std::vector<float>& values) {
    return upload(queue, DType::kF32, std::as_bytes(std::span(values)));
}

std::vector<float> download(const Tensor& tensor) {
    std::vector<float> values(tensor.elements());
    if (values.empty()) return values;
    tensor.download(std::as_writable_bytes(std::span(values)));
    tensor.queue->synchronize();
    return values;
}

reference::HostUpdate download(const AdamWUpdate& update) {
    reference::HostUpdate host;
    host.updated = update.updated;
    host.parameters = download(update.parameters);
    if (!update.state) return host;
    host.state = {update.state->step, download(update.state->first_moment), download(update.state->second_moment),
                  std::nullopt};
    if (update.state->max_second_moment) host.state->max_second_moment = download(*update.state->max_second_moment);
    return host;
}

std::string difference(const std::vector<float>& got, const std::vector<float>& want, const std::string& what) {
    if (got.size() != want.size()) return what + ": " + number(got.size()) + " elements, want " + number(want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
        if (reference::same_float(got[i], want[i])) continue;
        return what + "[" + number(i) + "]: got bits " + number(bits(got[i])) + ", want " + number(bits(want[i]));
    }
    return "";
}

std::string difference(const GradientStatsReport& got, const GradientStatsReport& want) {
    const auto words = [](const GradientStatsReport& report) {
        std::string text = "norm " + number(std::bit_cast<std::uint64_t>(report.stats.total_norm)) + ", maximum " +
                           number(bits(report.stats.max_finite_abs)) + (report.stats.all_finite ? ", good" : ", bad");
        for (const std::uint64_t count : {report.stats.elements, report.stats.tensors, report.reduction_launches,
                                          report.readback_bytes, report.scratch_bytes}) {
            text += ", " + number(count);
        }
        for (const GradientSummary& one : report.summaries) {
            text += "; " + number(bits(one.scale)) + " " + number(bits(one.sumsq)) + " " + number(bits(one.bad));
        }
        return text;
    };
    const std::string was = words(got);
    const std::string wanted = words(want);
    return was == wanted ? "" : "got " + was + "\nwant " + wanted;
}

std::string difference(const reference::HostUpdate& got, const reference::HostUpdate& want) {
    std::string text;
    if (got.updated != want.updated) text += got.updated ? "it was updated; " : "it was not updated; ";
    text += difference(got.parameters, want.parameters, "parameters");
    if (got.state.has_value() != want.state.has_value()) return text + (got.state ? "a state" : "no state");
    if (!got.state) return text;
    if (got.state->step != want.state->step) text += "step " + number(got.state->step) + "; ";
    text += difference(got.state->first_moment, want.state->first_moment, "first_moment");
    text += difference(got.state->second_moment, want.state->second_moment, "second_moment");
    const std::vector<float> none;
    text += difference(got.state->max_second_moment.value_or(none), want.state->max_second_moment.value_or(none),
                       "max_second_moment");
    return text;
}

}  // namespace gradguard::testing
