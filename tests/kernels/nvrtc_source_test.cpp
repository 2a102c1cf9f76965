// SPDX-License-Identifier: Apache-2.0
// When and with what the kernels are compiled, on a library that stands in for NVRTC.
#include "kernels/cuda/nvrtc_source.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "kernels/cuda/device_sources.h"
#include "reference/contract/error.h"
#include "tests/kernels/fake_nvrtc.h"

namespace gradguard::cuda {
namespace {

using testing::compilations;
using testing::put_fake_nvrtc;
using testing::read_bytes;
using testing::TemporaryFolder;

/// A fake of its own with a cache of its own.
class NvrtcSourceTest : public ::testing::Test {
  protected:
    NvrtcOptions options(bool contracted = true) {
        NvrtcOptions options;
        options.contracted = contracted;
        options.library = library_;
        options.cache_folder = folder_.path("cache");
        options.note = [this](const std::string& note) { notes_.push_back(note); };
        return options;
    }
    TemporaryFolder folder_;
    std::string library_ = put_fake_nvrtc(folder_, "13_1", "libnvrtc.so.13");
    std::vector<std::string> notes_;
};
using KernelCompilation = NvrtcSourceTest;

TEST(DeviceSources, AreTheFilesOfTheTree) {
    const std::filesystem::path root = GRADGUARD_SOURCE_DIR;
    for (const char* module : {"statistics", "update"}) {
        const ProgramSource source = device_source(module);
        EXPECT_EQ(source.text, read_bytes(root / source.name));
        std::size_t others = 1;  // the contract's constants
        for (const auto& entry : std::filesystem::directory_iterator(root / "kernels/device")) {
            others += entry.path().extension() == ".cu" ? 0 : 1;
        }
        EXPECT_EQ(source.headers.size(), others);
        for (const auto& [name, text] : source.headers) EXPECT_EQ(text, read_bytes(root / name)) << name;
    }
    EXPECT_THROW(device_source("norm"), std::out_of_range);
}

TEST_F(KernelCompilation, AModuleIsCompiledWhenItIsFirstAskedFor) {
    const KernelSource source = nvrtc_source(options());
    EXPECT_EQ(compilations(library_), 0);
    source.ptx("statistics");
    EXPECT_EQ(compilations(library_), 1);
    source.ptx("update");
    EXPECT_EQ(compilations(library_), 2);
}

TEST_F(KernelCompilation, IsNotDoneAgainForTheSameSourcesAndFlags) {
    const std::string first = nvrtc_source(options()).ptx("update");
    EXPECT_EQ(nvrtc_source(options()).ptx("update"), first);
    EXPECT_EQ(compilations(library_), 1);
}

TEST_F(KernelCompilation, IsDoneAgainForOtherFlags) {
    nvrtc_source(options(true)).ptx("update");
    nvrtc_source(options(false)).ptx("update");
    NvrtcOptions other = options();
    other.architecture = "compute_90";
    nvrtc_source(other).ptx("update");
    EXPECT_EQ(compilations(library_), 3);
}

TEST_F(KernelCompilation, IsDoneAgainByAnotherLibrary) {
    nvrtc_source(options()).ptx("update");
    NvrtcOptions other = options();
    other.library = put_fake_nvrtc(folder_, "13_1", "copy/libnvrtc.so.13");
    nvrtc_source(other).ptx("update");
    EXPECT_EQ(compilations(other.library), 1);
}

TEST_F(KernelCompilation, IsDoneAgainWhenTheLibraryWasReplaced) {
    nvrtc_source(options()).ptx("update");
    std::filesystem::last_write_time(library_, std::filesystem::last_write_time(library_) + std::chrono::seconds(1));
    nvrtc_source(options()).ptx("update");
    EXPECT_EQ(compilations(library_), 2);
}

TEST_F(KernelCompilation, IsDoneAgainForADamagedEntryWhichIsRepaired) {
    const std::string first = nvrtc_source(options()).ptx("update");
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path("cache"))) {
        std::filesystem::resize_file(entry.path(), 100);
    }
    EXPECT_NE(nvrtc_source(options()).ptx("update"), first) << "the fake numbers its compilations";
    nvrtc_source(options()).ptx("update");
    EXPECT_EQ(compilations(library_), 2);
    EXPECT_TRUE(notes_.empty());
}

