// SPDX-License-Identifier: Apache-2.0
// Where NVRTC is looked for, and what is said when there is none, on folders laid out as toolkits and wheels are.
#include "kernels/cuda/nvrtc_search.h"

#include <gtest/gtest.h>

#include "tests/kernels/fake_nvrtc.h"

namespace gradguard::cuda {
namespace {

using testing::put_fake_nvrtc;
using testing::TemporaryFolder;

std::string message_of(const NvrtcPlaces& places, std::optional<CudaRelease> newest = std::nullopt) {
    try {
        return "found " + find_nvrtc(places, newest)->path();
    } catch (const NvrtcUnavailable& error) {
        return error.what();
    }
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(SearchForNvrtc, AToolkitHasItsLibraryInLib64LibOrTargets) {
    for (const char* name : {"lib64/libnvrtc.so.13", "lib/libnvrtc.so.13", "targets/x86_64-linux/lib/libnvrtc.so.12"}) {
        const TemporaryFolder folder;
        const std::string path = put_fake_nvrtc(folder, "12_4", name);
        EXPECT_EQ(find_nvrtc({{{"toolkit", folder.path(".")}}, {}, {}})->path(), path);
    }
}

TEST(SearchForNvrtc, AWheelHasItsLibraryBelowSitePackages) {
    for (const char* name : {"lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
                             "lib/python3.13/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
                             "lib/python3/dist-packages/nvidia/cu13/lib/libnvrtc.so.13"}) {
        const TemporaryFolder folder;
        const std::string path = put_fake_nvrtc(folder, "13_1", name);
        EXPECT_EQ(find_nvrtc({{}, {}, {{"VIRTUAL_ENV", folder.path(".")}}})->path(), path);
    }
}

TEST(SearchForNvrtc, APthFileLeadsToOtherPackages) {
    const TemporaryFolder folder;
    const std::string path = put_fake_nvrtc(folder, "13_1", "elsewhere/nvidia/cu13/lib/libnvrtc.so.13");
    std::filesystem::create_directories(folder.path("venv/lib/python3.11/site-packages"));
    folder.write("venv/lib/python3.11/site-packages/torch.pth",
                 "# a comment\nimport nothing\n" + folder.path("elsewhere"));
    EXPECT_EQ(find_nvrtc({{}, {}, {{"venv", folder.path("venv")}}})->path(), path);
}

TEST(SearchForNvrtc, AnEarlierPlaceIsPreferredAndWithinOneVersion13) {
    const TemporaryFolder folder;
    const std::string first = put_fake_nvrtc(folder, "12_4", "a/lib/libnvrtc.so.12");
    const std::string second = put_fake_nvrtc(folder, "12_4", "b/lib/libnvrtc.so.12");
    const std::string third = put_fake_nvrtc(folder, "13_1", "b/lib/libnvrtc.so.13");
    const NvrtcPlaces places{{{"a", folder.path("a")}, {"b", folder.path("b")}}, {}, {}};
    EXPECT_EQ(nvrtc_files(places), (std::vector{first, third, second}));
    EXPECT_EQ(find_nvrtc(places)->path(), first);
}

TEST(SearchForNvrtc, OneThatTheDriverTakesIsChosenBehindOneThatIsTooNew) {
    const TemporaryFolder folder;
    put_fake_nvrtc(folder, "13_1", "a/lib/libnvrtc.so.13");
    const std::string older = put_fake_nvrtc(folder, "12_4", "b/lib/libnvrtc.so.12");
    const NvrtcPlaces places{{{"a", folder.path("a")}, {"b", folder.path("b")}}, {}, {}};
    EXPECT_EQ(find_nvrtc(places, CudaRelease{13, 0})->path(), older);
    EXPECT_EQ(find_nvrtc(places, CudaRelease{12, 4})->path(), older);
    EXPECT_TRUE(contains(find_nvrtc(places, CudaRelease{13, 1})->path(), "/a/lib/"));
}

TEST(SearchForNvrtc, WithNoneThatTheDriverTakesTheMessageSaysWhichWereThere) {
    const TemporaryFolder folder;
    const std::string path = put_fake_nvrtc(folder, "12_4", "lib/libnvrtc.so.12");
    const std::string message = message_of({{{"toolkit", folder.path(".")}}, {}, {}}, CudaRelease{12, 3});
    EXPECT_TRUE(contains(message, "no newer than CUDA 12.3, which the driver takes")) << message;
    EXPECT_TRUE(contains(message, path + " is NVRTC 12.4")) << message;
}

TEST(SearchForNvrtc, TheMessageListsAllThatWasTried) {
    const TemporaryFolder folder;
    const std::string old = put_fake_nvrtc(folder, "11_8", "old/lib/libnvrtc.so");
    folder.write("libnvrtc.so.12", "no library");
    const NvrtcPlaces places{{{"CUDA_HOME", ""},
                              {"toolkit", folder.path("nowhere")},
                              {"old one", folder.path("old")},
                              {"toolkit", folder.path(".")}},
                             {"libgradguard-no-such.so.13"},
                             {{"VIRTUAL_ENV", folder.path("venv")}}};
    const std::string message = message_of(places);
    for (const std::string& part :
         {std::string("no NVRTC of version 12 or 13: CUDA_HOME (not there); "),
          "toolkit " + folder.path("nowhere") + " (no libnvrtc)", old + " is NVRTC 11.8, want version 12 or 13",
          std::string("cannot load ") + std::filesystem::canonical(folder.path("libnvrtc.so.12")).string(),
          std::string("cannot load libgradguard-no-such.so.13"),
          "VIRTUAL_ENV " + folder.path("venv") + " (no package nvidia-cuda-nvrtc)"}) {
        EXPECT_TRUE(contains(message, part)) << "want: " << part << "\ngot: " << message;
    }
    EXPECT_FALSE(contains(message, "\n")) << message;
}

TEST(SearchForNvrtc, ANamedFileIsTheOnlyOneThatIsLookedAt) {
    const TemporaryFolder folder;
    const std::string path = put_fake_nvrtc(folder, "12_4", "my_nvrtc.so");
    EXPECT_EQ(find_nvrtc(path)->path(), path);
    EXPECT_THROW(find_nvrtc(folder.path("absent.so")), NvrtcUnavailable);
}

TEST(SearchForNvrtc, ANamedFolderMayBeAToolkitAnEnvironmentOrTheLibrarysOwn) {
    for (const char* name :
         {"lib64/libnvrtc.so.13", "libnvrtc.so.13", "lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13"}) {
        const TemporaryFolder folder;
        const std::string path = put_fake_nvrtc(folder, "13_1", name);
        EXPECT_EQ(find_nvrtc(folder.path("."))->path(), path);
    }
}

TEST(SearchForNvrtc, TheUsualOnesBeginWithTheVariablesOfToolkits) {
    const NvrtcPlaces usual = NvrtcPlaces::usual();
    ASSERT_GE(usual.toolkits.size(), 3U);
    EXPECT_EQ(usual.toolkits[0].origin, "CUDA_HOME");
    EXPECT_EQ(usual.toolkits[1].origin, "CUDA_PATH");
    EXPECT_EQ(usual.toolkits[2].folder, "/usr/local/cuda");
    EXPECT_EQ(usual.names, (std::vector<std::string>{"libnvrtc.so.13", "libnvrtc.so.12"}));
    EXPECT_EQ(usual.environments.at(0).origin, "VIRTUAL_ENV");
}

}  // namespace
}  // namespace gradguard::cuda
