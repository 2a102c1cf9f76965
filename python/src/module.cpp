// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "python/src/bindings.h"

NB_MODULE(_core, module) {
    using namespace gradguard::python;
    module.doc() = "The library, the virtual GPU, the oracle and the properties; use it through `gradguard`.";
    // Objects in globals of modules that the interpreter never clears look like leaks at its end: on demand only.
    nb::set_leak_warnings(std::getenv("GRADGUARD_LEAK_WARNINGS") != nullptr);
    load_numpy();
    bind_errors();
    bind_options(module);
    bind_objects(module);
    bind_steps(module);
    nb::module_ reference = module.def_submodule("reference", "The oracle: what is true, computed on the host.");
    bind_reference(reference);
    bind_enclosures(reference);
    bind_check(module);
}
