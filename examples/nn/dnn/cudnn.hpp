/// \file
/// Whether this build can compute with cuDNN. What it computes is in cudnn_conv2d.hpp.
#pragma once

#include <string>

namespace nn {

/// Empty if convolutions can be computed with cuDNN on the current device; otherwise one sentence that says what is
/// missing.
std::string missing_cudnn();

/// cuDNN's version at run time, for example "9.28.1"; empty if the build has none.
std::string cudnn_version();

} // namespace nn
