#include <nn/dnn/detail/conv_plan.hpp>

#include <algorithm>
#include <limits>
#include <optional>

#include <nn/dnn/detail/conv_operands.hpp>

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

/// Without a plan such a convolution cannot be computed at all; the others are fused, and callers do without.
bool is_plain(ConvGraph kind) { return kind <= ConvGraph::weight_gradient; }

/// Whether `ConvPlans::run_unfused` computes it, too.
bool is_inference(ConvGraph kind) { return kind >= ConvGraph::bias && kind <= ConvGraph::bias_residual_relu; }

/// In the plan file, instead of a plan's name.
constexpr const char* unfused = "unfused";

} // namespace

/// Plans of one graph on operands and a stream of their own. Nothing else runs on the device when it is made.
class PlanTrial {
public:
    PlanTrial(cudnnHandle_t handle, ConvGraph kind, const Conv2dShape& shape, std::size_t element_bytes)
        : handle_(handle), kind_(kind), operands_(kind, shape, element_bytes) {
        SLUICE_CUDA_CHECK(cudaDeviceSynchronize());
    }

    /// In milliseconds, see least_time; nothing if the plan cannot run after all.
    std::optional<float> time(const ConvPlan& plan, float hopeless) {
        return attempt([&] {
            void* const workspace = operands_.workspace(workspace_of(*plan.graph, plan.index));
            return least_time(stream_, hopeless, [&] { run(plan, workspace); });
        });
    }

    /// The same of other work on the plan's operands: `work(stream, addresses)`.
    template <class Work>
    std::optional<float> time_of(const Work& work) {
        return attempt([&] {
            return least_time(stream_, std::numeric_limits<float>::max(),
                              [&] { work(stream_.ref(), operands_.addresses()); });
        });
    }

    bool can_run(const ConvPlan& plan) {
        const auto ran = attempt([&] {
            run(plan, operands_.workspace(workspace_of(*plan.graph, plan.index)));
            stream_.sync();
            return true;
        });
        return ran.has_value();
    }

    /// Of a plan that can run.
    bool keeps_stream_order(const ConvPlan& plan, bool is_deterministic) {
        void* const workspace = operands_.workspace(workspace_of(*plan.graph, plan.index));
        return operands_.keeps_stream_order(stream_, is_deterministic, [&] { run(plan, workspace); });
    }

private:
    void run(const ConvPlan& plan, void* workspace) {
        require_cudnn(cudnnSetStream(handle_, stream_.ref().get()), "setting the stream");
        plan.run(handle_, kind_, operands_.addresses(), workspace);
    }
    template <class Work>
    auto attempt(const Work& work) -> std::optional<decltype(work())> {
        try {
            return work();
        } catch (const sluice::Error&) {
            stream_.sync();
            return {};
        }
    }

    cudnnHandle_t handle_;
    ConvGraph kind_;
    ConvOperands operands_;
    sluice::BasicStream<sluice::Cuda> stream_;
};

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
    checks_order_ = can_check_stream_order();
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
           (options_.deterministic ? " deterministic" : "") + " | in stream order | " + name_of(kind) +
           " | " + shape_key(shape);
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

bool ConvPlans::choose_first(ConvPlan& plan, PlanTrial* trial, std::int64_t begin, int most) const {
    int tried = 0;
    for (std::int64_t i = begin; i < plan.graph->get_execution_plan_count() && tried < most; ++i) {
        if (plan.graph->build_plan_at_index(i).is_bad())
            continue;
        plan.index = i;
        if (trial == nullptr)
            return true;
        ++tried;
        if (!trial->can_run(plan))
            continue;
        if (trial->keeps_stream_order(plan, options_.deterministic))
            return true;
        ++plan.out_of_order;
    }
    return false;
}

bool ConvPlans::choose_fastest(ConvPlan& plan, PlanTrial& trial, int most) const {
    std::vector<std::pair<float, std::int64_t>> timed;
    float least = std::numeric_limits<float>::max();
    int tried = 0;
    std::int64_t next = 0;
    for (; next < plan.graph->get_execution_plan_count() && tried < most_trials; ++next) {
        if (plan.graph->build_plan_at_index(next).is_bad())
            continue;
        ++tried;
        plan.index = next;
        if (const std::optional<float> time = trial.time(plan, 2 * least); time.has_value()) {
            least = std::min(least, *time);
            timed.emplace_back(*time, next);
        }
    }
    std::sort(timed.begin(), timed.end());
    for (const auto& [time, index] : timed) {
        plan.index = index;
        if (!checks_order_ || trial.keeps_stream_order(plan, options_.deterministic))
            return true;
        ++plan.out_of_order;
    }
    return choose_first(plan, &trial, next, most);
}

bool ConvPlans::is_faster_unfused(const ConvPlan& plan, PlanTrial& trial, ConvGraph kind,
                                  const Conv2dShape& shape) {
    const std::optional<float> fused = trial.time(plan, std::numeric_limits<float>::max());
    const std::optional<float> two =
        trial.time_of([&](sluice::CudaStreamRef stream, const TensorAddresses& addresses) {
            run_unfused(stream, kind, shape, addresses);
        });
    return two.has_value() && (!fused.has_value() || *two < *fused);
}

bool ConvPlans::choose(ConvPlan& plan, ConvGraph kind, const Conv2dShape& shape) {
    const bool is_timed = options_.algorithms == Algorithms::autotune;
    // Plans that cuDNN offers late are slow ones. Without times there is nothing better than the first one, or none.
    const int most = is_plain(kind) ? std::numeric_limits<int>::max() : is_timed ? most_trials : 1;
    if (!is_timed && !checks_order_)
        return choose_first(plan, nullptr, 0, most);
    if (is_timed && is_inference(kind)) { // before the trial, which nothing may run beside
        const sluice::BasicStream<sluice::Cuda> stream;
        (void)this->plan(stream.ref(), ConvGraph::forward, shape);
    }
    PlanTrial trial(handle_, kind, shape, element_bytes_);
    if (!is_timed)
        return choose_first(plan, &trial, 0, most);
    return choose_fastest(plan, trial, most) &&
           !(is_inference(kind) && is_faster_unfused(plan, trial, kind, shape));
}

ConvPlan ConvPlans::make(ConvGraph kind, const Conv2dShape& shape) {
    ConvPlan plan;
    // Sums of float16 only where there is nothing else.
    for (const bool is_strict : {true, false}) {
        plan.graph = make_conv_graph(kind, shape, type_);
        if (prepare(*plan.graph, is_strict).is_good())
            break;
        plan.graph = nullptr;
    }
    if (plan.graph == nullptr)
        return plan;
    const std::string own_key = key(kind, shape);
    const std::string* kept = file_.find(own_key);
    if (kept != nullptr && *kept == unfused && is_inference(kind)) {
        plan.graph = nullptr;
        return plan;
    }
    const bool is_kept = kept != nullptr && choose_named(plan, *kept);
    if (!is_kept && !choose(plan, kind, shape)) {
        plan.graph = nullptr;
        if (is_inference(kind) && options_.algorithms == Algorithms::autotune)
            file_.put(own_key, unfused);
        return plan;
    }
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

} // namespace nn::detail
