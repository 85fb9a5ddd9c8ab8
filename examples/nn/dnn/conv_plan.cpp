#include <nn/dnn/detail/conv_plan.hpp>

#include <algorithm>
#include <limits>

#include <nn/core/device.hpp>
#include <sluice/memory/copy.hpp>

namespace nn::detail {
namespace {

// cuDNN offers the plans that it expects to be fast first. Of the many others some take a hundred times as long.
constexpr int most_trials = 12;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string shape_key(const Conv2dShape& shape) {
    std::string result;
    for (const std::size_t value : {shape.images, shape.height, shape.width, shape.in_channels,
                                    shape.out_channels, shape.kernel, shape.stride, shape.padding})
        result += (result.empty() ? "" : " ") + std::to_string(value);
    return result;
}

/// Device memory for every tensor that a graph uses.
class Operands {
public:
    Operands(ConvGraph kind, const Conv2dShape& shape, std::size_t element_bytes) {
        const sluice::BasicStream<sluice::Cuda> stream;
        for (std::int64_t i = in_tensor; i < tensor_end; ++i) {
            const auto tensor = static_cast<Tensor>(i);
            if (!uses(kind, tensor))
                continue;
            buffers_.emplace_back(bytes_of(shape, tensor, element_bytes));
            // About 1 in float16, about 0.01 in float: neither 0, which is faster to multiply, nor huge.
            sluice::fill_bytes(stream, buffers_.back(), 0x3C);
            addresses_[static_cast<std::size_t>(i)] = buffers_.back().data();
        }
        stream.sync();
    }
    const TensorAddresses& addresses() const { return addresses_; }

private:
    std::vector<sluice::DeviceBuffer<std::byte, sluice::Cuda>> buffers_;
    TensorAddresses addresses_{};
};

/// The least of several times of `work` on `stream`, in milliseconds; the first one alone where that is beyond `hopeless`.
template <class Work>
float least_time(const sluice::BasicStream<sluice::Cuda>& stream, float hopeless, const Work& work) {
    constexpr int runs = 5;
    struct Event {
        cudaEvent_t event = nullptr;
        Event() { SLUICE_CUDA_CHECK(cudaEventCreate(&event)); }
        ~Event() { cudaEventDestroy(event); }
        Event(const Event&) = delete;
        Event& operator=(const Event&) = delete;
    };
    const Event start;
    const Event end;
    float least = std::numeric_limits<float>::max();
    work();
    for (int run = 0; run < runs; ++run) {
        SLUICE_CUDA_CHECK(cudaEventRecord(start.event, stream.ref().get()));
        work();
        SLUICE_CUDA_CHECK(cudaEventRecord(end.event, stream.ref().get()));
        SLUICE_CUDA_CHECK(cudaEventSynchronize(end.event));
        float milliseconds = 0.0f;
        SLUICE_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start.event, end.event));
        least = std::min(least, milliseconds);
        if (least > hopeless)
            break;
    }
    return least;
}

bool is_captured(sluice::CudaStreamRef stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    SLUICE_CUDA_CHECK(cudaStreamIsCapturing(stream.get(), &status));
    return status != cudaStreamCaptureStatusNone;
}

std::size_t workspace_of(const fe::graph::Graph& graph, std::int64_t index) {
    return static_cast<std::size_t>(std::max<std::int64_t>(0, graph.get_workspace_size_plan_at_index(index)));
}

} // namespace

void require_cudnn(cudnnStatus_t status, const char* what) {
    if (status != CUDNN_STATUS_SUCCESS) [[unlikely]]
        throw sluice::Error(std::string("cuDNN: ") + what + " failed: " + cudnnGetErrorString(status));
}

void require_graph(fe::error_t status, const std::string& what) {
    if (status.is_bad()) [[unlikely]]
        throw sluice::Error("cuDNN: " + what + " failed: " + first_line(status.get_message()));
}

