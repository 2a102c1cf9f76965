// SPDX-License-Identifier: Apache-2.0
// What a right result may be: legal sets, hulls, intervals, bounds of the norm, ulp.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <functional>

#include "harness/compare/enclosure.h"
#include "harness/compare/norm_bound.h"
#include "harness/compare/ulp.h"
#include "harness/compare/update_bound.h"
#include "python/src/bindings.h"
#include "reference/contract/error.h"
#include "reference/exact/real.h"
#include "reference/fp64/option_rules.h"
#include "reference/model/statistics.h"
#include "reference/model/update.h"

namespace gradguard::python {
namespace {

using reference::ElementState;
using reference::HostEntry;
using reference::UpdateCoefficients;

constexpr std::array<const char*, 4> kNames = {"parameters", "first_moment", "second_moment", "max_second_moment"};

/// Element i of an entry before its update; moments of a first update are +0 (contract section 6).
ElementState<float> old_element(const HostEntry& entry, std::uint64_t i) {
    ElementState<float> old;
    old.p = entry.parameters[i];
    if (!entry.state) return old;
    old.m = entry.state->first_moment[i];
    old.v = entry.state->second_moment[i];
    if (entry.state->max_second_moment) old.x = (*entry.state->max_second_moment)[i];
    return old;
}

std::vector<std::uint64_t> shape_of(const PyEntry& entry, std::uint64_t more = 0) {
    std::vector<std::uint64_t> shape = view_array(entry.parameters, {{}, "parameters"}).layout.shape;
    if (more > 0) shape.push_back(more);
    return shape;
}

/// New arrays, one for each operand that an update with these coefficients stores.
template <class T>
struct Arrays {
    std::array<T*, 4> data{};
    std::array<nb::object, 4> arrays;
    int count;

