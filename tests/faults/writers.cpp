// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/writers.h"

#include <span>
#include <stdexcept>

#include "harness/io/safetensors.h"
#include "tests/support/temporary_folder.h"

namespace gradguard::testing {
namespace {

const std::string kSource = GRADGUARD_SOURCE_DIR;

using Words = std::vector<std::string>;

/// Bytes of a group file with one parameter of three elements.
std::string group_file() {
    const TemporaryFolder folder;
    const std::vector<float> parameters = {1.0F, -2.0F, 0.5F}, gradients = {0.5F, 0.25F, -1.0F};
    harness::write_safetensors(folder.path("group"),
                               {{"w.param", {"F32", {3}, std::as_bytes(std::span(parameters))}},
                                {"w.grad", {"F32", {3}, std::as_bytes(std::span(gradients))}}},
                               {});
    return read_bytes(folder.path("group"));
}

Words step(const std::string& folder) {
    return {"step", folder + "/group.safetensors", "--out", folder + "/new.safetensors"};
}

}  // namespace

const std::vector<Writer>& writers() {
    static const std::vector<Writer> all = {
        {"step_replaces", step, {{"group.safetensors", group_file()}, {"new.safetensors", "the old file"}}},
        {"step_creates", step, {{"group.safetensors", group_file()}}},
        {"hunt",
         [](const std::string& folder) {
             return Words{"hunt",          "--objective", "m/fmad", "--objective",    "v/fmad",
                          "--evaluations", "50",          "--out",  folder + "/finds"};
         },
         {{"finds/m-fmad.json", "{}\n"}}},
        {.name = "check_report",
         .arguments =
             [](const std::string& folder) {
                 return Words{"check", "--cases",  "2",    "--only",   "guarded_step",    "--jobs",
                              "1",     "--corpus", "none", "--report", folder + "/report"};
             },
         .before = {{"report/report.json", "{}\n"}},
         .stops = true},
        {.name = "check_failure",
         .arguments =
             [](const std::string& folder) {
                 return Words{"check",     "--cases",           "100", "--jobs", "1", "--corpus", folder + "/corpus",
                              "--subject", "planted/no-unscale"};
             },
         .before = {},
         .status = 1,
         .stops = true,
         .has_another_place = true},
        {"ptx",
         [](const std::string& folder) {
             return Words{"ptx",     kSource + "/tests/cli/programs/small.ptx",
                          "--entry", "saxpy",
                          "--grid",  "2",
                          "--block", "64",
                          "--arg",   "u32:100",
                          "--arg",   "f32:0x1p-1",
                          "--arg",   "f32[100]:iota",
                          "--arg",   "f32[100]:zero",
                          "--out",   "3=" + folder + "/out.bin"};
         },
         {{"out.bin", "the old file"}}}};
    return all;
}

const Writer& writer_named(const std::string& name) {
    for (const Writer& writer : writers()) {
        if (writer.name == name) return writer;
    }
    throw std::invalid_argument("no writer " + name);
}

}  // namespace gradguard::testing