void ConvPlan::run(cudnnHandle_t handle, ConvGraph kind, const TensorAddresses& addresses,
                   void* with_workspace) const {
    // In the order of their numbers, as the frontend wants them.
    std::array<void*, tensor_end> used{};
    int count = 0;
    for (std::int64_t i = in_tensor; i < tensor_end; ++i) {
        if (uses(kind, static_cast<Tensor>(i)))
            used[static_cast<std::size_t>(count++)] = addresses[static_cast<std::size_t>(i)];
    }
    const fe::error_t status =
        graph->execute_plan_at_index(handle, used.data(), count, with_workspace, index);
    if (status.is_bad()) [[unlikely]]
        require_graph(status, std::string("a plan for ") + name_of(kind));
}

ConvPlans::ConvPlans(const Conv2dOptions& options, fe::DataType_t type, std::size_t element_bytes)
    : options_(options), type_(type), element_bytes_(element_bytes), file_(options.plan_file) {
    int device = 0;
    cudaDeviceProp properties{};
    SLUICE_CUDA_CHECK(cudaGetDevice(&device));
    SLUICE_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
    device_ = properties.name;
    require_cudnn(cudnnCreate(&handle_), "initialising");
}

ConvPlans::~ConvPlans() {
    if (handle_ != nullptr)
        cudnnDestroy(handle_);
}

std::string ConvPlans::key(ConvGraph kind, const Conv2dShape& shape) const {
    const bool is_float = type_ == fe::DataType_t::FLOAT;
    const char* precision = !is_float                                  ? "float16"
                            : options_.precision == Precision::float32 ? "float32"
                                                                       : "tf32";
    return device_ + " | cuDNN " + std::to_string(cudnnGetVersion()) + " | frontend " +
           std::to_string(CUDNN_FRONTEND_VERSION) + " | " + precision +
           (options_.deterministic ? " deterministic | " : " | ") + name_of(kind) + " | " + shape_key(shape);
}

fe::error_t ConvPlans::prepare(fe::graph::Graph& graph, bool is_strict) const {
    if (const fe::error_t status = graph.validate(); status.is_bad())
        return status;
    if (const fe::error_t status = graph.build_operation_graph(handle_); status.is_bad())
        return status;
    const fe::error_t status = graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
    if (status.is_bad())
        return status;
    std::vector<fe::NumericalNote_t> unwanted;
    if (options_.deterministic)
        unwanted.push_back(fe::NumericalNote_t::NONDETERMINISTIC);
    if (type_ == fe::DataType_t::FLOAT) {
        unwanted.push_back(fe::NumericalNote_t::DOWN_CONVERT_INPUTS);
        if (options_.precision == Precision::float32)
            unwanted.push_back(fe::NumericalNote_t::TENSOR_CORE);
    } else if (is_strict) {
        unwanted.push_back(fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION);
    }
    graph.deselect_numeric_notes(unwanted);
    return graph.check_support();
}

bool ConvPlans::choose_named(ConvPlan& plan, const std::string& name) const {
    for (std::int64_t i = 0; i < plan.graph->get_execution_plan_count(); ++i) {
        std::string each;
        if (plan.graph->get_plan_name_at_index(i, each).is_good() && each == name &&
            plan.graph->build_plan_at_index(i).is_good()) {
            plan.index = i;
            return true;
        }
    }
    return false;
}

bool ConvPlans::choose_first(ConvPlan& plan) const {
    for (std::int64_t i = 0; i < plan.graph->get_execution_plan_count(); ++i) {
        if (plan.graph->build_plan_at_index(i).is_good()) {
            plan.index = i;
            return true;
        }
    }
    return false;
}