    Arrays(const std::vector<std::uint64_t>& shape, bool amsgrad) : count(amsgrad ? 4 : 3) {
        constexpr NewArray kKind = std::is_same_v<T, float>    ? NewArray::kFloat32
                                   : std::is_same_v<T, double> ? NewArray::kFloat64
                                                               : NewArray::kBool;
        for (int k = 0; k < count; ++k) {
            void* memory = nullptr;
            arrays[static_cast<std::size_t>(k)] = new_array(kKind, shape, &memory);
            data[static_cast<std::size_t>(k)] = static_cast<T*>(memory);
        }
    }
    nb::dict dict() const {
        nb::dict result;
        for (int k = 0; k < count; ++k)
            result[kNames[static_cast<std::size_t>(k)]] = arrays[static_cast<std::size_t>(k)];
        return result;
    }
};

/// {name: (lo, hi, may_be_nan)}.
template <class T>
nb::dict triples(const Arrays<T>& lo, const Arrays<T>& hi, const Arrays<bool>& nan) {
    nb::dict result;
    for (int i = 0; i < lo.count; ++i) {
        const auto k = static_cast<std::size_t>(i);
        result[kNames[k]] = nb::make_tuple(lo.arrays[k], hi.arrays[k], nan.arrays[k]);
    }
    return result;
}

template <class T, class Element, class Compute>
nb::dict enclose(const PyEntry& entry, const UpdateCoefficients& c, const Compute& compute) {
    const HostEntry host = host_entry(entry, 0);
    const std::vector<std::uint64_t> shape = shape_of(entry);
    const Arrays<T> lo(shape, c.amsgrad), hi(shape, c.amsgrad);
    const Arrays<bool> nan(shape, c.amsgrad);
    for (std::uint64_t i = 0; i < host.parameters.size(); ++i) {
        const auto element = compute(reference::raw_value(host.gradient_view(), i), old_element(host, i));
        const std::array<Element, 4> all = {element.p, element.m, element.v, element.x};
        for (int j = 0; j < lo.count; ++j) {
            const auto k = static_cast<std::size_t>(j);
            lo.data[k][i] = all[k].lo;
            hi.data[k][i] = all[k].hi;
            nan.data[k][i] = all[k].may_be_nan;
        }
    }
    return triples(lo, hi, nan);
}

nb::dict enclosure(const PyEntry& entry, const UpdateCoefficients& c, const harness::Abilities& abilities) {
    return enclose<double, harness::Interval>(entry, c, [&](float raw, const ElementState<float>& old) {
        return harness::intervals(raw, old, c, abilities);
    });
}

nb::dict hull(const PyEntry& entry, const UpdateCoefficients& c) {
    return enclose<float, harness::Hull>(
        entry, c, [&](float raw, const ElementState<float>& old) { return harness::legal_hulls(raw, old, c); });
}

nb::dict exact_update(const PyEntry& entry, const UpdateCoefficients& c) {
    const HostEntry host = host_entry(entry, 0);
    const Arrays<double> result(shape_of(entry), c.amsgrad);
    for (std::uint64_t i = 0; i < host.parameters.size(); ++i) {
        const auto exact =
            reference::exact_update(reference::raw_value(host.gradient_view(), i), old_element(host, i), c);
        const std::array<reference::Real, 4> all = {exact.p, exact.m, exact.v, exact.x};
        for (int k = 0; k < result.count; ++k) {
            result.data[static_cast<std::size_t>(k)][i] = reference::to_double(all[static_cast<std::size_t>(k)]);
        }
    }
    return result.dict();
}

/// What a subject stored for an entry; refuses other shapes.
HostEntry stored_entry(const PyEntry& entry, const PyUpdate& stored, bool amsgrad) {
    const PyEntry after{stored.parameters, entry.gradients, stored.state};
    HostEntry host = host_entry(after, 0);
    if (!host.state || host.state->max_second_moment.has_value() != amsgrad) {
        throw Error(ErrorKind::kInvalidState, {.operand = "stored"},
                    "want the moments that the update stored, with a maximum exactly for AMSGrad");
    }
    return host;
}

nb::dict legal_set(const PyEntry& entry, const PyUpdate& stored, const UpdateCoefficients& c) {
    const HostEntry before = host_entry(entry, 0);
    const HostEntry after = stored_entry(entry, stored, c.amsgrad);
    const Arrays<float> result(shape_of(entry, 3), c.amsgrad);
    for (std::uint64_t i = 0; i < before.parameters.size(); ++i) {
        const harness::ElementLegalSets sets = harness::legal_sets(reference::raw_value(before.gradient_view(), i),
                                                                   old_element(before, i), old_element(after, i), c);
        const std::array<harness::LegalSet, 4> all = {sets.p, sets.m, sets.v, sets.x};
        for (int j = 0; j < result.count; ++j) {
            const auto k = static_cast<std::size_t>(j);
            for (std::uint64_t way = 0; way < 3; ++way) result.data[k][3 * i + way] = all[k].values[way];
        }
    }
    return result.dict();
}

double norm_bound(const nb::object& sequence, float gradient_scale, harness::NormKind kind, bool flushes,
                  std::uint32_t block_limit) {
    require_scale(gradient_scale);
    require_blocks(block_limit);
    const Gradients group(sequence);
    const float r = reference::reciprocal_scale(gradient_scale);
    const double exact = reference::exact_norm(group.views, gradient_scale);
    if (!std::isfinite(exact)) throw nb::value_error("gradients: a bound needs finite gradients");
    if (kind != harness::NormKind::kContractTree) {
        std::uint64_t elements = 0;
        for (const reference::GradientView& view : group.views) elements += view.elements;
        return harness::any_order_bound(exact, elements, group.views.size(), r, flushes);
    }
    std::vector<harness::TreeBound> bounds;
    for (const reference::GradientView& view : group.views) bounds.push_back(harness::tree_bound(view, r, block_limit));
    return harness::norm_error_bound(bounds);
}

}  // namespace

void bind_enclosures(nb::module_& module) {
    module.def("exact_update", &exact_update, nb::arg("entry"), nb::arg("coefficients"),
               "The contract's lines over the reals (256 bits) from the entry's state with the FP32 coefficients as "
               "given, rounded once to FP64: a dict of float64 arrays of the parameter's shape, by 'parameters', "
               "'first_moment', 'second_moment' and, with AMSGrad, 'max_second_moment'.");
    module.def("legal_set", &legal_set, nb::arg("entry"), nb::arg("stored"), nb::arg("coefficients"),
               "The values that an update may store, by operand: float32 arrays of the parameter's shape and a last "
               "dimension of 3 (nothing fused, first product fused, second product fused). Of m and v from the "
               "entry's state; of x and p from the moments that `stored` (an AdamWUpdate) has.");
    module.def("hull", &hull, nb::arg("entry"), nb::arg("coefficients"),
               "Ends of what the 27 ways to contract the update may store, from the entry's state: a dict of "
               "(lo, hi, may_be_nan), float32 and bool arrays of the parameter's shape.");
    module.def("enclosure", &enclosure, nb::arg("entry"), nb::arg("coefficients"),
               nb::arg("abilities") = harness::Abilities{},
               "Intervals for what an update may store, from the entry's state, for a subject that may fuse, regroup "
               "or flush as its abilities declare: a dict of (lo, hi, may_be_nan), float64 and bool arrays of the "
               "parameter's shape. lo > hi: no number is possible.");
    module.def("norm_bound", &norm_bound, nb::arg("gradients"), nb::arg("gradient_scale") = 1.0F,
               nb::arg("kind") = harness::NormKind::kContractTree, nb::arg("flushes") = false,
               nb::arg("block_limit") = 1024U,
               "Bound on |total_norm - exact norm| for these gradients: along the contract's tree, or "
               "(NormKind.WithinBound) for an FP32 norm in any order. Raises ValueError for gradients that are not "
               "finite.");
    module.def("ulp_of", &harness::ulp_of, nb::arg("exact"),
               "The spacing of FP32 numbers at |exact|: at least 2**-149, at most 2**104.");
    module.def(
        "ulp_error", [](float got, double exact) { return harness::ulp_error(got, exact); }, nb::arg("got"),
        nb::arg("exact"), "|got - exact| in FP32 ulp of the exact result; never NaN.");
}

}  // namespace gradguard::python
