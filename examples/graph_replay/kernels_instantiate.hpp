// Included by kernels_host.cpp and kernels_cuda.cu, after the bodies, for the backend `KernelBackend`.

namespace graph_replay {

template void nudge(sluice::BasicStreamRef<KernelBackend>, nn::SpanArgument<float, KernelBackend>, float);
template void error_gradient(sluice::BasicStreamRef<KernelBackend>,
                             nn::SpanArgument<const float, KernelBackend>,
                             nn::SpanArgument<const float, KernelBackend>,
                             nn::SpanArgument<float, KernelBackend>, float);
template void descend(sluice::BasicStreamRef<KernelBackend>, nn::SpanArgument<float, KernelBackend>,
                      nn::SpanArgument<const float, KernelBackend>,
                      nn::SpanArgument<const float, KernelBackend>);
template void begin_solving(sluice::BasicStreamRef<KernelBackend>, const System&, sluice::ConditionSetter);

} // namespace graph_replay
