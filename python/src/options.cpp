// SPDX-License-Identifier: Apache-2.0
// The contract's options, and what a subject says of itself, as Python classes.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "harness/case/abilities.h"
#include "python/src/bindings.h"

namespace gradguard::python {
namespace {

std::string number(float x) { return nb::cast<std::string>(nb::repr(nb::float_(static_cast<double>(x)))); }
const char* truth(bool x) { return x ? "True" : "False"; }

std::string show(const AdamWOptions& o) {
    return "AdamWOptions(learning_rate=" + number(o.learning_rate) + ", beta1=" + number(o.beta1) +
           ", beta2=" + number(o.beta2) + ", epsilon=" + number(o.epsilon) +
           ", weight_decay=" + number(o.weight_decay) + ", amsgrad=" + truth(o.amsgrad) +
           ", maximize=" + truth(o.maximize) + ")";
}

void bind_contract_options(nb::module_& module) {
    nb::class_<AdamWOptions>(module, "AdamWOptions",
                             "Hyper-parameters of the update (contract section 1). Floats are rounded to FP32; valid "
                             "ranges in contract section 3, checked by the operations (InvalidOption).\n\nThe defaults "
                             "of epsilon and weight_decay are deliberately not PyTorch's.")
        .def(
            "__init__",
            [](AdamWOptions* self, float learning_rate, float beta1, float beta2, float epsilon, float weight_decay,
               bool amsgrad, bool maximize) {
                new (self) AdamWOptions{learning_rate, beta1, beta2, epsilon, weight_decay, amsgrad, maximize};
            },
            nb::arg("learning_rate") = 1e-3F, nb::arg("beta1") = 0.9F, nb::arg("beta2") = 0.999F,
            nb::arg("epsilon") = 1e-5F, nb::arg("weight_decay") = 1e-4F, nb::arg("amsgrad") = false,
            nb::arg("maximize") = false)
        .def_rw("learning_rate", &AdamWOptions::learning_rate)
        .def_rw("beta1", &AdamWOptions::beta1)
        .def_rw("beta2", &AdamWOptions::beta2)
        .def_rw("epsilon", &AdamWOptions::epsilon)
        .def_rw("weight_decay", &AdamWOptions::weight_decay)
        .def_rw("amsgrad", &AdamWOptions::amsgrad)
        .def_rw("maximize", &AdamWOptions::maximize)
        .def("__repr__", show);
    nb::class_<StepControl>(module, "StepControl",
                            "What a caller says about one step: gradient_scale is the loss scale that the gradients "
                            "are still multiplied by (finite, positive, with a finite FP32 reciprocal, else "
                            "InvalidOption); skip_update leaves everything unchanged.")
        .def(
            "__init__",
            [](StepControl* self, float gradient_scale, bool skip_update) {
                new (self) StepControl{gradient_scale, skip_update};
            },
            nb::arg("gradient_scale") = 1.0F, nb::arg("skip_update") = false)
        .def_rw("gradient_scale", &StepControl::gradient_scale)
        .def_rw("skip_update", &StepControl::skip_update)
        .def("__repr__", [](const StepControl& c) {
            return "StepControl(gradient_scale=" + number(c.gradient_scale) + ", skip_update=" + truth(c.skip_update) +
                   ")";
        });
    nb::enum_<NonFinitePolicy>(module, "NonFinitePolicy", "What to do with a group that holds a NaN or an infinity.")
        .value("Skip", NonFinitePolicy::kSkip, "Leave the whole group unchanged.")
        .value("Error", NonFinitePolicy::kError, "Raise NonFiniteGradients before any update is submitted.");
    nb::class_<GradientGuardOptions>(module, "GradientGuardOptions",
                                     "Options of the guard: max_norm (None: no clipping, finiteness is still checked), "
                                     "epsilon, nonfinite. Checked by the operations (InvalidOption).")
        .def(
            "__init__",
            [](GradientGuardOptions* self, std::optional<float> max_norm, float epsilon, NonFinitePolicy nonfinite) {
                new (self) GradientGuardOptions{max_norm, epsilon, nonfinite};
            },
            nb::arg("max_norm").none() = 1.0F, nb::arg("epsilon") = 1e-6F,
            nb::arg("nonfinite") = NonFinitePolicy::kSkip)
        .def_rw("max_norm", &GradientGuardOptions::max_norm)
        .def_rw("epsilon", &GradientGuardOptions::epsilon)
        .def_rw("nonfinite", &GradientGuardOptions::nonfinite)
        .def("__repr__", [](const GradientGuardOptions& g) {
            return "GradientGuardOptions(max_norm=" + (g.max_norm ? number(*g.max_norm) : std::string("None")) +
                   ", epsilon=" + number(g.epsilon) + ", nonfinite=NonFinitePolicy." +
                   std::string(to_string(g.nonfinite)) + ")";
        });
}

void bind_abilities(nb::module_& module) {
    using harness::Abilities;
    using harness::Contraction;
    using harness::NormKind;
    nb::enum_<NormKind>(module, "NormKind", "How a subject forms the norm.")
        .value("ContractTree", NormKind::kContractTree, "Contract section 4's tree: one legal bit pattern.")
        .value("WithinBound", NormKind::kWithinBound,
               "In some FP32 order of its own: held against the exact norm with a bound.")
        .value("Absent", NormKind::kNone, "It reports none.");
    nb::enum_<Contraction>(module, "Contraction", "Which contractions an update may have used (contract section 6).")
        .value("Forbidden", Contraction::kForbidden, "The lines' own bits.")
        .value("Allowed", Contraction::kAllowed, "Any multiplication fused into the addition it meets.");
    nb::class_<Abilities>(module, "Abilities",
                          "What a subject says it can do. A property that asks for more is not run on it; the judge "
                          "admits what is declared here and nothing else.")
        .def(
            "__init__",
            [](Abilities* self, bool f32, bool f16, bool bf16, bool amsgrad, bool maximize, bool skips, bool unguarded,
               bool validates, NormKind norm, Contraction contraction, bool reassociates, bool flushes,
               std::uint32_t block_limit) {
                new (self) Abilities{f32,       f16,  bf16,        amsgrad,      maximize, skips,      unguarded,
                                     validates, norm, contraction, reassociates, flushes,  block_limit};
            },
            nb::arg("f32") = true, nb::arg("f16") = true, nb::arg("bf16") = true, nb::arg("amsgrad") = true,
            nb::arg("maximize") = true, nb::arg("skips") = true, nb::arg("unguarded") = true,
            nb::arg("validates") = true, nb::arg("norm") = NormKind::kContractTree,
            nb::arg("contraction") = Contraction::kAllowed, nb::arg("reassociates") = false, nb::arg("flushes") = false,
            nb::arg("block_limit") = 1024U)
        .def_rw("f32", &Abilities::f32, "Takes float32 gradients.")
        .def_rw("f16", &Abilities::f16, "Takes float16 gradients.")
        .def_rw("bf16", &Abilities::bf16, "Takes bfloat16 gradients.")
        .def_rw("amsgrad", &Abilities::amsgrad)
        .def_rw("maximize", &Abilities::maximize)
        .def_rw("skips", &Abilities::skips, "Leaves the whole group alone when one value is bad.")
        .def_rw("unguarded", &Abilities::unguarded, "Offers the unguarded step.")
        .def_rw("validates", &Abilities::validates, "Refuses invalid cases with the contract's error kinds.")
        .def_rw("norm", &Abilities::norm)
        .def_rw("contraction", &Abilities::contraction)
        .def_rw("reassociates", &Abilities::reassociates, "May regroup sums and products of the update's lines.")
        .def_rw("flushes", &Abilities::flushes, "May take subnormals for zero.")
        .def_rw("block_limit", &Abilities::block_limit, "Blocks that its device grants.");
}

}  // namespace

void bind_options(nb::module_& module) {
    bind_contract_options(module);
    bind_abilities(module);
}

}  // namespace gradguard::python
