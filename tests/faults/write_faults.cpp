// SPDX-License-Identifier: Apache-2.0
// A library to be preloaded into a program. It counts the program's system calls that write to a watched folder, and
// lets one of them go wrong. The environment says what:
//   GRADGUARD_FAULT_FOLDER   files and folders whose path starts with this are watched
//   GRADGUARD_FAULT_COUNT    a file that a line is appended to for each watched call
//   GRADGUARD_FAULT_AT       the number of the call that goes wrong, from 0; none without it
//   GRADGUARD_FAULT          what: signal:N before the call, late:N after it, half:N after the first half of a write,
//                            error:N the call fails with this errno, short: a write writes half of what it was given
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

constexpr int kDescriptors = 1024;
bool watched_descriptor[kDescriptors];

enum class Kind { kNone, kSignal, kLate, kHalf, kError, kShort };

struct Fault {
    Kind kind = Kind::kNone;
    int number = 0;  // signal or errno
};

const char* setting(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

bool watched(const char* path) {
    const std::string_view folder = setting("GRADGUARD_FAULT_FOLDER");
    return !folder.empty() && std::string_view(path).starts_with(folder);
}
bool watched(int descriptor) { return descriptor >= 0 && descriptor < kDescriptors && watched_descriptor[descriptor]; }

template <class Function>
Function* real(const char* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// To the whole program, as Ctrl-C and kill do.
void send(int signal) { ::kill(::getpid(), signal); }

using Open = int(const char*, int, ...);
using Write = ssize_t(int, const void*, size_t);

/// Takes the call down; whether it is the one that goes wrong, and how.
Fault next_call(const char* name) {
    static int number = 0;
    const std::string line = std::string(name) + "\n";
    const int log = real<Open>("open")(setting("GRADGUARD_FAULT_COUNT"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (log >= 0) {
        (void)!real<Write>("write")(log, line.data(), line.size());
        real<int(int)>("close")(log);
    }
    const char* at = setting("GRADGUARD_FAULT_AT");
    if (*at == '\0' || std::atoi(at) != number++) return {};
    const std::string_view what = setting("GRADGUARD_FAULT");
    const std::size_t colon = what.find(':');
    const int argument = colon == std::string_view::npos ? 0 : std::atoi(what.data() + colon + 1);
    const std::string_view kind = what.substr(0, colon);
    if (kind == "signal") return {Kind::kSignal, argument};
    if (kind == "late") return {Kind::kLate, argument};
    if (kind == "half") return {Kind::kHalf, argument};
    if (kind == "error") return {Kind::kError, argument};
    if (kind == "short") return {Kind::kShort, 0};
    std::abort();
}

/// Any call but a write.
template <class Call>
int with_fault(const char* name, Call call) {
    const Fault fault = next_call(name);
    if (fault.kind == Kind::kError) {
        errno = fault.number;
        return -1;
    }
    if (fault.kind == Kind::kSignal) send(fault.number);
    const int result = call();
    const int error = errno;
    if (fault.kind == Kind::kLate || fault.kind == Kind::kHalf) send(fault.number);
    errno = error;
    return result;
}

int open_with_fault(const char* name, const char* path, int flags, mode_t mode) {
    if (!watched(path)) return real<Open>(name)(path, flags, mode);
    // What is only read is opened to be read back, but for a folder, which is opened to be flushed.
    const bool to_write = (flags & (O_ACCMODE | O_CREAT)) != 0;
    if (!to_write && (flags & O_DIRECTORY) == 0) return real<Open>(name)(path, flags, mode);
    const int descriptor =
        with_fault(to_write ? "open" : "open folder", [&] { return real<Open>(name)(path, flags, mode); });
    if (descriptor >= 0 && descriptor < kDescriptors) watched_descriptor[descriptor] = true;
    return descriptor;
}

mode_t mode_of(int flags, va_list arguments) {
    return (flags & O_CREAT) != 0 ? static_cast<mode_t>(va_arg(arguments, int)) : 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_with_fault("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return open_with_fault("open64", path, flags, mode);
}

ssize_t write(int descriptor, const void* data, size_t size) {
    const auto call = real<Write>("write");
    if (!watched(descriptor)) return call(descriptor, data, size);
    const Fault fault = next_call("write");
    switch (fault.kind) {
        case Kind::kError:
            errno = fault.number;
            return -1;
        case Kind::kSignal:
            send(fault.number);
            break;
        case Kind::kHalf: {
            const ssize_t written = call(descriptor, data, (size + 1) / 2);
            send(fault.number);
            return written;
        }
        case Kind::kShort:
            return call(descriptor, data, (size + 1) / 2);
        case Kind::kLate: {
            const ssize_t written = call(descriptor, data, size);
            send(fault.number);
            return written;
        }
        case Kind::kNone:
            break;
    }
    return call(descriptor, data, size);
}

int fsync(int descriptor) {
    // Nobody pulls the plug in these tests, and flushing is slow: what is watched is not flushed.
    return watched(descriptor) ? with_fault("fsync", [] { return 0; }) : real<int(int)>("fsync")(descriptor);
}

int close(int descriptor) {
    const auto call = [&] { return real<int(int)>("close")(descriptor); };
    if (!watched(descriptor)) return call();
    watched_descriptor[descriptor] = false;
    return with_fault("close", call);
}

int rename(const char* from, const char* to) {
    const auto call = [&] { return real<int(const char*, const char*)>("rename")(from, to); };
    return watched(to) ? with_fault("rename", call) : call();
}

int link(const char* from, const char* to) {
    const auto call = [&] { return real<int(const char*, const char*)>("link")(from, to); };
    return watched(to) ? with_fault("link", call) : call();
}

int unlink(const char* path) {
    const auto call = [&] { return real<int(const char*)>("unlink")(path); };
    return watched(path) ? with_fault("unlink", call) : call();
}

int mkdir(const char* path, mode_t mode) {
    const auto call = [&] { return real<int(const char*, mode_t)>("mkdir")(path, mode); };
    return watched(path) ? with_fault("mkdir", call) : call();
}

}  // extern "C"
