#include <cstring>
#include <limits>
#include <stdexcept>

#include <common/safetensors.hpp>
#include <support/reference.hpp>

#include "scratch.hpp"
#include "support/doctest.hpp"

namespace examples_safetensors {

using namespace examples;
using sluice_test::Bytes;
using sluice_test::message_of;
using sluice_test::ScratchFolder;

namespace {

Bytes with_header(const std::string& header, std::size_t data_bytes) {
    Bytes bytes(8);
    const std::uint64_t length = header.size();
    std::memcpy(bytes.data(), &length, 8);
    bytes.insert(bytes.end(), header.begin(), header.end());
    bytes.insert(bytes.end(), data_bytes, 7);
    return bytes;
}

std::string parse_error(const Bytes& bytes) {
    return message_of([&] { parse_safetensors(bytes, "weights"); });
}

std::string header_error(const std::string& header, std::size_t data_bytes) {
    return parse_error(with_header(header, data_bytes));
}

template <class T>
Tensor tensor_of(std::vector<std::size_t> shape, const std::vector<T>& values) {
    return Tensor::of<T>(std::move(shape), values);
}

} // namespace

TEST_CASE("a file comes back as it was written") {
    Safetensors content;
    content.metadata["seed"] = "11";
    content.tensors["b"] = tensor_of<float>({2, 2}, {1.5f, -2.25f, 0.0f, 1e-30f});
    content.tensors["a \"quoted\" name"] = tensor_of<std::uint8_t>({3}, {1, 2, 255});
    content.tensors["empty"] = tensor_of<double>({0, 4}, {});
    content.tensors["scalar"] = tensor_of<std::int64_t>({}, {-5});
    content.tensors["whole"] = tensor_of<std::int32_t>({2}, {-1, 7});

    const ScratchFolder folder;
    const auto path = folder.path() / "weights.safetensors";
    write_safetensors(content, path);
    const Safetensors back = read_safetensors(path);
    CHECK(folder.files() == 1);
    CHECK(back.metadata == content.metadata);
    REQUIRE(back.tensors.size() == content.tensors.size());
    for (const auto& entry : content.tensors) {
        const std::string& name = entry.first;
        const Tensor& tensor = entry.second;
        CAPTURE(name);
        CHECK(back.at(name).type == tensor.type);
        CHECK(back.at(name).shape == tensor.shape);
        CHECK(back.at(name).bytes == tensor.bytes);
    }
    CHECK(back.at("b").as<float>() == std::vector<float>{1.5f, -2.25f, 0.0f, 1e-30f});
    CHECK(back.at("scalar").count() == 1);
    CHECK(back.at("empty").count() == 0);
    // What is written must be aligned for its type.
    const Bytes bytes = safetensors_bytes(content);
    std::uint64_t header = 0;
    std::memcpy(&header, bytes.data(), 8);
    CHECK(header % 8 == 0);
    CHECK(bytes[8 + header] == 0xFB); // the int64 comes first: -5
}

TEST_CASE("elements are converted where no whole number changes") {
    CHECK(tensor_of<double>({1}, {0.1}).as<float>().front() == 0.1f);
    CHECK(tensor_of<std::int64_t>({2}, {3, -4}).as<std::int32_t>() == std::vector<std::int32_t>{3, -4});
    CHECK(tensor_of<std::uint8_t>({1}, {200}).as<float>().front() == 200.0f);
    const Tensor large = tensor_of<std::int64_t>({1}, {std::int64_t{1} << 40});
    CHECK(message_of([&] { (void)large.as<std::int32_t>(); }) ==
          "a tensor holds 1099511627776, which does not fit in 32 bits");
    CHECK(message_of([] { (void)tensor_of<std::int32_t>({1}, {-1}).as<std::uint8_t>(); }) ==
          "a tensor holds -1, which does not fit in 8 bits");
    CHECK(message_of([] { (void)tensor_of<float>({1}, {1.0f}).as<std::int32_t>(); }) ==
          "a tensor holds floating-point numbers; whole ones were expected");
    const Tensor half{ElementType::BF16, {1}, {0, 0}};
    CHECK(message_of([&] { (void)half.as<float>(); }) ==
          "a tensor holds BF16; 16-bit floating-point elements are carried as bytes, not converted");
    CHECK_THROWS_WITH_AS(tensor_of<float>({3}, {1.0f}),
                         "a tensor's shape holds 3 elements, but 1 value was given", std::invalid_argument);
}

TEST_CASE("a bad safetensors file") {
    CHECK(message_of([] { read_safetensors("/nowhere/weights"); }) ==
          "/nowhere/weights: cannot be read: No such file or directory; expected a safetensors file");
    CHECK(parse_error({1, 2, 3}) == "weights: holds 3 bytes, too few for a safetensors file");
    CHECK(parse_error({0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0}) == "weights: is compressed; unpack it with gunzip");
    CHECK(
        parse_error({9, 0, 0, 0, 0, 0, 0, 0, '{', '}'}) ==
        "weights: announces a header of 9 bytes, but holds 2 after its length; expected a safetensors file");
    CHECK(parse_error({255, 255, 255, 255, 255, 255, 255, 255, '{', '}'}) ==
          "weights: announces a header of 18,446,744,073,709,551,615 bytes, but holds 2 after its length; "
          "expected "
          "a safetensors file");
    CHECK(header_error("{oops", 0) == "weights: its header is no JSON; expected a safetensors file");
    CHECK(header_error("[1]", 0) == "weights: its header is no JSON object; expected a safetensors file");
    CHECK(header_error(" {}", 0) == "weights: its header is no JSON object; expected a safetensors file");
    // A parser that takes the NUL for the end would read a file without tensors here.
    CHECK(header_error(std::string("{}\0}}", 5), 0) ==
          "weights: its header holds a NUL byte, which JSON does not; expected a safetensors file");
    CHECK(header_error(std::string("{}\0", 3), 0) ==
          "weights: its header holds a NUL byte, which JSON does not; expected a safetensors file");
    CHECK(header_error(R"({"a":3})", 0) == "weights: tensor \"a\" is described by 3; expected an object");
    CHECK(header_error(R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4) ==
          "weights: tensor \"a\" has no dtype");
    CHECK(header_error(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4) ==
          "weights: tensor \"a\" has no shape");
    CHECK(header_error(R"({"a":{"dtype":"F32","shape":[1]}})", 4) ==
          "weights: tensor \"a\" has no data_offsets");
    CHECK(header_error(R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4) ==
          "weights: tensor \"a\" has the unknown dtype \"F33\"");
    CHECK(header_error(R"({"a":{"dtype":"F32","shape":4,"data_offsets":[0,4]}})", 4) ==
          "weights: tensor \"a\" has the shape 4; expected a list");
    CHECK(header_error(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4) ==
          "weights: tensor \"a\": its shape holds -1; expected whole numbers");
    CHECK(header_error(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4) ==
          "weights: tensor \"a\": its shape holds 1.5; expected whole numbers");
    CHECK(header_error(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0) ==
          "weights: tensor \"a\" has the shape [4294967296,4294967296], more than memory can hold");
    CHECK(header_error(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4) ==
          "weights: tensor \"a\" has the data_offsets [0]; expected two numbers");
    CHECK(header_error(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4) ==
          "weights: tensor \"a\" ends before it begins: data_offsets [4,0]");
    CHECK(header_error(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4) ==
          "weights: tensor \"a\" takes 4 bytes, but \"F32\" of shape [2] takes 8");
    CHECK(header_error(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7) ==
          "weights: tensor \"a\" ends at byte 8, but the file holds 7 bytes of data");
    CHECK(header_error(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                       R"("b":{"dtype":"U8","shape":[4],"data_offsets":[6,10]}})",
                       10) == "weights: tensor \"b\" overlaps \"a\"");
    CHECK(header_error(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                       R"("b":{"dtype":"U8","shape":[1],"data_offsets":[6,7]}})",
                       7) == "weights: 2 bytes before tensor \"b\" belong to no tensor");
    CHECK(header_error(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 9) ==
          "weights: 5 bytes after the last tensor belong to none");
    CHECK(header_error(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                       R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                       1) == "weights: names \"a\" twice");
    CHECK(header_error(R"({"__metadata__":{"seed":11}})", 0) ==
          "weights: __metadata__ holds 11; expected strings");
    CHECK(header_error(R"({"__metadata__":"seed"})", 0) ==
          "weights: __metadata__ is \"seed\"; expected an object of strings");
    CHECK(message_of([] { (void)Safetensors{}.at("frozen.0"); }) ==
          "there is no tensor \"frozen.0\" among the 0 of the file");
}

TEST_CASE("a header above the format's limit is refused with the limit") {
    const std::size_t most = 100'000'000;
    Bytes bytes(8 + most + 1, ' ');
    const std::uint64_t announced = most + 1;
    std::memcpy(bytes.data(), &announced, 8);
    CHECK(
        parse_error(bytes) ==
        "weights: announces a header of 100,000,001 bytes; expected at most 100,000,000, the format's limit");
}

TEST_CASE("a file without tensors, and one whose header ends in spaces") {
    CHECK(parse_safetensors(with_header("{}", 0), "weights").tensors.empty());
    const std::string header = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}    )";
    CHECK(parse_safetensors(with_header(header, 2), "weights").at("a").as<float>() ==
          std::vector<float>{7, 7});
}

