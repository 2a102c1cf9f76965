// SPDX-License-Identifier: Apache-2.0
#include "harness/io/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "tests/support/temporary_folder.h"

namespace gradguard::harness {
namespace {

using testing::read_bytes;
using testing::TemporaryFolder;

std::string length_bytes(std::uint64_t length) {
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    return bytes;
}

std::string file_bytes(const std::string& header, const std::string& data = {}) {
    return length_bytes(header.size()) + header + data;
}

/// What is said about a file of these bytes; empty when it is taken.
std::string refusal(const std::string& bytes) {
    const TemporaryFolder folder;
    const std::string path = folder.write("x.safetensors", bytes);
    try {
        const SafetensorsFile file(path);
        return {};
    } catch (const FileError& error) {
        const std::string text = error.what();
        EXPECT_EQ(text.find('\n'), std::string::npos) << "one line: " << text;
        EXPECT_EQ(text.rfind(path, 0), 0U) << "the file's name first: " << text;
        return text.substr(path.size());
    }
}

std::string header_refusal(const std::string& header, const std::string& data = {}) {
    return refusal(file_bytes(header, data));
}

::testing::AssertionResult says(const std::string& text, const std::string& part) {
    if (!text.empty() && text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "want \"" << part << "\" in \"" << text << "\"";
}

std::string one(const std::string& fields) { return "{\"a\":{" + fields + "}}"; }

const std::string kFour = one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])");

TEST(Safetensors, ASmallFileIsRead) {
    const TemporaryFolder folder;
    const float values[] = {1.5F, -0.0F, 3e38F};
    const std::string data(reinterpret_cast<const char*>(values), sizeof values);
    const SafetensorsFile file(folder.write(
        "a", file_bytes(R"({"__metadata__":{"k":"v"},"w":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})", data)));
    ASSERT_EQ(file.tensors().size(), 1U);
    const SafetensorsTensor& tensor = file.tensors().at("w");
    EXPECT_EQ(tensor.dtype, "F32");
    EXPECT_EQ(tensor.shape, std::vector<std::uint64_t>{3});
    EXPECT_TRUE(std::ranges::equal(file.data(tensor), std::as_bytes(std::span(values))));
    EXPECT_EQ(file.metadata().at("k"), "v");
}

TEST(Safetensors, AnEmptyHeaderIsAGroupOfNothing) { EXPECT_EQ(header_refusal("{}"), ""); }

TEST(Safetensors, SpacesAfterTheHeaderAreTaken) { EXPECT_EQ(header_refusal("{}      "), ""); }

TEST(Safetensors, RankZeroIsOneElement) {
    EXPECT_EQ(header_refusal(one(R"("dtype":"F32","shape":[],"data_offsets":[0,4])"), "abcd"), "");
}

TEST(Safetensors, AZeroDimensionNeedsNoData) {
    EXPECT_EQ(header_refusal(one(R"("dtype":"F32","shape":[3,0],"data_offsets":[0,0])")), "");
}

TEST(Safetensors, HugeDimensionsBesideAZeroAreLeftToTheContract) {
    EXPECT_EQ(header_refusal(one(R"("dtype":"F32","shape":[18446744073709551615,2,0],"data_offsets":[0,0])")), "");
}

TEST(Safetensors, AMissingFileIsRefused) { EXPECT_THROW(SafetensorsFile("/nonexistent/x.safetensors"), FileError); }

TEST(Safetensors, AFolderIsRefused) {
    const TemporaryFolder folder;
    EXPECT_THROW(SafetensorsFile(folder.path(".")), FileError);
}

TEST(Safetensors, AFileShorterThanItsLengthFieldIsRefused) {
    EXPECT_TRUE(says(refusal(""), "truncated: 0 bytes"));
    EXPECT_TRUE(says(refusal("1234567"), "truncated: 7 bytes"));
}

TEST(Safetensors, AHeaderLongerThanTheFileIsRefused) {
    EXPECT_TRUE(says(refusal(length_bytes(3) + "{}"), "truncated: the header claims 3 bytes, the file has 2"));
}

TEST(Safetensors, AHeaderOfAGigabyteIsRefusedByItsLength) {
    EXPECT_TRUE(says(refusal(length_bytes(1ULL << 30U) + "{}"), "claims 1073741824 bytes, at most 100000000"));
    EXPECT_TRUE(says(refusal(length_bytes(~0ULL) + "{}"), "claims 18446744073709551615 bytes"));
}

TEST(Safetensors, AHeaderOfNoBytesIsRefused) { EXPECT_TRUE(says(refusal(length_bytes(0)), "not a JSON object")); }

TEST(Safetensors, AHeaderThatIsNotJsonIsRefused) {
    EXPECT_TRUE(says(header_refusal("{"), "not valid JSON"));
    EXPECT_TRUE(says(header_refusal("{} x"), "not valid JSON"));
    EXPECT_TRUE(says(header_refusal("{\"a\" 1}"), "not valid JSON"));
    EXPECT_TRUE(says(header_refusal("{}{}"), "not valid JSON"));
    EXPECT_TRUE(says(header_refusal(std::string("{}\0\0", 4)), "zero byte"));
    EXPECT_TRUE(says(header_refusal("{\"__metadata__\":{}/**/}"), "not valid JSON"));
}

TEST(Safetensors, AHeaderThatIsNotUtf8IsRefused) {
    EXPECT_TRUE(says(header_refusal("{\"\xff\":{}}"), "not valid JSON"));
    EXPECT_TRUE(says(header_refusal("\xef\xbb\xbf{}"), "not a JSON object"));
}

TEST(Safetensors, AHeaderThatIsNotAnObjectIsRefused) {
    EXPECT_TRUE(says(header_refusal("[]"), "not a JSON object"));
    EXPECT_TRUE(says(header_refusal("null"), "not a JSON object"));
    EXPECT_TRUE(says(header_refusal(" {}"), "not a JSON object"));
}

TEST(Safetensors, DeepNestingIsRefusedAtItsFirstLevel) {
    EXPECT_TRUE(says(header_refusal("{\"a\":" + std::string(1000000, '[')), "not an object: got an array"));
}

TEST(Safetensors, DuplicateNamesAreRefused) {
    const std::string tensor = R"({"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
    EXPECT_TRUE(says(header_refusal("{\"a\":" + tensor + ",\"a\":" + tensor + "}"), "\"a\": the name appears twice"));
    EXPECT_TRUE(says(header_refusal("{\"a\":" + tensor + ",\"\\u0061\":" + tensor + "}"), "the name appears twice"));
    EXPECT_TRUE(says(header_refusal(R"({"__metadata__":{},"__metadata__":{}})"), "__metadata__ appears twice"));
    EXPECT_TRUE(says(header_refusal(R"({"__metadata__":{"k":"1","k":"2"}})"), "metadata name \"k\" appears twice"));
    EXPECT_TRUE(says(header_refusal(one(R"("dtype":"F32","dtype":"F32")")), "\"dtype\" appears twice"));
    EXPECT_TRUE(says(header_refusal(one(R"("shape":[],"shape":[])")), "\"shape\" appears twice"));
}

TEST(Safetensors, AnUnknownDtypeIsRefused) {
    EXPECT_TRUE(says(header_refusal(one(R"("dtype":"F33","shape":[1],"data_offsets":[0,4])"), "abcd"),
                     ": tensor \"a\": unknown dtype \"F33\""));
    EXPECT_TRUE(
        says(header_refusal(one(R"("dtype":"f32","shape":[1],"data_offsets":[0,4])"), "abcd"), "unknown dtype"));
}

TEST(Safetensors, EveryDtypeOfTheFormatIsKnown) {
    for (const char* dtype : {"BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0"}) {
        EXPECT_EQ(safetensors_element_bits(dtype), 8U) << dtype;
    }
    for (const char* dtype : {"I16", "U16", "F16", "BF16"}) EXPECT_EQ(safetensors_element_bits(dtype), 16U) << dtype;
    for (const char* dtype : {"I32", "U32", "F32"}) EXPECT_EQ(safetensors_element_bits(dtype), 32U) << dtype;
    for (const char* dtype : {"I64", "U64", "F64", "C64"}) EXPECT_EQ(safetensors_element_bits(dtype), 64U) << dtype;
    EXPECT_EQ(contract_dtype("BF16"), DType::kBF16);
    EXPECT_EQ(contract_dtype("F64"), std::nullopt);
}

TEST(Safetensors, HalfBytesAreRefused) {
    EXPECT_TRUE(says(header_refusal(one(R"("dtype":"F4","shape":[3],"data_offsets":[0,2])"), "ab"), "not whole bytes"));
    EXPECT_EQ(header_refusal(one(R"("dtype":"F4","shape":[4],"data_offsets":[0,2])"), "ab"), "");
}

TEST(Safetensors, MissingAndUnknownFieldsAreRefused) {
    EXPECT_TRUE(says(header_refusal(one(R"("shape":[1],"data_offsets":[0,4])"), "abcd"), "dtype is missing"));
    EXPECT_TRUE(says(header_refusal(one(R"("dtype":"F32","data_offsets":[0,4])"), "abcd"), "shape is missing"));
    EXPECT_TRUE(says(header_refusal(one(R"("dtype":"F32","shape":[1])"), "abcd"), "data_offsets is missing"));
    EXPECT_TRUE(says(header_refusal(one(R"("strides":[1])")), "unknown field \"strides\""));
}

TEST(Safetensors, FieldsOfTheWrongTypeAreRefused) {
    EXPECT_TRUE(says(header_refusal(R"({"a":3})"), "not an object: got a number"));
    EXPECT_TRUE(says(header_refusal(one(R"("dtype":5)")), "dtype is not a string"));
    EXPECT_TRUE(says(header_refusal(one(R"("dtype":["F32"])")), "an array"));
    EXPECT_TRUE(says(header_refusal(one(R"("shape":{})")), "an object"));
    EXPECT_TRUE(says(header_refusal(one(R"("shape":"3")")), "shape is not an array"));
    EXPECT_TRUE(says(header_refusal(one(R"("shape":[-1])")), "a negative number"));
    EXPECT_TRUE(says(header_refusal(one(R"("shape":[1.0])")), "no 64-bit unsigned integer (1.0)"));
    EXPECT_TRUE(says(header_refusal(one(R"("shape":[18446744073709551616])")), "no 64-bit unsigned integer"));
    EXPECT_TRUE(says(header_refusal(one(R"("shape":[[1]])")), "an array"));
    EXPECT_TRUE(says(header_refusal(one(R"("shape":[true])")), "true or false"));
    EXPECT_TRUE(says(header_refusal(one(R"("data_offsets":[0])")), "fewer than two"));
    EXPECT_TRUE(says(header_refusal(one(R"("data_offsets":[0,4,4])")), "more than two"));
    EXPECT_TRUE(says(header_refusal(one(R"("data_offsets":null)")), "null"));
}

TEST(Safetensors, MetadataThatIsNotTextIsRefused) {
    EXPECT_TRUE(
        says(header_refusal(R"({"__metadata__":{"step":3}})"), "metadata \"step\" is not a string: got a number"));
    EXPECT_TRUE(says(header_refusal(R"({"__metadata__":{"step":null}})"), "not a string: got null"));
    EXPECT_TRUE(says(header_refusal(R"({"__metadata__":[]})"), "__metadata__ is not an object"));
    EXPECT_TRUE(says(header_refusal(R"({"__metadata__":{"k":{}}})"), "not a string: got an object"));
}

TEST(Safetensors, ASizeThatDoesNotFitTheShapeIsRefused) {
    EXPECT_TRUE(says(header_refusal(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), "abcd"),
                     "F32 [2] needs 8 bytes, data_offsets [0,4] give 4"));
    EXPECT_TRUE(says(header_refusal(one(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])")),
                     "overflows"));
    EXPECT_TRUE(
        says(header_refusal(one(R"("dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0])")), "overflows"));
}

TEST(Safetensors, OffsetsOutOfRangeAreRefused) {
    EXPECT_TRUE(says(header_refusal(kFour, "abc"), "reach beyond the 3 bytes of data"));
    EXPECT_TRUE(says(header_refusal(one(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"), "abcd"), "end before"));
    EXPECT_TRUE(says(
        header_refusal(one(R"("dtype":"F32","shape":[1],"data_offsets":[18446744073709551612,18446744073709551615])")),
        "reach beyond"));
}

std::string two(const std::string& first, const std::string& second) {
    return R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)" + first +
           R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + second + "}}";
}

TEST(Safetensors, OverlapsHolesAndRestsAreRefused) {
    EXPECT_EQ(header_refusal(two("[0,2]", "[2,4]"), "abcd"), "");
    EXPECT_EQ(header_refusal(two("[2,4]", "[0,2]"), "abcd"), "");
    EXPECT_TRUE(says(header_refusal(two("[0,2]", "[1,3]"), "abc"), "\"b\": its data overlaps that of \"a\""));
    EXPECT_TRUE(says(header_refusal(two("[0,2]", "[0,2]"), "ab"), "overlaps"));
    EXPECT_TRUE(says(header_refusal(two("[0,2]", "[3,5]"), "abcde"), "a hole in the data before it: bytes 2 to 3"));
    EXPECT_TRUE(says(header_refusal(two("[1,3]", "[3,5]"), "abcde"), "bytes 0 to 1"));
    EXPECT_TRUE(says(header_refusal(two("[0,2]", "[2,4]"), "abcde"), "1 trailing bytes belong to no tensor"));
    EXPECT_TRUE(says(refusal(file_bytes("{}") + "x"), "trailing"));
}

TEST(Safetensors, AnEmptyTensorInsideAnotherIsRefused) {
    const std::string header =
        R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})";
    EXPECT_TRUE(says(header_refusal(header, "abcd"), "overlaps"));
}

TEST(Safetensors, AControlCharacterInANameDoesNotBreakTheLine) {
    EXPECT_TRUE(says(header_refusal(R"({"a\nb":3})"), R"("a\nb")"));
    EXPECT_TRUE(says(header_refusal("{\"a\x7F\xC2\x9B\":3}"), "\"a\\x7f\\xc2\\x9b\""));
}

TEST(Safetensors, AControlCharacterInAPathDoesNotBreakTheLine) {
    EXPECT_STREQ(FileError("a\x1B[2J\nb", "is no file").what(), "a\\x1b[2J\\x0ab: is no file");
}

/// The writer's input, over static data.
std::map<std::string, SafetensorsOutput> outputs() {
    static const std::array<float, 2> wide = {1.0F, -2.5F};
    static const std::array<std::uint16_t, 3> narrow = {0x3F80, 0x7FC0, 0x0001};
    return {{"a.grad", {"BF16", {3}, std::as_bytes(std::span(narrow))}},
            {"b.param", {"F32", {2, 1}, std::as_bytes(std::span(wide))}},
            {"c.grad", {"F32", {4, 0}, {}}}};
}

TEST(Safetensors, WhatIsWrittenIsReadBack) {
    const TemporaryFolder folder;
    const std::string path = folder.path("out.safetensors");
    const std::map<std::string, std::string> metadata{{"step", "18446744073709551615"}, {"ü\n", "\"x\""}};
    write_safetensors(path, outputs(), metadata);
    const SafetensorsFile file(path);
    EXPECT_EQ(file.metadata(), metadata);
    ASSERT_EQ(file.tensors().size(), outputs().size());
    for (const auto& [name, want] : outputs()) {
        const SafetensorsTensor& got = file.tensors().at(name);
        EXPECT_EQ(got.dtype, want.dtype);
        EXPECT_EQ(got.shape, want.shape);
        EXPECT_TRUE(std::ranges::equal(file.data(got), want.data)) << name;
    }
}

TEST(Safetensors, TheSameContentIsTheSameBytesAndAligned) {
    const TemporaryFolder folder;
    write_safetensors(folder.path("one"), outputs(), {{"k", "v"}});
    write_safetensors(folder.path("two"), outputs(), {{"k", "v"}});
    const std::string bytes = read_bytes(folder.path("one"));
    EXPECT_EQ(bytes, read_bytes(folder.path("two")));
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, bytes.data(), 8);
    EXPECT_EQ(header_bytes % 8, 0U);
    const SafetensorsFile file(folder.path("one"));
    EXPECT_EQ(file.tensors().at("b.param").begin % 4, 0U);
    EXPECT_EQ(file.tensors().at("a.grad").begin % 2, 0U);
}

TEST(Safetensors, DataThatDoesNotFitItsShapeIsNotWritten) {
    const TemporaryFolder folder;
    const std::array<float, 2> values = {};
    EXPECT_THROW(write_safetensors(folder.path("x"), {{"a", {"F32", {3}, std::as_bytes(std::span(values))}}}, {}),
                 std::invalid_argument);
    EXPECT_EQ(folder.entries(), 0U);
}

TEST(Safetensors, ManyTensorsAreWrittenAndRead) {
    const TemporaryFolder folder;
    const std::array<float, 1> value = {1.0F};
    std::map<std::string, SafetensorsOutput> tensors;
    for (int i = 0; i < 5000; ++i) {
        tensors["layer." + std::to_string(i)] = {"F32", {1}, std::as_bytes(std::span(value))};
    }
    write_safetensors(folder.path("x"), tensors, {});
    EXPECT_EQ(SafetensorsFile(folder.path("x")).tensors().size(), tensors.size());
}

}  // namespace
}  // namespace gradguard::harness
