// SPDX-License-Identifier: Apache-2.0
// The library's operations on the virtual GPU: arrays are mapped into the device, results are the device's memory.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <chrono>
#include <utility>

#include "kernels/host/guarded_adamw.h"
#include "kernels/host/option_rules.h"
#include "kernels/host/validation.h"
#include "python/src/bindings.h"
#include "reference/contract/error.h"

namespace gradguard::python {
namespace {

constexpr int kOperands = 5;
constexpr std::array<const char*, kOperands> kNames = {"parameters", "gradients", "first_moment", "second_moment",
                                                       "max_second_moment"};

/// One entry's arrays. They are used without the interpreter's lock, when the entry may be given others.
struct EntryViews {
    std::array<ArrayView, kOperands> arrays;
    std::array<nb::object, kOperands> owners;
    std::optional<std::uint64_t> step;  ///< Of the state, if there is one.
    bool has_maximum = false;

    std::size_t count() const { return !step ? 2 : has_maximum ? 5 : 4; }
};

EntryViews view_entry(const PyEntry& entry, std::optional<std::size_t> index) {
    EntryViews views;
    const auto view = [&](int operand, const nb::object& array) {
        const auto at = static_cast<std::size_t>(operand);
        views.owners[at] = array;
        views.arrays[at] = view_array(array, {index, kNames[at]});
    };
    view(0, entry.parameters);
    view(1, entry.gradients);
    const PyState* const state = state_of(entry.state);
    if (state == nullptr) return views;
    views.step = state->step;
    view(2, state->first_moment);
    view(3, state->second_moment);
    views.has_maximum = !state->max_second_moment.is_none();
    if (views.has_maximum) view(4, state->max_second_moment);
    return views;
}

/// A group placed on a device for one call.
class PlacedGroup {
  public:
    PlacedGroup(const SharedDevice::Use& use, std::span<const EntryViews> group, bool map) : use_(use), map_(map) {
        entries.reserve(group.size());
        for (const EntryViews& views : group) {
            AdamWEntry entry = {place(views.arrays[0]), place(views.arrays[1]), std::nullopt};
            if (views.step) {
                entry.state = {*views.step, place(views.arrays[2]), place(views.arrays[3]), std::nullopt};
                if (views.has_maximum) entry.state->max_second_moment = place(views.arrays[4]);
            }
            entries.push_back(std::move(entry));
        }
    }
    PlacedGroup(const SharedDevice::Use& use, std::span<const ArrayView> views) : use_(use), map_(true) {
        gradients.reserve(views.size());
        for (const ArrayView& view : views) gradients.push_back(place(view));
    }

    std::vector<AdamWEntry> entries;
    std::vector<Tensor> gradients;

  private:
    /// Memory that validation will refuse is described, not mapped.
    Tensor place(const ArrayView& view) {
        const std::uint64_t bytes = view.bytes();
        Buffer buffer = Buffer::borrowed(0, view.layout.byte_offset + bytes);
        if (map_ && view.dense && bytes > 0) {
            buffer = use_.gpu().map(view.data, bytes);
            marks_.push_back(use_.gpu().mark_read_only({buffer, 0, bytes}));
        }
        return {view.layout, std::move(buffer), use_.queue()};
    }