TEST_CASE("a tensor whose bytes do not fit its shape is not written") {
    Safetensors content;
    content.tensors["a"] = Tensor{ElementType::F32, {2}, {0, 0, 0, 0}};
    CHECK_THROWS_AS(safetensors_bytes(content), std::invalid_argument);
}

TEST_CASE("the reference tensors are read") {
    const Safetensors reference = read_safetensors(sluice_test::reference_path());
    REQUIRE(reference.contains("encoder_decoder/input.0"));
    const Tensor& input = reference.at("encoder_decoder/input.0");
    const Tensor& label = reference.at("encoder_decoder/label.0");
    const Tensor& first = reference.at("encoder_decoder/frozen.0");
    const Tensor& losses = reference.at("encoder_decoder/losses");
    REQUIRE(input.shape.size() == 4);
    REQUIRE(label.shape.size() == 3);
    REQUIRE(first.shape.size() == 4);
    CHECK(input.type == ElementType::F32);
    CHECK(label.type == ElementType::U8);
    CHECK(losses.type == ElementType::F64);
    CHECK(label.shape == std::vector<std::size_t>{input.shape[0], input.shape[2], input.shape[3]});
    CHECK(first.shape[1] == input.shape[1]);
    CHECK(input.as<float>().size() == input.count());
    CHECK(reference.names("encoder_decoder/input.").size() == losses.count());
    for (const double loss : losses.as<double>()) {
        CHECK(loss > 0.0);
        CHECK(loss < 100.0);
    }
}

} // namespace examples_safetensors
