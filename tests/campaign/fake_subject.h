// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "harness/subjects/oracle_subject.h"
#include "harness/subjects/subject.h"

namespace gradguard::testing {

/// The oracle under another name, its outcomes changed: wrong in a known way.
class FakeSubject : public harness::Subject {
  public:
    using Change = std::function<void(const harness::Case&, harness::Outcome&)>;
    FakeSubject(std::string name, Change change)
        : name_(std::move(name)), change_(std::move(change)), oracle_(harness::make_oracle_subject()) {}

    const std::string& name() const override { return name_; }
    const harness::Abilities& abilities() const override { return oracle_->abilities(); }
    harness::Outcome step(const harness::Case& c) override {
        harness::Outcome outcome = oracle_->step(c);
        if (change_) change_(c, outcome);
        return outcome;
    }

  private:
    std::string name_;
    Change change_;
    std::unique_ptr<harness::Subject> oracle_;
};

/// Every name opens the oracle with the same change.
inline harness::SubjectFactory fake_factory(FakeSubject::Change change) {
    return [change = std::move(change)](std::string_view name) {
        return std::make_unique<FakeSubject>(std::string(name), change);
    };
}

}  // namespace gradguard::testing
