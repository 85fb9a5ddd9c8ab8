// Prints which graphs cuDNN supports for each of ResNet-18's 20 convolutions, on the device at hand.
// probe_convolutions [IMAGES [STORED CHANNELS]]: a batch of 32 images of 3 channels unless told.
#include <cstdio>
#include <cstdlib>
#include <set>

#include <nn/dnn/cudnn.hpp>
#include <nn/dnn/cudnn_conv2d.hpp>
#include <nn/models/resnet18_plan.hpp>

namespace {

template <class T>
void print_table(const char* type, const nn::ResNet18Plan& plan, std::size_t images) {
    nn::CudnnConv2d<T> conv;
    std::set<nn::Conv2dShape> seen;
    for (const nn::ResNetConv& layer : plan.convs()) {
        const nn::Conv2dShape shape = layer.shape.with_images(images);
        const bool is_new = seen.insert(shape).second;
        std::printf("\n%s, %s: %s%s\n", type, layer.name.c_str(), nn::to_string(shape).c_str(),
                    is_new ? "" : " (as above)");
        if (!is_new)
            continue;
        for (const nn::ConvSupport& support : conv.probe(shape)) {
            std::printf("| %-62s | %-3s | %3zu | %8.1f MiB | %s\n", support.graph.c_str(),
                        support.is_supported ? "yes" : "no", support.plans,
                        static_cast<double>(support.workspace) / (1 << 20), support.detail.c_str());
            std::fflush(stdout);
        }
    }
}

} // namespace

int main(int count, char** arguments) {
    const std::string missing = nn::missing_cudnn();
    if (!missing.empty()) {
        std::fprintf(stderr, "probe_convolutions: %s\n", missing.c_str());
        return 1;
    }
    const std::size_t images = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 32;
    const std::size_t channels = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 0;
    try {
        const nn::ResNet18Plan plan({.stored_channels = channels});
        std::printf("cuDNN %s: graph | supported | plans | workspace | first plan, or why there is none\n",
                    nn::cudnn_version().c_str());
        print_table<nn::Half>("float16", plan, images);
        print_table<float>("float (TF32)", plan, images);
    } catch (const sluice::Error& error) {
        std::fprintf(stderr, "probe_convolutions: %s\n", error.what());
        return 1;
    }
    return 0;
}