void ConvPlans::choose_fastest(ConvPlan& plan, ConvGraph kind, const Conv2dShape& shape) const {
    const Operands operands(kind, shape, element_bytes_);
    const sluice::BasicStream<sluice::Cuda> stream;
    SLUICE_CUDA_CHECK(cudaDeviceSynchronize()); // so that nothing else runs while plans are timed
    require_cudnn(cudnnSetStream(handle_, stream.ref().get()), "setting the stream");
    float least = std::numeric_limits<float>::max();
    std::int64_t best = -1;
    int tried = 0;
    for (std::int64_t i = 0; i < plan.graph->get_execution_plan_count() && tried < most_trials; ++i) {
        if (plan.graph->build_plan_at_index(i).is_bad())
            continue;
        ++tried;
        sluice::DeviceBuffer<std::byte, sluice::Cuda> workspace(workspace_of(*plan.graph, i));
        plan.index = i;
        try {
            const float time = least_time(
                stream, 2 * least, [&] { plan.run(handle_, kind, operands.addresses(), workspace.data()); });
            if (time < least) {
                least = time;
                best = i;
            }
        } catch (const sluice::Error&) { // one that cannot run after all is not chosen
            stream.sync();
        }
    }
    plan.index = std::max<std::int64_t>(best, 0);
    if (best < 0)
        plan.graph = nullptr;
}

ConvPlan ConvPlans::make(ConvGraph kind, const Conv2dShape& shape) {
    ConvPlan plan;
    // Sums of float16 only where there is nothing else.
    for (const bool is_strict : {true, false}) {
        plan.graph = make_conv_graph(kind, shape, {.maps = type_});
        if (prepare(*plan.graph, is_strict).is_good())
            break;
        plan.graph = nullptr;
    }
    if (plan.graph == nullptr)
        return plan;
    const std::string own_key = key(kind, shape);
    const std::string* kept = file_.find(own_key);
    const bool is_kept = kept != nullptr && choose_named(plan, *kept);
    if (!is_kept && options_.algorithms == Algorithms::autotune)
        choose_fastest(plan, kind, shape);
    else if (!is_kept && !choose_first(plan))
        plan.graph = nullptr;
    if (plan.graph == nullptr)
        return plan;
    require_graph(plan.graph->get_plan_name_at_index(plan.index, plan.name), "naming a plan");
    plan.workspace = workspace_of(*plan.graph, plan.index);
    if (!is_kept && options_.algorithms == Algorithms::autotune)
        file_.put(own_key, plan.name);
    return plan;
}

const ConvPlan& ConvPlans::plan(sluice::CudaStreamRef stream, ConvGraph kind, const Conv2dShape& shape) {
    const auto found = plans_.find({kind, shape});
    if (found != plans_.end()) [[likely]]
        return found->second;
    require_conv2d(shape);
    if (is_captured(stream)) {
        throw sluice::Error("convolution of " + to_string(shape) +
                            ": the first call makes its plan and cannot be captured; expected a call before");
    }
    const ConvPlan& made = plans_.emplace(Key{kind, shape}, make(kind, shape)).first->second;
    reserve(made.workspace);
    return made;
}

void ConvPlans::reserve(std::size_t bytes) {
    if (bytes > 0 && (workspaces_.empty() || bytes > workspaces_.back().size()))
        workspaces_.emplace_back(bytes);
}

void ConvPlans::run(sluice::CudaStreamRef stream, ConvGraph kind, const ConvPlan& plan,
                    const TensorAddresses& addresses) {
    require_cudnn(cudnnSetStream(handle_, stream.get()), "setting the stream");
    plan.run(handle_, kind, addresses, workspaces_.empty() ? nullptr : workspaces_.back().data());
}

ConvSupport ConvPlans::probe(ConvGraph kind, const Conv2dShape& shape, const GraphTypes& types) {
    ConvSupport support;
    support.graph = name_of(kind);
    const auto graph = make_conv_graph(kind, shape, types);
    if (fe::error_t status = prepare(*graph, false); status.is_bad()) {
        support.detail = first_line(status.get_message());
        return support;
    }
    support.plans = static_cast<std::size_t>(graph->get_execution_plan_count());
    for (std::int64_t i = 0; i < graph->get_execution_plan_count(); ++i) {
        fe::error_t status = graph->build_plan_at_index(i);
        if (status.is_good()) {
            support.is_supported = true;
            support.workspace = workspace_of(*graph, i);
            require_graph(graph->get_plan_name_at_index(i, support.detail), "naming a plan");
            break;
        }
        if (support.detail.empty())
            support.detail = first_line(status.get_message());
    }
    return support;
}

} // namespace nn::detail
