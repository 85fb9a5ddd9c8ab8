// An operation on a CUDA stream with the header of the Host backend alone.
// EXPECT: need <sluice/ragged/reshape.cuh>
#include <sluice/ragged/reshape.hpp>

void use(sluice::CudaStreamRef cuda, sluice::HostStreamRef host,
         sluice::RaggedBatch<float, sluice::Cuda>& on_cuda, sluice::RaggedBatch<float, sluice::Host>& on_host,
         sluice::RaggedView<const float> in, sluice::RaggedWorkspace<sluice::Cuda>& for_cuda,
         sluice::RaggedWorkspace<sluice::Host>& for_host) {
#if MISUSE
    sluice::ragged::prefix(cuda, on_cuda, in, 1, for_cuda);
#else
    sluice::ragged::prefix(host, on_host, in, 1, for_host);
#endif
    (void)cuda;
    (void)on_cuda;
    (void)for_cuda;
}
