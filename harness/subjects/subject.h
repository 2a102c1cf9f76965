// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/case/abilities.h"
#include "harness/case/case.h"
#include "harness/case/outcome.h"

namespace gradguard::harness {

/// What is under test, as a value: it names itself, says what it can do, and steps a case to an outcome. Properties,
/// campaign and report know subjects only.
class Subject {
  public:
    virtual ~Subject() = default;
    virtual const std::string& name() const = 0;
    virtual const Abilities& abilities() const = 0;
    /// Takes all steps of the case, each from the state that the one before left. A function of the case alone: the
    /// same case gives the same outcome whatever ran before. Errors of the contract are part of the outcome; throws
    /// only when the subject cannot work at all. Not for several threads at once.
    virtual Outcome step(const Case& c) = 0;
};

/// How a subject is opened.
struct SubjectOptions {
    std::string device = "vgpu";    ///< See open_device(). The library's own name says it: "cuda/fmad".
    std::string observers = "all";  ///< Who watches the virtual GPU.
    std::string nvrtc = {};         ///< NVRTC of the subjects "...+nvrtc": a file or folder; empty: where it is found.
    /// Gets a line where something does not work that is no failure.
    std::function<void(const std::string&)> note = {};
};

struct SubjectInfo {
    std::string name;         ///< "vgpu/fmad", "vgpu/nofmad+nvrtc", "oracle", "planted/no-unscale", ...
    std::string description;  ///< One line.
    bool planted = false;     ///< Wrong on purpose.
};

/// All that this program knows, in a fixed order.
std::vector<SubjectInfo> list_subjects();

/// A new one, of the caller's own (one for each thread). Throws std::invalid_argument for an unknown name, with the
/// known ones; DeviceUnavailable, cuda::NvrtcUnavailable.
std::unique_ptr<Subject> make_subject(std::string_view name, const SubjectOptions& options = {});

/// The subject whose kernels are compiled by `compiler`, "ptx" (ahead of time) or "nvrtc", and that is otherwise the
/// same: "vgpu/fmad" and "nvrtc" give "vgpu/fmad+nvrtc". Throws std::invalid_argument where "nvrtc" has nothing to
/// compile: the oracle, a planted fault, ptx:FOLDER.
std::string subject_compiled_by(std::string_view subject, std::string_view compiler);

/// The library's subject on another device, "vgpu", "cuda" or "vdriver": "vgpu/fmad" and "cuda" give "cuda/fmad". Any
/// other subject keeps its name; SubjectOptions::device says where it runs.
std::string subject_on(std::string_view subject, std::string_view device);

}  // namespace gradguard::harness
