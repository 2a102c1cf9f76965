// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/subjects/subject.h"
#include "python/src/bindings.h"

namespace gradguard::python {

/// One step as a Python subject sees it. Entries hold new NumPy arrays.
struct PyCase {
    std::string operation;  ///< "guarded_step", "unguarded_step", "statistics"
    nb::list entries;
    AdamWOptions options;
    StepControl control;
    GradientGuardOptions guard;
    std::uint64_t step = 0;  ///< Of the case's steps, counted from 0.
    std::uint64_t schedule_seed = 0;
};

/// A subject does not take this case: nothing is asserted of it.
struct NotTaken : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A Python callable as a subject: `step(case)` gives a GuardedAdamWUpdate with the interpreter's lock, from any
/// thread.
class PythonSubject : public harness::Subject {
  public:
    /// Takes part in the ownership of `step`; the thread must hold the interpreter's lock.
    PythonSubject(nb::object step, std::string name, const harness::Abilities& abilities,
                  std::optional<float> guard_epsilon)
        : step_(std::move(step)), name_(std::move(name)), abilities_(abilities), guard_epsilon_(guard_epsilon) {}
    ~PythonSubject() override;
    PythonSubject(const PythonSubject&) = delete;
    PythonSubject& operator=(const PythonSubject&) = delete;

    const std::string& name() const override { return name_; }
    const harness::Abilities& abilities() const override { return abilities_; }
    /// Takes its steps one by one, each from what the one before left. Throws NotTaken for tensors that no NumPy array
    /// can be, and where the callable returns NotImplemented; nb::python_error for whatever it raises but the
    /// contract's errors, which are part of the outcome.
    harness::Outcome step(const harness::Case& c) override;

    /// The one guard epsilon that the subject knows, where it is not an option of it.
    const std::optional<float>& guard_epsilon() const { return guard_epsilon_; }

  private:
    harness::StepOutcome take(const PyCase& c) const;

    nb::object step_;
    std::string name_;
    harness::Abilities abilities_;
    std::optional<float> guard_epsilon_;
};

}  // namespace gradguard::python
