// SPDX-License-Identifier: Apache-2.0
#include "harness/io/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <span>
#include <string_view>

#include "harness/io/file_error.h"
#include "tests/support/temporary_folder.h"

namespace gradguard::harness {
namespace {

using testing::read_bytes;
using testing::TemporaryFolder;

void put(AtomicFile& file, std::string_view text) { file.write(std::as_bytes(std::span(text))); }

TEST(AtomicFile, NothingIsThereBeforeCommit) {
    const TemporaryFolder folder;
    AtomicFile file(folder.path("x"));
    put(file, "new");
    EXPECT_FALSE(std::filesystem::exists(folder.path("x")));
    file.commit();
    EXPECT_EQ(read_bytes(folder.path("x")), "new");
    EXPECT_EQ(folder.entries(), 1U);
}

TEST(AtomicFile, WithoutCommitTheOldFileStaysAndNothingIsLeft) {
    const TemporaryFolder folder;
    folder.write("x", "old");
    {
        AtomicFile file(folder.path("x"));
        put(file, "new");
    }
    EXPECT_EQ(read_bytes(folder.path("x")), "old");
    EXPECT_EQ(folder.entries(), 1U);
}

TEST(AtomicFile, AnOldFileIsReplaced) {
    const TemporaryFolder folder;
    folder.write("x", "old");
    AtomicFile file(folder.path("x"));
    put(file, "new");
    file.commit();
    EXPECT_EQ(read_bytes(folder.path("x")), "new");
}

TEST(AtomicFile, ANewFileDoesNotReplaceAnOldOne) {
    const TemporaryFolder folder;
    AtomicFile file(folder.path("x"));
    put(file, "new");
    folder.write("x", "old");
    EXPECT_THROW(file.commit_new(), FileError);
    EXPECT_EQ(read_bytes(folder.path("x")), "old");
}

TEST(AtomicFile, ANewFileAppearsWholeAndAlone) {
    const TemporaryFolder folder;
    AtomicFile file(folder.path("x"));
    put(file, "new");
    EXPECT_FALSE(std::filesystem::exists(folder.path("x")));
    file.commit_new();
    EXPECT_EQ(read_bytes(folder.path("x")), "new");
    EXPECT_EQ(folder.entries(), 1U);
}

TEST(AtomicFile, ALinkIsFollowed) {
    const TemporaryFolder folder;
    folder.write("target", "old");
    std::filesystem::create_symlink(folder.path("target"), folder.path("link"));
    AtomicFile file(folder.path("link"));
    put(file, "new");
    file.commit();
    EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
    EXPECT_EQ(read_bytes(folder.path("target")), "new");
}

TEST(AtomicFile, AFolderADeviceAndAPipeAreRefused) {
    const TemporaryFolder folder;
    EXPECT_THROW(AtomicFile(folder.path(".")), FileError);
    EXPECT_THROW(AtomicFile("/dev/null"), FileError);
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
    ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
    EXPECT_THROW(AtomicFile(folder.path("pipe")), FileError);
}

TEST(AtomicFile, AMissingFolderIsRefusedByName) {
    const TemporaryFolder folder;
    const std::string path = folder.path("none/x");
    try {
        AtomicFile file(path);
        FAIL() << "opened";
    } catch (const FileError& error) {
        EXPECT_EQ(std::string(error.what()), path + ": cannot write: No such file or directory");
    }
}

TEST(AtomicFile, NewFilesHaveOrdinaryPermissions) {
    const TemporaryFolder folder;
    AtomicFile file(folder.path("x"));
    file.commit();
    folder.write("plain", "");
    EXPECT_EQ(std::filesystem::status(folder.path("x")).permissions(),
              std::filesystem::status(folder.path("plain")).permissions());
}

}  // namespace
}  // namespace gradguard::harness