    const SharedDevice::Use& use_;
    bool map_;
    std::vector<std::shared_ptr<const void>> marks_;
};

SharedDevice& shared(const PyDevice* device) { return device != nullptr ? *device->device : *SharedDevice::standard(); }

/// The arrays of a group. What no tensor can be made of is reported in its turn: after the entries before it.
std::vector<EntryViews> view_group(const std::vector<const PyEntry*>& entries, const AdamWOptions& options,
                                   const StepControl& control, SharedDevice& device) {
    std::vector<EntryViews> group;
    group.reserve(entries.size());
    try {
        for (std::size_t i = 0; i < entries.size(); ++i) group.push_back(view_entry(*entries[i], i));
    } catch (const Error&) {
        const nb::gil_scoped_release unlocked;
        const SharedDevice::Use use(device, 0);
        const PlacedGroup before(use, group, false);
        kernels::validate_entries(before.entries, options, control);
        throw;
    }
    return group;
}

/// Arrays of the group, and as many results.
std::uint64_t tensors_of(std::span<const EntryViews> group) {
    std::uint64_t count = 0;
    for (const EntryViews& views : group) count += 2 * views.count() + 4;
    return count;
}

/// What one entry became, with the memory of its new arrays; made while the device is in use.
struct DeviceResult {
    bool updated = false;
    std::uint64_t step = 0;
    std::vector<std::unique_ptr<ResultMemory>> arrays;  ///< parameters, first, second, maximum if there is one.
};

std::vector<DeviceResult> take_results(SharedDevice& device, const SharedDevice::Use& use,
                                       std::vector<AdamWUpdate> updates) {
    std::vector<DeviceResult> results(updates.size());
    const auto take = [&](DeviceResult& result, Tensor& tensor) {
        const vgpu::Machine& machine = use.gpu().machine();
        const std::byte* const host = machine.host_pointer(tensor.data(), tensor.bytes());
        result.arrays.push_back(std::make_unique<ResultMemory>(device.shared_from_this(), std::move(tensor.storage),
                                                               const_cast<std::byte*>(host)));
    };
    for (std::size_t i = 0; i < updates.size(); ++i) {
        if (!updates[i].updated) continue;
        AdamWState& state = *updates[i].state;
        results[i].updated = true;
        results[i].step = state.step;
        take(results[i], updates[i].parameters);
        take(results[i], state.first_moment);
        take(results[i], state.second_moment);
        if (state.max_second_moment) take(results[i], *state.max_second_moment);
    }
    return results;
}

nb::object array_of(std::unique_ptr<ResultMemory> memory, std::span<const std::uint64_t> shape) {
    void* const host = memory->host;
    nb::capsule owner(memory.get(), [](void* pointer) noexcept { delete static_cast<ResultMemory*>(pointer); });
    static_cast<void>(memory.release());
    return array_over(host, shape, std::move(owner));
}

PyUpdate update_of(const PyEntry& entry, const EntryViews& views, DeviceResult result) {
    if (!result.updated) return {entry.parameters, entry.state, false};
    const std::vector<std::uint64_t>& shape = views.arrays[0].layout.shape;
    PyUpdate update;
    update.updated = true;
    update.parameters = array_of(std::move(result.arrays[0]), shape);
    PyState state;
    state.step = result.step;
    state.first_moment = array_of(std::move(result.arrays[1]), shape);
    state.second_moment = array_of(std::move(result.arrays[2]), shape);
    if (result.arrays.size() > 3) state.max_second_moment = array_of(std::move(result.arrays[3]), shape);
    update.state = nb::cast(std::move(state));
    return update;
}

nb::list updates_of(const std::vector<const PyEntry*>& entries, std::span<const EntryViews> group,
                    std::vector<DeviceResult> results) {
    nb::list updates;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        updates.append(nb::cast(update_of(*entries[i], group[i], std::move(results[i]))));
    }
    return updates;
}

GradientStatsReport gradient_stats(const nb::object& gradients, float gradient_scale, const PyDevice* device) {
    kernels::validate_gradient_scale(gradient_scale);
    std::vector<ArrayView> views;
    std::vector<nb::object> kept;  // an iterator's items die with it
    for (nb::handle item : gradients) {
        kept.push_back(nb::borrow(item));
        views.push_back(view_array(item, {views.size(), "gradients"}));
    }
    SharedDevice& shared_device = shared(device);
    const nb::gil_scoped_release unlocked;
    const SharedDevice::Use use(shared_device, 2 * views.size());
    const PlacedGroup group(use, views);
    return gradient_stats_sync(group.gradients, gradient_scale);
}

PyUpdate adamw(const nb::object& parameters, const nb::object& gradients, const nb::object& state,
               const AdamWOptions& options, const StepControl& control, const PyDevice* device) {
    kernels::validate(options);
    kernels::validate(control);
    const PyEntry entry{parameters, gradients, state};
    const std::array<EntryViews, 1> group = {view_entry(entry, 0)};
    SharedDevice& shared_device = shared(device);
    std::vector<DeviceResult> results;
    {
        const nb::gil_scoped_release unlocked;
        const SharedDevice::Use use(shared_device, tensors_of(group));
        const PlacedGroup placed(use, group, true);
        const AdamWEntry& one = placed.entries.front();
        std::vector<AdamWUpdate> updates;
        updates.push_back(adamw_step(one.parameters, one.gradients, one.state, options, control));
        updates.front().wait();
        results = take_results(shared_device, use, std::move(updates));
    }
    return update_of(entry, group.front(), std::move(results.front()));
}

PyGuardedUpdate guarded(const nb::object& sequence, const AdamWOptions& options, const StepControl& control,
                        const GradientGuardOptions& guard, const PyDevice* device) {
    kernels::validate(options);
    kernels::validate(control);
    kernels::validate(guard);
    const nb::list items(sequence);
    const std::vector<const PyEntry*> entries = entries_of(items);
    SharedDevice& shared_device = shared(device);
    const std::vector<EntryViews> group = view_group(entries, options, control, shared_device);
    std::vector<DeviceResult> results;
    PyGuardedUpdate result;
    {
        const nb::gil_scoped_release unlocked;
        const SharedDevice::Use use(shared_device, tensors_of(group));
        const PlacedGroup placed(use, group, true);
        GuardedAdamWUpdate update = guarded_adamw_step(placed.entries, options, control, guard);
        update.wait();
        result.report = std::move(update.report);
        result.clip_multiplier = update.clip_multiplier;
        result.skip_reason = update.skip_reason;
        results = take_results(shared_device, use, std::move(update.entries));
    }
    result.entries = updates_of(entries, group, std::move(results));
    return result;
}

nb::list clipped(const GradientDecision& decision, const nb::object& sequence, const AdamWOptions& options,
                 const StepControl& control, const PyDevice* device) {
    kernels::validate(options);
    kernels::validate(control);
    const nb::list items(sequence);
    const std::vector<const PyEntry*> entries = entries_of(items);
    SharedDevice& shared_device = shared(device);
    const std::vector<EntryViews> group = view_group(entries, options, control, shared_device);
    std::vector<DeviceResult> results;
    {
        const nb::gil_scoped_release unlocked;
        const SharedDevice::Use use(shared_device, tensors_of(group));
        const PlacedGroup placed(use, group, true);
        std::vector<AdamWUpdate> updates = clipped_adamw_step(decision, placed.entries, options, control);
        for (const AdamWUpdate& update : updates) update.wait();
        results = take_results(shared_device, use, std::move(updates));
    }
    return updates_of(entries, group, std::move(results));
}

/// The same operation on tensors that lie on the device already: what benchmarks hold the Python call against.
class NativeCalls {
  public:
    NativeCalls(const nb::object& sequence, const PyDevice& device, bool scan_only)
        : device_(device.device), scan_only_(scan_only) {
        const nb::list items(sequence);
        const std::vector<const PyEntry*> entries = entries_of(items);
        for (std::size_t i = 0; i < entries.size(); ++i) group_.push_back(view_entry(*entries[i], i));
        kept_ = items;
    }

