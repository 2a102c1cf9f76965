// SPDX-License-Identifier: Apache-2.0
// A library with NVRTC's functions that compiles nothing: its PTX lists what it was given, and says how often it has
// been asked. GRADGUARD_FAKE_MAJOR and _MINOR are the release that it claims. What contains "#error" does not compile.
#include <cstddef>
#include <cstring>
#include <string>

struct FakeProgram {
    std::string text, ptx, log;
};

namespace {
int compilations = 0;

int copy(const std::string& text, char* to) {
    std::memcpy(to, text.c_str(), text.size() + 1);
    return 0;
}
}  // namespace

extern "C" {
int fake_nvrtc_compilations() { return compilations; }

int nvrtcVersion(int* major, int* minor) {
    *major = GRADGUARD_FAKE_MAJOR;
    *minor = GRADGUARD_FAKE_MINOR;
    return 0;
}
const char* nvrtcGetErrorString(int result) { return result == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR"; }
int nvrtcCreateProgram(FakeProgram** program, const char* text, const char* name, int headers, const char* const* texts,
                       const char* const* names) {
    *program = new FakeProgram{std::string(name) + "\n" + text, "", ""};
    for (int i = 0; i < headers; ++i) (*program)->text += std::string("\nheader ") + names[i] + "\n" + texts[i];
    return 0;
}
int nvrtcDestroyProgram(FakeProgram** program) {
    delete *program;
    *program = nullptr;
    return 0;
}
int nvrtcCompileProgram(FakeProgram* program, int count, const char* const* options) {
    ++compilations;
    if (program->text.find("#error") != std::string::npos) {
        program->log = "line 1: the log says why\n";
        return 6;
    }
    program->ptx = "// compilation " + std::to_string(compilations) + "\n";
    for (int i = 0; i < count; ++i) program->ptx += std::string("// option ") + options[i] + "\n";
    program->ptx += "/* " + program->text + " */\n";
    return 0;
}
int nvrtcGetPTXSize(FakeProgram* program, std::size_t* size) {
    *size = program->ptx.size() + 1;
    return 0;
}
int nvrtcGetPTX(FakeProgram* program, char* ptx) { return copy(program->ptx, ptx); }
int nvrtcGetProgramLogSize(FakeProgram* program, std::size_t* size) {
    *size = program->log.size() + 1;
    return 0;
}
int nvrtcGetProgramLog(FakeProgram* program, char* log) { return copy(program->log, log); }
}
