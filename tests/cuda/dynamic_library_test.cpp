// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/dynamic_library.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/support/temporary_folder.h"

namespace gradguard::cuda {
namespace {

std::string refusal(const std::function<void()>& action) {
    try {
        action();
    } catch (const LibraryError& error) {
        return error.what();
    }
    ADD_FAILURE() << "no error was thrown";
    return "";
}

TEST(DynamicLibrary, AFunctionOfALoadedLibraryCanBeCalled) {
    const DynamicLibrary library = DynamicLibrary::open("libm.so.6");
    EXPECT_EQ(library.function<double(double)>("sqrt")(9.0), 3.0);
    EXPECT_NE(library.path_of("sqrt").find("/libm.so.6"), std::string::npos) << library.path_of("sqrt");
}

TEST(DynamicLibrary, AMissingLibraryIsNamedWithWhatTheLoaderSaid) {
    EXPECT_EQ(
        refusal([] { DynamicLibrary::open("libno_such_thing.so.1"); }),
        "cannot load libno_such_thing.so.1: libno_such_thing.so.1: cannot open shared object file: No such file or "
        "directory");
}

TEST(DynamicLibrary, AFileThatIsNoLibraryIsRefusedWithWhatTheLoaderSaid) {
    const testing::TemporaryFolder folder;
    const std::string path =
        folder.write("libfake.so", "no library, but long enough to be one: " + std::string(100, '.'));
    const std::string message = refusal([&] { DynamicLibrary::open(path); });
    EXPECT_EQ(message.find("cannot load " + path + ": "), 0U) << message;
    EXPECT_NE(message.find("invalid ELF header"), std::string::npos) << message;
}

TEST(DynamicLibrary, AMissingSymbolIsNamedWithItsLibrary) {
    const DynamicLibrary library = DynamicLibrary::open("libm.so.6");
    EXPECT_EQ(library.find("cuInit"), nullptr);
    const std::string message = refusal([&] { library.function<int(unsigned)>("cuInit"); });
    EXPECT_EQ(message.find("libm.so.6 has no symbol cuInit: "), 0U) << message;
}

TEST(DynamicLibrary, TheFirstOfSeveralThatLoadsIsTaken) {
    EXPECT_EQ(DynamicLibrary::open_first({"libno_such_thing.so.1", "libm.so.6"}).name(), "libm.so.6");
}

TEST(DynamicLibrary, WhenNoneOfSeveralLoadsEachIsNamed) {
    const std::string message = refusal([] { DynamicLibrary::open_first({"libnone.so", "libnor_this.so"}); });
    EXPECT_EQ(message.find("cannot load libnone.so: "), 0U) << message;
    EXPECT_NE(message.find("; nor libnor_this.so: "), std::string::npos) << message;
    EXPECT_EQ(refusal([] { DynamicLibrary::open_first({}); }), "no library to load");
}

}  // namespace
}  // namespace gradguard::cuda
