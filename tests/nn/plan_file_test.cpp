// The file that keeps plans of convolutions, and what a build without cuDNN says.
#include <filesystem>
#include <fstream>
#include <string>

#include <nn/dnn/cudnn.hpp>
#include <nn/dnn/detail/plan_file.hpp>

#include "examples/scratch.hpp"
#include "nn/support.hpp"

namespace nn_plan_file {

using nn_test::error_of;
using sluice_test::ScratchFolder;

TEST_CASE("plan file: what one object puts, another finds; the last name counts") {
    const ScratchFolder scratch;
    const std::string path = (scratch.path() / "plans.txt").string();
    nn::detail::PlanFile one(path);
    CHECK(one.find("a | 1") == nullptr);
    one.put("a | 1", "eng0_k2=3");
    one.put("b", "eng5");
    nn::detail::PlanFile two(path);
    REQUIRE(two.find("a | 1") != nullptr);
    CHECK(*two.find("a | 1") == "eng0_k2=3");
    two.put("a | 1", "eng7");
    // The first object keeps what the second one wrote.
    one.put("c", "eng9");
    const nn::detail::PlanFile three(path);
    CHECK(*three.find("a | 1") == "eng7");
    CHECK(*three.find("b") == "eng5");
    CHECK(*three.find("c") == "eng9");
    CHECK(three.find("d") == nullptr);
}

TEST_CASE("plan file: lines that are no plans are left out, and an empty path keeps nothing") {
    const ScratchFolder scratch;
    const std::string path = (scratch.path() / "plans.txt").string();
    std::ofstream(path) << "no tab\n\tno key\nno name\t\nkey\tname\n";
    nn::detail::PlanFile file(path);
    CHECK(file.find("no tab") == nullptr);
    CHECK(file.find("no name") == nullptr);
    CHECK(*file.find("key") == "name");
    nn::detail::PlanFile nowhere("");
    nowhere.put("key", "name");
    CHECK(*nowhere.find("key") == "name");
    CHECK(nn::detail::PlanFile("").find("key") == nullptr);
}

TEST_CASE("plan file: one that cannot be written is refused in one sentence") {
    nn::detail::PlanFile file("/nowhere/plans.txt");
    CHECK(error_of([&] { file.put("key", "name"); }) ==
          "plan file: cannot write '/nowhere/plans.txt': No such file or directory");
    CHECK(error_of([&] { file.put("a\tkey", "name"); }) ==
          "plan file: a key or a name holds a tab or a line break; expected neither");
}

TEST_CASE("plan file: a link stays, and what it names is written, a device too") {
    const ScratchFolder scratch;
    const std::filesystem::path link = scratch.path() / "plans.txt", target = scratch.path() / "kept";
    std::ofstream(target) << "a\tone\n";
    std::filesystem::create_symlink(target, link);
    nn::detail::PlanFile(link.string()).put("b", "two");
    CHECK(std::filesystem::is_symlink(link));
    const nn::detail::PlanFile kept(target.string());
    REQUIRE(kept.find("a") != nullptr);
    REQUIRE(kept.find("b") != nullptr);
    CHECK(*kept.find("b") == "two");

    std::filesystem::remove(link);
    std::filesystem::create_symlink("/dev/null", link);
    nn::detail::PlanFile(link.string()).put("b", "two");
    CHECK(std::filesystem::read_symlink(link) == "/dev/null");
    CHECK(std::filesystem::is_character_file("/dev/null"));
}

#if !NN_HAS_CUDNN
TEST_CASE("cuDNN: a build without it says what is missing") {
    CHECK(nn::missing_cudnn().find("this build has no cuDNN: install it") == 0);
    CHECK(nn::cudnn_version().empty());
}
#endif

} // namespace nn_plan_file