    /// One call until its work is done and its results are gone again, in nanoseconds.
    std::int64_t run() {
        const nb::gil_scoped_release unlocked;
        const SharedDevice::Use use(*device_, tensors_of(group_));
        const PlacedGroup placed(use, group_, true);
        std::vector<Tensor> gradients;
        for (const AdamWEntry& entry : placed.entries) gradients.push_back(entry.gradients);
        const auto begin = std::chrono::steady_clock::now();
        std::int64_t time = 0;
        if (scan_only_) {
            static_cast<void>(gradient_stats_sync(gradients));
            time = (std::chrono::steady_clock::now() - begin).count();
        } else {
            const GuardedAdamWUpdate update = guarded_adamw_step(placed.entries);
            update.wait();
            time = (std::chrono::steady_clock::now() - begin).count();
        }
        return time;
    }

  private:
    std::shared_ptr<SharedDevice> device_;
    bool scan_only_;
    nb::object kept_;
    std::vector<EntryViews> group_;
};

void bind_device(nb::module_& module) {
    nb::class_<PyDevice>(module, "Device",
                         "A virtual GPU. NumPy memory is mapped into it, not copied; each call is complete when it "
                         "returns. May be used from several threads: calls take turns, and run without the "
                         "interpreter's lock.\n\nname: 'vgpu' or 'auto'; seed: of the schedule (results do not depend "
                         "on it); observers: 'none', 'all' or names with commas between; fmad: the kernels that "
                         "contract, or those whose bits are the lines' own.\n\nRaises UnsupportedDevice for a device "
                         "that is not here, ValueError for an unknown observer.")
        .def(
            "__init__",
            [](PyDevice* self, const std::string& name, std::uint64_t seed, const std::string& observers, bool fmad) {
                new (self) PyDevice{SharedDevice::open(name, seed, observers, fmad)};
            },
            nb::arg("name") = "vgpu", nb::arg("seed") = 0, nb::arg("observers") = "none", nb::arg("fmad") = true)
        .def_prop_ro("name", [](const PyDevice& d) { return d.device->name(); })
        .def_prop_ro("seed", [](const PyDevice& d) { return d.device->seed(); })
        .def_prop_ro("observers", [](const PyDevice& d) { return d.device->observers(); })
        .def_prop_ro("fmad", [](const PyDevice& d) { return d.device->fmad(); })
        .def(
            "findings",
            [](const PyDevice& d, bool final) {
                const nb::gil_scoped_release unlocked;
                return d.device->findings(final);
            },
            nb::arg("final") = false,
            "What the machine and its observers found so far, a line each. final: also memory that is still "
            "allocated; results that are alive are.")
        .def_prop_ro(
            "live_allocations",
            [](const PyDevice& d) {
                const nb::gil_scoped_release unlocked;
                return d.device->live_allocations();
            },
            "Buffers of the device that exist now: those of results that are alive.")
        .def(
            "reset",
            [](const PyDevice& d) {
                const nb::gil_scoped_release unlocked;
                d.device->reset();
            },
            "A new device in the old one's place: after a DeviceFailure every call fails until then. Results stay "
            "readable.");
}

}  // namespace

