// What a build without cuDNN says.
#include <nn/dnn/cudnn.hpp>

namespace nn {

std::string missing_cudnn() {
    return "this build has no cuDNN: install it (system package, or \"pip install nvidia-cudnn-cu13 "
           "nvidia-cudnn-frontend\") and configure again, with -DCUDNN_ROOT=DIR if it lies elsewhere";
}

std::string cudnn_version() { return {}; }

} // namespace nn
