// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/compile_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "kernels/cuda/sha256.h"
#include "tests/support/temporary_folder.h"

namespace gradguard::cuda {
namespace {

using testing::read_bytes;
using testing::TemporaryFolder;

const std::string kKey = sha256_hex("a key");
const std::string kText = "the text\nof several\nlines, a zero byte among them" + std::string(1, '\0') + "\n";

TEST(Sha256, HasTheDigestsOfTheStandard) {
    // FIPS 180-4, the examples of its publication, and the empty message.
    EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(
        sha256_hex("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrs"
                   "mnopqrstnopqrstu"),
        "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnThePiecesThatBytesComeIn) {
    for (std::size_t length : {0U, 1U, 55U, 56U, 63U, 64U, 65U, 119U, 128U, 200U}) {
        std::string bytes;
        for (std::size_t i = 0; i < length; ++i) bytes.push_back(static_cast<char>(7 * i + length));
        const std::string whole = sha256_hex(bytes);
        for (std::size_t cut = 0; cut <= length; ++cut) {
            EXPECT_EQ(Sha256().add(bytes.substr(0, cut)).add(bytes.substr(cut)).hex(), whole) << length << " " << cut;
        }
    }
}

TEST(Sha256, FieldsThatAreCutElsewhereAreOtherFields) {
    EXPECT_NE(Sha256().add_field("ab").add_field("c").hex(), Sha256().add_field("a").add_field("bc").hex());
    EXPECT_NE(Sha256().add_field("").add_field("a").hex(), Sha256().add_field("a").hex());
}

TEST(CompileCache, GivesBackWhatWasStoredInAnotherProcessToo) {
    const TemporaryFolder folder;
    CompileCache(folder.path("cache")).store(kKey, kText);
    CompileCache again(folder.path("cache"));
    EXPECT_EQ(again.find(kKey), kText);
    EXPECT_EQ(again.find(sha256_hex("another key")), std::nullopt);
    EXPECT_EQ(again.problem(), "");
}

TEST(CompileCache, MakesItsFolderForThisUserAlone) {
    const TemporaryFolder folder;
    const CompileCache cache(folder.path("deep/er/cache"));
    struct stat status = {};
    ASSERT_EQ(::stat(folder.path("deep/er/cache").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

TEST(CompileCache, LeavesOneFileForAnEntryAndNothingElse) {
    const TemporaryFolder folder;
    CompileCache cache(folder.path("cache"));
    cache.store(kKey, kText);
    cache.store(kKey, kText);
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path("cache"))) {
        names.push_back(entry.path().filename().string());
    }
    EXPECT_EQ(names, std::vector{kKey + ".cached"});
}

TEST(CompileCache, EveryFlippedBitCutAndAppendedByteIsNoEntry) {
    const TemporaryFolder folder;
    CompileCache cache(folder.path("cache"));
    cache.store(kKey, kText);
    const std::string file = "cache/" + kKey + ".cached";
    const std::string whole = read_bytes(folder.path(file));
    for (std::size_t i = 0; i < whole.size(); ++i) {
        std::string damaged = whole;
        damaged[i] = static_cast<char>(damaged[i] ^ 1);
        folder.write(file, damaged);
        EXPECT_EQ(cache.find(kKey), std::nullopt) << "byte " << i;
        folder.write(file, whole.substr(0, i));
        EXPECT_EQ(cache.find(kKey), std::nullopt) << "cut at " << i;
    }
    folder.write(file, whole + "\n");
    EXPECT_EQ(cache.find(kKey), std::nullopt);
    cache.store(kKey, kText);
    EXPECT_EQ(cache.find(kKey), kText) << "a damaged entry is written anew";
}

TEST(CompileCache, TheFileOfAnotherKeyIsNoEntry) {
    const TemporaryFolder folder;
    CompileCache cache(folder.path("cache"));
    cache.store(sha256_hex("another key"), kText);
    std::filesystem::rename(folder.path("cache/" + sha256_hex("another key") + ".cached"),
                            folder.path("cache/" + kKey + ".cached"));
    EXPECT_EQ(cache.find(kKey), std::nullopt);
}

TEST(CompileCache, AFolderThatCannotBeMadeIsAProblemAndNoFailure) {
    const TemporaryFolder folder;
    folder.write("file", "");
    for (const char* name : {"file", "file/cache"}) {
        CompileCache cache(folder.path(name));
        EXPECT_NE(cache.problem().find("compiled kernels are not kept in " + folder.path(name) + ": "),
                  std::string::npos)
            << cache.problem();
        cache.store(kKey, kText);
        EXPECT_EQ(cache.find(kKey), std::nullopt);
    }
}

TEST(CompileCache, AFolderThatVanishesIsAProblemAndNoFailure) {
    const TemporaryFolder folder;
    CompileCache cache(folder.path("cache"));
    std::filesystem::remove(folder.path("cache"));
    EXPECT_EQ(cache.find(kKey), std::nullopt);
    cache.store(kKey, kText);
    EXPECT_NE(cache.problem(), "");
}

TEST(CompileCache, AFolderThatEveryUserMayWriteToIsNotTrusted) {
    const TemporaryFolder folder;
    ASSERT_EQ(::mkdir(folder.path("open").c_str(), 0700), 0);
    ASSERT_EQ(::chmod(folder.path("open").c_str(), 0777), 0);
    EXPECT_NE(CompileCache(folder.path("open")).problem().find("every user may write there"), std::string::npos);
}

TEST(CompileCache, WithoutAFolderNothingIsKept) {
    CompileCache cache("");
    cache.store(kKey, kText);
    EXPECT_EQ(cache.find(kKey), std::nullopt);
    EXPECT_EQ(cache.problem(), "");
}

TEST(CompileCache, ManyWritersAndReadersSeeWholeEntriesOnly) {
    const TemporaryFolder folder;
    const std::string long_text(20000, 'x');
    std::atomic<int> wrong{0}, seen{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&] {
            CompileCache cache(folder.path("cache"));
            for (int round = 0; round < 20; ++round) {
                cache.store(kKey, long_text);
                const auto found = cache.find(kKey);
                // A reader that finds a broken file would say nothing; every file here was whole when it appeared.
                (found == long_text ? seen : wrong)++;
            }
            if (!cache.problem().empty()) ++wrong;
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(seen, 160);
}

/// Sets a variable for one test.
class Variable {
  public:
    Variable(const char* name, const char* value) : name_(name) {
        if (const char* old = std::getenv(name)) old_ = old;
        value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
    }
    ~Variable() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

  private:
    const char* name_;
    std::optional<std::string> old_;
};

TEST(CompileCache, TheUsualFolderFollowsTheBaseDirectories) {
    const Variable home("HOME", "/home/somebody");
    {
        const Variable cache("XDG_CACHE_HOME", "/var/cache");
        EXPECT_EQ(CompileCache::usual_folder(), "/var/cache/gradguard");
    }
    for (const char* ignored : {static_cast<const char*>(nullptr), "", "relative"}) {
        const Variable cache("XDG_CACHE_HOME", ignored);
        EXPECT_EQ(CompileCache::usual_folder(), "/home/somebody/.cache/gradguard");
        const Variable none("HOME", nullptr);
        EXPECT_EQ(CompileCache::usual_folder(), "");
    }
}

}  // namespace
}  // namespace gradguard::cuda