void bind_steps(nb::module_& module) {
    bind_device(module);
    nb::class_<NativeCalls>(module, "NativeCalls",
                            "For benchmarks: a guarded step (or the scan alone) on tensors that are placed already.")
        .def(nb::init<const nb::object&, const PyDevice&, bool>(), nb::arg("entries"), nb::arg("device"),
             nb::arg("scan_only"))
        .def("run", &NativeCalls::run, "Nanoseconds of one C++ call until its work is done.");
    const AdamWOptions options;
    const StepControl control;
    const GradientGuardOptions guard;
    module.def("gradient_stats", &gradient_stats, nb::arg("gradients"), nb::arg("gradient_scale") = 1.0F,
               nb::arg("device").none() = nb::none(),
               "Scans a group of gradients on a device (contract section 4).\n\ngradients: a sequence of arrays of any "
               "shape, float32, float16 or bfloat16, NumPy or DLPack, not copied. gradient_scale: the loss scale that "
               "they are still multiplied by.\n\nRaises InvalidOption (gradient_scale), InvalidTensor, "
               "UnsupportedDevice before any device call; DeviceFailure, Readback, InvalidSummary after; TypeError for "
               "what is no array.");
    module.def("decide", &decide, nb::arg("stats"), nb::arg("guard") = guard,
               "The decision for a whole group (contract section 5): (clip, False) for a good one, (1, True) for a bad "
               "one under Skip. Needs no device.\n\nRaises InvalidOption, InvalidSummary for a negative norm, "
               "NonFiniteGradients for a bad group under Error.");
    module.def("adamw_step", &adamw, nb::arg("parameters"), nb::arg("gradients"), nb::arg("state").none() = nb::none(),
               nb::arg("options") = options, nb::arg("control") = control, nb::arg("device").none() = nb::none(),
               "The unguarded operator (contract sections 2 and 6) on arrays of one shape: parameters float32, "
               "gradients float32, float16 or bfloat16, state an AdamWState or None. Non-finite gradients flow "
               "through. skip_update or an empty parameter: the inputs come back.\n\nRaises the errors of contract "
               "section 3.");
    module.def("guarded_adamw_step", &guarded, nb::arg("entries"), nb::arg("options") = options,
               nb::arg("control") = control, nb::arg("guard") = guard, nb::arg("device").none() = nb::none(),
               "The whole guarded step (contract section 2) over a sequence of AdamWEntry: validates everything, scans "
               "the group, decides once, updates every non-empty entry. Inputs are only read. Complete when it "
               "returns.\n\nRaises the errors of contract section 3; before any update unless it is DeviceFailure.");
    module.def(
        "clipped_adamw_step", &clipped, nb::arg("decision"), nb::arg("entries"), nb::arg("options") = options,
        nb::arg("control") = control, nb::arg("device").none() = nb::none(),
        nb::sig("def clipped_adamw_step(decision: GradientDecision, entries: object, options: AdamWOptions = ..., "
                "control: StepControl = ..., device: Device | None = None) -> list[AdamWUpdate]"),
        "The update half of the guarded step with a decision got elsewhere, whose clip_multiplier must be in "
        "[0, 1] (InvalidOption).");
}

}  // namespace gradguard::python
