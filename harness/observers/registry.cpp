// SPDX-License-Identifier: Apache-2.0
#include "harness/observers/registry.h"

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "harness/observers/init.h"
#include "harness/observers/races.h"
#include "harness/vgpu/error.h"
#include "harness/vgpu/machine.h"

namespace gradguard::observers {
namespace {

constexpr std::string_view kSharedRaces = "shared-races";
constexpr std::string_view kGlobalRaces = "global-races";

struct Maker {
    std::string_view name;
    std::function<std::unique_ptr<Detector>(const ObserverOptions&)> make;
};

template <class T>
std::unique_ptr<Detector> make(const ObserverOptions&) {
    return std::make_unique<T>();
}

template <bool kShared, bool kGlobal>
std::unique_ptr<Detector> make_races(const ObserverOptions& options) {
    return std::make_unique<Races>(RaceOptions{kShared, kGlobal, options.same_value_writes});
}

const std::vector<Maker>& makers() {
    static const std::vector<Maker> all{{"bounds", make<Bounds>},
                                        {"init", make<Init>},
                                        {"registers", make<Registers>},
                                        {kSharedRaces, make_races<true, false>},
                                        {kGlobalRaces, make_races<false, true>},
                                        {"barriers", make<Barriers>},
                                        {"inputs", make<Inputs>},
                                        {"leaks", make<Leaks>},
                                        {"counts", make<Counts>}};
    return all;
}

std::string known_names() {
    std::string text = "all, none";
    for (const Maker& maker : makers()) text += ", " + std::string(maker.name);
    return text;
}

std::vector<std::string> split(std::string_view names) {
    if (names == "none") return {};
    if (names == "all") return observer_names();
    std::vector<std::string> result;
    for (;;) {
        const std::size_t comma = names.find(',');
        result.emplace_back(names.substr(0, comma));
        if (comma == std::string_view::npos) return result;
        names.remove_prefix(comma + 1);
    }
}

}  // namespace

std::vector<std::string> observer_names() {
    std::vector<std::string> names;
    for (const Maker& maker : makers()) names.emplace_back(maker.name);
    return names;
}

std::vector<std::unique_ptr<Detector>> make_observers(std::string_view names, const ObserverOptions& options) {
    const std::vector<std::string> wanted = split(names);
    const auto has = [&](std::string_view name) { return std::count(wanted.begin(), wanted.end(), name) != 0; };
    const bool joined = has(kSharedRaces) && has(kGlobalRaces);
    std::vector<std::unique_ptr<Detector>> detectors;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const std::string& name = wanted[i];
        const auto maker =
            std::find_if(makers().begin(), makers().end(), [&](const Maker& m) { return m.name == name; });
        if (maker == makers().end()) {
            throw std::invalid_argument(
                vgpu::one_line("unknown observer \"" + name + "\"; known are " + known_names()));
        }
        if (std::find(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(i), name) !=
            wanted.begin() + static_cast<std::ptrdiff_t>(i)) {
            throw std::invalid_argument("observer \"" + name + "\" is named twice; known are " + known_names());
        }
        if (joined && name == kGlobalRaces) continue;
        detectors.push_back(joined && name == kSharedRaces ? make_races<true, true>(options) : maker->make(options));
    }
    return detectors;
}

ObserverSet::ObserverSet(vgpu::Machine& machine, std::string_view names, const ObserverOptions& options)
    : machine_(machine), detectors_(make_observers(names, options)) {
    for (const auto& detector : detectors_) {
        if (auto* const inputs = dynamic_cast<Inputs*>(detector.get())) inputs_ = inputs;
        if (auto* const counts = dynamic_cast<Counts*>(detector.get())) counts_ = counts;
        machine_.attach(detector.get());
    }
}

ObserverSet::~ObserverSet() {
    for (const auto& detector : detectors_) machine_.detach(detector.get());
}

std::vector<Checked> ObserverSet::checked() const {
    std::vector<Checked> result;
    for (const auto& detector : detectors_) result.push_back(detector->checked());
    return result;
}

std::vector<vgpu::Finding> ObserverSet::final_findings() const {
    std::vector<vgpu::Finding> result;
    for (const auto& detector : detectors_) {
        for (vgpu::Finding& finding : detector->final_findings()) result.push_back(std::move(finding));
    }
    return result;
}

void add_checked(std::vector<Checked>& total, std::span<const Checked> run) {
    for (const Checked& more : run) {
        const auto known = std::find_if(total.begin(), total.end(),
                                        [&](const Checked& entry) { return entry.observer == more.observer; });
        if (known == total.end()) {
            total.push_back(more);
        } else {
            *known += more;
        }
    }
}

std::vector<std::string> checked_nothing(std::span<const Checked> total) {
    std::vector<std::string> names;
    for (const Checked& entry : total) {
        if (entry.nothing()) names.push_back(entry.observer);
    }
    return names;
}

}  // namespace gradguard::observers