TEST_F(KernelCompilation, WithoutACacheIsNotedOnceAndWorks) {
    NvrtcOptions none = options();
    folder_.write("file", "");
    none.cache_folder = folder_.path("file");
    const KernelSource source = nvrtc_source(none);
    EXPECT_NE(source.ptx("update"), "");
    EXPECT_NE(source.ptx("statistics"), "");
    ASSERT_EQ(notes_.size(), 1U);
    EXPECT_EQ(notes_[0], "compiled kernels are not kept in " + folder_.path("file") + ": it is no folder");
}

TEST_F(KernelCompilation, AsksForTheFlagsOfTheKernelsCompiledAheadOfTime) {
    const std::string ptx = nvrtc_source(options(false)).ptx("statistics");
    for (const char* flag : {"-arch=compute_80", "-std=c++20", "-lineinfo", "-fmad=false"}) {
        EXPECT_NE(ptx.find(std::string("// option ") + flag + "\n"), std::string::npos) << flag;
    }
    EXPECT_NE(nvrtc_source(options(true)).ptx("statistics").find("-fmad=true\n"), std::string::npos);
    EXPECT_NE(ptx.find("kernels/device/statistics.cu\n"), std::string::npos);
    EXPECT_NE(ptx.find("\nheader reference/contract/constants.h\n"), std::string::npos);
}

TEST_F(KernelCompilation, ThatFailsHasTheCompilersLog) {
    try {
        Nvrtc::load(library_)->compile({"wrong.cu", "#error", {}}, {});
        FAIL();
    } catch (const CompileError& error) {
        EXPECT_EQ(error.what(), "NVRTC 13.1 (" + library_ +
                                    ") does not compile wrong.cu: NVRTC_ERROR_COMPILATION\nline 1: the log says why");
    }
}

TEST_F(KernelCompilation, OfWhatIsInTheCacheDoesWithoutLoadingTheLibrary) {
    // Another process loads it: the loader would give this one a library again that it has.
    const pid_t other = ::fork();
    if (other == 0) ::_exit(nvrtc_source(options()).ptx("update").empty() ? 1 : 0);
    int status = -1;
    ASSERT_EQ(::waitpid(other, &status, 0), other);
    ASSERT_EQ(status, 0);
    // No library any more, and the same to look at from outside.
    const auto written = std::filesystem::last_write_time(library_);
    const auto bytes = std::filesystem::file_size(library_);
    folder_.write("libnvrtc.so.13", std::string(bytes, 'x'));
    std::filesystem::last_write_time(library_, written);
    const KernelSource source = nvrtc_source(options());
    EXPECT_NE(source.ptx("update"), "");
    EXPECT_THROW(source.ptx("statistics"), Error) << "this one is not in the cache";
}

TEST_F(KernelCompilation, IsNamedByBuildAndRelease) {
    EXPECT_EQ(nvrtc_source(options(true)).name, "fmad, NVRTC 13.1");
    EXPECT_EQ(nvrtc_source(options(false)).name, "nofmad, NVRTC 13.1");
}

TEST_F(KernelCompilation, ByALibraryThatIsTooNewForTheDriverIsRefusedAtOnce) {
    NvrtcOptions limited = options();
    limited.newest = CudaRelease{12, 9};
    EXPECT_THROW(nvrtc_source(limited), NvrtcUnavailable);
}

TEST(ReleasesOfNvrtc, AreTakenAndNoOther) {
    EXPECT_EQ(Nvrtc::load(testing::fake_nvrtc("12_4"))->release(), (CudaRelease{12, 4}));
    EXPECT_EQ(Nvrtc::load(testing::fake_nvrtc("13_1"))->release(), (CudaRelease{13, 1}));
    EXPECT_THROW(Nvrtc::load(testing::fake_nvrtc("11_8")), NvrtcUnavailable);
}

TEST(ReleasesOfNvrtc, ALibraryWithoutItsFunctionsIsNone) {
    try {
        Nvrtc::load("libm.so.6");
        FAIL();
    } catch (const NvrtcUnavailable& error) {
        EXPECT_NE(std::string(error.what()).find("has no symbol nvrtcVersion"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace gradguard::cuda
