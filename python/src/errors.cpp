// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>

#include "harness/devices/registry.h"
#include "python/src/bindings.h"
#include "reference/contract/error.h"

namespace gradguard::python {
namespace {

/// Sets the Python exception of the kind's name (gradguard/_errors.py).
void set_error(std::string_view kind, const ErrorSite& site, const std::string& message) {
    const nb::object type = nb::module_::import_("gradguard._errors").attr(std::string(kind).c_str());
    const nb::object entry = site.entry ? nb::object(nb::int_(*site.entry)) : nb::none();
    const nb::object error = type(message, nb::arg("entry") = entry, nb::arg("operand") = site.operand);
    PyErr_SetObject(type.ptr(), error.ptr());
}

}  // namespace

void bind_errors() {
    nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
        try {
            std::rethrow_exception(thrown);
        } catch (const Error& error) {
            set_error(to_string(error.kind()), error.site(), error.message());
        } catch (const harness::DeviceUnavailable& error) {
            set_error(to_string(ErrorKind::kUnsupportedDevice), {.operand = "device"}, error.what());
        }
    });
}

}  // namespace gradguard::python
